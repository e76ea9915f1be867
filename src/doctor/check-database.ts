import type { Context } from '#context.ts'
import { newerContractions, pendingMigrations } from '#db/migrate.ts'
import { counted } from '#shared/counted.ts'
import { SECOND_MS } from '#shared/time.ts'
import { failed, passed, warning, type CheckResult } from '#shared/check-result.ts'
import { checkCluster } from './check-cluster.ts'
import { readDurability, readServerFacts, type ServerFacts } from './store.ts'

export const MAX_SKEW_MS = 2 * SECOND_MS

/** Whether the database takes writes, and whether its clock and ours agree. */
export async function checkDatabase(ctx: Context): Promise<CheckResult[]> {
  const { version, isReadOnly, skewMs } = await inspectServer(ctx)
  const database = isReadOnly
    ? failed('database', `${version} is read-only`, 'point BILLING_DATABASE_URL at the primary, or make it writable')
    : passed('database', `${version}${ctx.config.databaseUrl === null ? ', embedded' : ''}`)
  return [database, clockResult(skewMs), ...(await checkCluster(ctx))]
}

/** Whether a payment that was acknowledged survives a loss of power of the database's machine. */
export async function checkDurability(ctx: Context): Promise<CheckResult[]> {
  const { flushesLog, hasBinaryLog, syncsBinaryLog } = await readDurability(ctx.db)
  const wrong = [
    ...(flushesLog === 1 ? [] : [['innodb_flush_log_at_trx_commit', flushesLog] as const]),
    ...(!hasBinaryLog || syncsBinaryLog === 1 ? [] : [['sync_binlog', syncsBinaryLog] as const]),
  ]
  if (wrong.length === 0) return [passed('durability', 'each commit is on disk before it is acknowledged')]
  const { databaseUrl, env } = ctx.config
  const isTrial = databaseUrl === null && env === 'development'
  const detail = `${wrong.map(([name, value]) => `${name} is ${value}`).join(', ')}: a loss of power may lose acknowledged payments`
  const fix = `in the server's configuration and by SET GLOBAL: ${wrong.map(([name]) => `${name} = 1`).join(', ')}`
  return [(isTrial ? warning : failed)('durability', detail, fix)]
}

/** A sentence if the clocks of this machine and the database differ; null if they agree. */
export async function skewWarning(ctx: Context): Promise<string | null> {
  return skewSentence(await inspectServer(ctx))
}

/** A sentence if the database answers and takes no writes, or if its clock is wrong; null if neither is so. */
export async function databaseWarning(ctx: Context): Promise<string | null> {
  const server = await inspectServer(ctx)
  return server.isReadOnly ? 'the database is read-only: changes are answered 503' : skewSentence(server)
}

function skewSentence({ skewMs }: { readonly skewMs: number }): string | null {
  const { detail, fix } = clockResult(skewMs)
  return fix === null ? null : `${detail}: ${fix}`
}

/** By how many seconds the database's clock is ahead of ours, at least. */
export async function clockSkewSeconds(ctx: Context): Promise<number> {
  return (await inspectServer(ctx)).skewMs / SECOND_MS
}

async function inspectServer(ctx: Context): Promise<ServerFacts & { readonly skewMs: number }> {
  const before = ctx.clock.now().getTime()
  const facts = await readServerFacts(ctx.db)
  const after = ctx.clock.now().getTime()
  const now = facts.now.getTime()
  // Any time in between shows no difference: on a busy machine, the answer takes seconds.
  return { ...facts, skewMs: Math.min(0, now - before) + Math.max(0, now - after) }
}

/** `skewMs`: how far the database is ahead. */
function clockResult(skewMs: number): CheckResult {
  const seconds = (Math.abs(skewMs) / SECOND_MS).toFixed(1)
  if (Math.abs(skewMs) <= MAX_SKEW_MS) return passed('clock', `the database and this machine agree within ${seconds} s`)
  const direction = skewMs > 0 ? 'ahead of' : 'behind'
  return failed(
    'clock',
    `the database is ${seconds} s ${direction} this machine`,
    'set both by NTP (timedatectl set-ntp true): signatures and periods go by this machine’s, leases by the database’s',
  )
}

/** Whether every migration was applied, and no newer version took away what this one uses. */
export async function checkSchema(ctx: Context): Promise<CheckResult[]> {
  const [newer] = await newerContractions(ctx.db)
  if (newer !== undefined)
    return [
      failed(
        'schema',
        `a newer version has taken away what this one uses: ${newer}`,
        'run that version, or restore a backup from before',
      ),
    ]
  const pending = await pendingMigrations(ctx.db)
  if (pending.length === 0) return [passed('schema', 'up to date')]
  return [
    failed(
      'schema',
      `${counted(pending.length, 'migration')} missing: ${pending.join(', ')}`,
      'run billing-cli migrate',
    ),
  ]
}
