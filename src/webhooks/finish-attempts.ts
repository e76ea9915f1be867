import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import type { AttemptResult, MadeAttempt, MadeNoAttempt } from './attempt-delivery.ts'
import { databaseNow } from '#db/database-now.ts'
import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { nextAttemptAt } from './schedule.ts'
import { hasAttempt, insertAttempts, type NewAttempt } from './attempts/store.ts'
import { markDelivered, markFailed, markNotConfigured, markRetried, postpone } from './outcomes/store.ts'

/** Pause of an event with a signing secret that cannot be decrypted. An operator must restore the key. */
export const UNREADABLE_PAUSE_MS = MINUTE_MS

/** Counts of outcomes. `lost`: another sender took over the lease. */
export interface Tally {
  delivered: number
  retried: number
  failed: number
  notConfigured: number
  /** Postponed, because the signing secret cannot be decrypted. */
  postponed: number
  lost: number
}

const OUTCOMES = [
  'delivered',
  'retried',
  'failed',
  'notConfigured',
  'postponed',
  'lost',
] as const satisfies (keyof Tally)[]

export function emptyTally(): Tally {
  return { delivered: 0, retried: 0, failed: 0, notConfigured: 0, postponed: 0, lost: 0 }
}

export function addTally(tally: Tally, more: Tally): void {
  for (const key of OUTCOMES) tally[key] += more[key]
}

/** The counts since `before`. */
export function difference(now: Tally, before: Tally): Tally {
  const more = emptyTally()
  for (const key of OUTCOMES) more[key] = now[key] - before[key]
  return more
}

/** Records attempts and ends their leases in one transaction. Pass at most a few hundred. */
export async function finishAttempts(ctx: Context, results: readonly AttemptResult[]): Promise<Tally> {
  const [first] = results.filter(isMade)
  const tally = await inTransaction(
    ctx,
    (tx) => finishIn(tx, results),
    async (tx, attempt) => attempt > 1 && first !== undefined && (await hasAttempt(tx, attemptOf(first))),
  )
  for (const outcome of ['delivered', 'retried', 'failed'] as const) {
    if (tally[outcome] > 0) ctx.count('webhook_deliveries_total', { outcome }, tally[outcome])
  }
  if (tally.lost > 0) ctx.log.warn({ lost: tally.lost }, 'deliveries took longer than their lease and were taken over')
  return tally
}

async function finishIn(tx: Tx, results: readonly AttemptResult[]): Promise<Tally> {
  const written = emptyTally()
  await recordAttempts(tx, results.filter(isMade))
  await finishDelivered(tx, results.filter(isDelivered), written)
  await finishFailed(tx, results.filter(isFailed), written)
  await finishNotConfigured(tx, unattempted(results, 'not_configured'), written)
  await finishUnreadable(tx, unattempted(results, 'secret_unreadable'), written)
  return written
}

function isMade(result: AttemptResult): result is MadeAttempt {
  return 'startedAt' in result
}

function isDelivered(result: AttemptResult): boolean {
  return result.error === null
}

function isFailed(result: AttemptResult): result is FailedAttempt {
  return result.error !== null && isMade(result)
}

function unattempted(results: readonly AttemptResult[], error: MadeNoAttempt['error']): AttemptResult[] {
  return results.filter((result) => !isMade(result) && result.error === error)
}

async function finishDelivered(tx: Tx, results: readonly AttemptResult[], tally: Tally): Promise<void> {
  for (const [lease, eventIds] of byLease(results)) {
    const held = await markDelivered(tx, lease, eventIds)
    tally.delivered += held
    tally.lost += eventIds.length - held
  }
}

type FailedAttempt = MadeAttempt & { readonly error: string }

async function finishFailed(tx: Tx, results: readonly FailedAttempt[], tally: Tally): Promise<void> {
  if (results.length === 0) return
  const now = await databaseNow(tx.ctx, tx)
  const alike = Map.groupBy(results, ({ event, error }) => `${event.lease} ${event.retriesLeft} ${error}`)
  for (const group of alike.values()) await finishAlike(tx, group, now, tally)
}

/** Ends failed attempts of one lease that have the same error and number of retries left. */
async function finishAlike(tx: Tx, group: readonly FailedAttempt[], now: RealTime, tally: Tally): Promise<void> {
  const [first] = group
  if (!first) return
  const { event, error } = first
  const eventIds = idsOf(group)
  const retryAt = nextAttemptAt(tx.ctx.config.webhook.retryMinutes, event.retriesLeft, now)
  const held = retryAt
    ? await markRetried(tx, event.lease, eventIds, retryAt, error)
    : await markFailed(tx, event.lease, eventIds, error)
  tally[retryAt ? 'retried' : 'failed'] += held
  tally.lost += eventIds.length - held
}

async function finishNotConfigured(tx: Tx, results: readonly AttemptResult[], tally: Tally): Promise<void> {
  for (const [lease, eventIds] of byLease(results)) {
    const held = await markNotConfigured(tx, lease, eventIds)
    tally.notConfigured += held
  }
}

async function finishUnreadable(tx: Tx, results: readonly AttemptResult[], tally: Tally): Promise<void> {
  if (results.length === 0) return
  const until = addMs(await databaseNow(tx.ctx, tx), UNREADABLE_PAUSE_MS)
  for (const [lease, eventIds] of byLease(results)) {
    const held = await postpone(tx, lease, eventIds, until, 'secret_unreadable')
    tally.postponed += held
  }
}

/** Records attempts even if their lease was lost, because they were made. */
async function recordAttempts(tx: Tx, results: readonly MadeAttempt[]): Promise<void> {
  if (results.length === 0) return
  await insertAttempts(tx, results.map(attemptOf))
}

function attemptOf({ event, startedAt, durationMs, httpStatus, error, responseHead }: MadeAttempt): NewAttempt {
  const { id: eventId, attempt } = event
  return { eventId, attempt, startedAt, durationMs, httpStatus, error, responseHead }
}

/** Groups by lease. Each claim has a new lease, so that an old attempt cannot end a lease that this process lost and claimed again. */
function byLease(results: readonly AttemptResult[]): [lease: number, eventIds: number[]][] {
  const leases = Map.groupBy(results, ({ event }) => event.lease)
  return [...leases].map(([lease, ofLease]) => [lease, idsOf(ofLease)])
}

function idsOf(results: readonly AttemptResult[]): number[] {
  return results.map(({ event }) => event.id)
}
