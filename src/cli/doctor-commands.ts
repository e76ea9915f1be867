import type { CheckResult } from '#shared/check-result.ts'
import { counted } from '#shared/counted.ts'
import { stateCell } from './cells.ts'
import type { Commands } from './declaration.ts'
import { explainError } from './explain-error.ts'
import type { Output } from './output.ts'
import { fail } from './session.ts'

/** `doctor`: what is wrong with the service, and what to do about it. */
export const commands: Commands = {
  doctor: {
    examples: ['doctor', 'doctor --json'],
    async print(out) {
      const results = await findAll(out)
      // `mend` is the older name of `fix`: deprecated.
      const shown = results.map((one) => ({ ...one, mend: one.fix }))
      out.result(shown, () => show(out, results))
      if (results.some(({ ok }) => !ok)) await fail('invalid_request', 'a check failed: do what its fix says')
    },
  },
}

/** Settings and database are examined here: without them there is no context to examine the rest with. */
async function findAll(out: Output): Promise<readonly CheckResult[]> {
  const { openContext, openKeyring } = await import('#open-context.ts')
  const { checkSettings } = await import('#doctor/check-settings.ts')
  const { examine } = await import('#doctor/doctor.ts')
  const { failed } = await import('#shared/check-result.ts')
  const { config: loaded, results: settings } = checkSettings()
  if (!loaded) return settings
  const config = { ...loaded, logLevel: 'silent' as const }
  try {
    openKeyring(config)
  } catch (error) {
    const fix = 'make BILLING_HOME a folder that this user can write to, or set BILLING_ENCRYPTION_KEYS'
    return [...settings, failed('keys', `they cannot be opened: ${explainError(error)}`, fix)]
  }
  let opened
  try {
    opened = await openContext({ config, thread: 'cli', poolSize: 4 })
  } catch (error) {
    const fix =
      config.databaseUrl === null
        ? 'do what it says; without a server program, install MariaDB (bin/system-packages), or set BILLING_DATABASE_URL'
        : 'do what it says, or check BILLING_DATABASE_URL, and that the server is up and takes this user'
    return [...settings, failed('database', explainError(error), fix)]
  }
  try {
    const onProgress = (check: string): void => out.progress(`checking ${check}`)
    return [...settings, ...(await examine(opened.ctx, { explain: explainError, onProgress }))]
  } finally {
    await opened.close()
  }
}

function show(out: Output, results: readonly CheckResult[]): void {
  const rows = results.flatMap(({ check, ok, detail, fix }) => [
    [check, stateCell(stateOf(ok, fix)), detail],
    ...(fix === null ? [] : [['', 'fix', fix]]),
  ])
  out.table({ head: ['check', 'state', 'result'], rows })
  const byState = Object.groupBy(results, ({ ok, fix }) => stateOf(ok, fix))
  out.line(`${byState.FAIL?.length ?? 0} failed, ${counted(byState.WARN?.length ?? 0, 'warning')}`)
}

function stateOf(ok: boolean, fix: string | null): 'PASS' | 'WARN' | 'FAIL' {
  if (!ok) return 'FAIL'
  return fix === null ? 'PASS' : 'WARN'
}
