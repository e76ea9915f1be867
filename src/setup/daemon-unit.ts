import { existsSync } from 'node:fs'
import type { Config } from '#config/config.ts'
import { daemonUrl } from '#doctor/ask-metrics.ts'
import { EndpointError, requestEndpoint } from '#http/outbound/request-endpoint.ts'
import { AppError } from '#shared/errors.ts'
import { runProgram } from './run-program.ts'
import { PACKAGE_ROOT } from './systemd-unit.ts'
import { DAEMON_UNIT } from './units.ts'
import type { Service } from './upgrade-package.ts'

const DEADLINE_MS = 2000

/** The daemon as systemd runs it for the package. */
export function daemonService(config: Config): Service {
  if (!existsSync('/run/systemd/system')) throw new AppError('invalid_request', 'systemd does not run here')
  const systemctl = (...words: readonly string[]) => runProgram('systemctl', words)
  return {
    async programFolder() {
      const pid = Number(await systemctl('show', '--property=MainPID', '--value', DAEMON_UNIT))
      // In its unit, a copy is mounted over the installed program.
      return pid === 0 ? null : `/proc/${pid}/root${PACKAGE_ROOT}`
    },
    check: () => runProgram(`${PACKAGE_ROOT}/bin/billing-daemon`, ['--check']),
    async restart() {
      // Resets the count of failed starts.
      await systemctl('reset-failed', DAEMON_UNIT).catch(() => undefined)
      await systemctl('restart', DAEMON_UNIT)
    },
    isReady: () => answersReady(`${daemonUrl(config)}/readyz`),
  }
}

async function answersReady(url: string): Promise<boolean> {
  try {
    return (await requestEndpoint({ method: 'GET', url, headers: {}, deadlineMs: DEADLINE_MS })).status === 200
  } catch (error) {
    if (error instanceof EndpointError) return false
    throw error
  }
}
