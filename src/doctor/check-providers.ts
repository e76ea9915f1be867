import { listApps, listAppsWithMethod } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { MethodAccounts } from '#providers/accounts.ts'
import type { CredentialsCheck, CredentialsSpec } from '#providers/credentials-spec.ts'
import { listProviders, type Method } from '#providers/providers.ts'
import { listPauses, type ProviderPause } from '#providers/pauses/store.ts'
import { countFailing } from '#providers/store.ts'
import { counted } from '#shared/counted.ts'
import { messageOf } from '#shared/errors.ts'
import { formatUtc } from '#shared/time.ts'
import { failed, passed, warning, type CheckResult } from '#shared/check-result.ts'

/** Providers are asked about this many apps at a time. */
const AT_ONCE = 8

/** A session whose polling failed this often has been failing for an hour. */
const MANY_FAILURES = 5

/** Whether each provider accepts the credentials of each app that has it enabled, and which payments cannot be polled. */
export async function checkProviders(ctx: Context): Promise<CheckResult[]> {
  return [...(await checkCredentials(ctx)), ...(await checkLookUps(ctx))]
}

async function checkCredentials(ctx: Context): Promise<CheckResult[]> {
  const enabled = await enabledAccounts(ctx)
  if (enabled.length === 0) return [passed('providers', 'no app has a method that needs credentials')]
  const results: CheckResult[] = []
  for (let start = 0; start < enabled.length; start += AT_ONCE) {
    const asked = enabled.slice(start, start + AT_ONCE)
    results.push(...(await Promise.all(asked.map((account) => checkOne(ctx, account)))))
  }
  return results
}

/** Accounts whose polling is paused, and sessions whose polling keeps failing. */
async function checkLookUps(ctx: Context): Promise<CheckResult[]> {
  const now = await databaseNow(ctx, ctx.db)
  const paused = (await listPauses(ctx.db)).filter(({ pausedUntil }) => pausedUntil > now)
  const results = paused.map(pauseResult)
  const { count, transactionId } = await countFailing(ctx.db, MANY_FAILURES)
  if (transactionId === null) return results
  const detail = `${counted(count, 'session')} that may still be paid could not be polled or closed for an hour or longer, the newest of transaction ${transactionId}`
  const fix = `search the log for "a look-up failed", and check the session in the provider's dashboard`
  return [...results, warning('providers', detail, fix)]
}

function pauseResult({ appId, provider, failures, reason, since, pausedUntil }: ProviderPause): CheckResult {
  const cause = `${counted(failures, 'failure')} in a row since ${formatUtc(since)}: ${reason}`
  const detail = `app ${appId}, ${provider}: polling is paused until ${formatUtc(pausedUntil)}, after ${cause}`
  return warning('providers', detail, `the pause ends by itself; billing-cli reconcile --app ${appId} polls at once`)
}

interface EnabledAccount {
  readonly appId: number
  readonly method: Method
  readonly spec: CredentialsSpec
}

async function enabledAccounts(ctx: Context): Promise<EnabledAccount[]> {
  const running = new Set((await listApps(ctx.db)).filter(({ disabledAt }) => disabledAt === null).map(({ id }) => id))
  const accounts: EnabledAccount[] = []
  for (const { method, credentials: spec } of listProviders()) {
    const rows = spec ? await listAppsWithMethod(ctx.db, method) : []
    for (const { appId, isEnabled } of rows) {
      if (spec && isEnabled && running.has(appId)) accounts.push({ appId, method, spec })
    }
  }
  return accounts
}

async function checkOne(ctx: Context, { appId, method, spec }: EnabledAccount): Promise<CheckResult> {
  const name = `app ${appId}, ${method}:`
  const fix = `run billing-cli method enable ${appId} ${method} with the right credentials`
  try {
    const account = await new MethodAccounts(method, spec.schema).current(ctx, appId)
    const { result, message } = account ? await spec.check(ctx.config, account.credentials) : MISSING
    if (result === 'ok') return passed('providers', `${name} ${message}`)
    if (result === 'refused') return failed('providers', `${name} ${message}`, fix)
    return warning(
      'providers',
      `${name} ${message}`,
      'check this machine’s internet connection, then run billing-cli doctor again',
    )
  } catch (error) {
    const fixKey = `follow the fix of keys, above; if that key is lost, ${fix}`
    return failed('providers', `${name} credentials cannot be decrypted: ${messageOf(error)}`, fixKey)
  }
}

const MISSING: CredentialsCheck = { result: 'refused', message: 'it has no credentials' }
