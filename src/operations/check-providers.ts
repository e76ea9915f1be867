import { openCredentials } from '#apps/methods.ts'
import { listApps, listAppsWithMethod } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { checkCardCredentials } from '#providers/card/check-credentials.ts'
import type { CredentialsCheck } from '#providers/card/check-credentials.ts'
import { checkPayosCredentials } from '#providers/payos/check-credentials.ts'
import { messageOf } from '#shared/errors.ts'
import { fault, sound, warning } from './finding.ts'
import type { Finding } from './finding.ts'

const METHODS = ['card', 'payos'] as const
type Credentialed = (typeof METHODS)[number]

/** Providers are asked about this many apps at a time. */
const AT_ONCE = 8

/** Whether each provider accepts the credentials of each app that has it enabled. */
export async function checkProviders(ctx: Context): Promise<Finding[]> {
  const enabled = await enabledProviders(ctx)
  if (enabled.length === 0) return [sound('providers', 'no app has a method that needs credentials')]
  const findings: Finding[] = []
  for (let start = 0; start < enabled.length; start += AT_ONCE) {
    const asked = enabled.slice(start, start + AT_ONCE)
    findings.push(...(await Promise.all(asked.map(([appId, method]) => checkOne(ctx, appId, method)))))
  }
  return findings
}

async function enabledProviders(ctx: Context): Promise<(readonly [number, Credentialed])[]> {
  const running = new Set((await listApps(ctx.db)).filter(({ disabledAt }) => disabledAt === null).map(({ id }) => id))
  const rows = await Promise.all(METHODS.map((method) => listAppsWithMethod(ctx.db, method)))
  return rows.flatMap((ofMethod, index) =>
    ofMethod
      .filter(({ appId, isEnabled }) => isEnabled && running.has(appId))
      .map(({ appId }) => [appId, METHODS[index] as Credentialed] as const),
  )
}

async function checkOne(ctx: Context, appId: number, method: Credentialed): Promise<Finding> {
  const name = `app ${appId}, ${method}:`
  const mend = `run billing-cli method enable ${appId} ${method} with the right credentials`
  try {
    const { result, message } = await ask(ctx, appId, method)
    if (result === 'ok') return sound('providers', `${name} ${message}`)
    if (result === 'refused') return fault('providers', `${name} ${message}`, mend)
    return warning('providers', `${name} ${message}`, 'check this machine’s way to the internet, then ask again')
  } catch (error) {
    const opens = `mend what keys, above, says; where that key is lost, ${mend}`
    return fault('providers', `${name} its credentials do not open: ${messageOf(error)}`, opens)
  }
}

async function ask(ctx: Context, appId: number, method: Credentialed): Promise<CredentialsCheck> {
  if (method === 'card') {
    const credentials = await openCredentials(ctx, appId, 'card')
    return credentials ? checkCardCredentials(ctx.config, credentials) : missing()
  }
  const credentials = await openCredentials(ctx, appId, 'payos')
  return credentials ? checkPayosCredentials(ctx.config, credentials) : missing()
}

function missing(): CredentialsCheck {
  return { result: 'refused', message: 'it has no credentials' }
}
