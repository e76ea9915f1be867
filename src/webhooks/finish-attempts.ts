import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import type { AttemptResult, MadeAttempt, MadeNoAttempt } from './attempt-delivery.ts'
import { databaseNow } from '#db/database-now.ts'
import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { nextAttemptAt } from './schedule.ts'
import { insertAttempts, markDelivered, markFailed, markNotConfigured, putOff } from './store.ts'

/** How long an event waits whose app's secret does not open: a key that is missing is put back by an operator. */
export const UNREADABLE_PAUSE_MS = MINUTE_MS

/** What a group of attempts came to; `lost` were finished by somebody else, who took over the lease. */
export interface Tally {
  delivered: number
  retried: number
  failed: number
  notConfigured: number
  /** Not sent, since the secret that signs does not open. */
  putOff: number
  lost: number
}

const OUTCOMES = [
  'delivered',
  'retried',
  'failed',
  'notConfigured',
  'putOff',
  'lost',
] as const satisfies (keyof Tally)[]

export function emptyTally(): Tally {
  return { delivered: 0, retried: 0, failed: 0, notConfigured: 0, putOff: 0, lost: 0 }
}

export function addTo(tally: Tally, more: Tally): void {
  for (const key of OUTCOMES) tally[key] += more[key]
}

/** What `now` has more than `before`. */
export function difference(now: Tally, before: Tally): Tally {
  const more = emptyTally()
  for (const key of OUTCOMES) more[key] = now[key] - before[key]
  return more
}

/** Records attempts and ends their leases, all in one transaction; at most 50 at a time. */
export async function finishAttempts(ctx: Context, results: readonly AttemptResult[]): Promise<Tally> {
  const tally = await inTransaction(ctx, async (tx) => {
    const written = emptyTally()
    await finishDelivered(tx, results.filter(isDelivered), written)
    const failed = results.filter(isFailed)
    if (failed.length > 0) {
      const now = await databaseNow(ctx, tx)
      for (const result of failed) await finishFailed(tx, result, now, written)
    }
    await finishNotConfigured(tx, madeNone(results, 'not_configured'), written)
    await finishUnreadable(tx, madeNone(results, 'secret_unreadable'), written)
    await recordAttempts(tx, results.filter(isMade))
    return written
  })
  for (const outcome of ['delivered', 'retried', 'failed'] as const) {
    if (tally[outcome] > 0) ctx.count('webhook_deliveries_total', { outcome }, tally[outcome])
  }
  if (tally.lost > 0) ctx.log.warn({ lost: tally.lost }, 'deliveries took longer than their lease and were taken over')
  return tally
}

function isMade(result: AttemptResult): result is MadeAttempt {
  return 'startedAt' in result
}

function isDelivered(result: AttemptResult): boolean {
  return result.error === null
}

function isFailed(result: AttemptResult): result is MadeAttempt & { error: string } {
  return result.error !== null && isMade(result)
}

function madeNone(results: readonly AttemptResult[], error: MadeNoAttempt['error']): AttemptResult[] {
  return results.filter((result) => !isMade(result) && result.error === error)
}

async function finishDelivered(tx: Tx, results: readonly AttemptResult[], tally: Tally): Promise<void> {
  for (const [leaseToken, eventIds] of byLease(results)) {
    const held = await markDelivered(tx, leaseToken, eventIds)
    tally.delivered += held
    tally.lost += eventIds.length - held
  }
}

async function finishFailed(
  tx: Tx,
  { event, error }: MadeAttempt & { error: string },
  now: RealTime,
  tally: Tally,
): Promise<void> {
  const retryAt = nextAttemptAt(tx.ctx.config.webhook.retryMinutes, event.retriesLeft, now)
  const isHeld = await markFailed(tx, event, retryAt, error)
  if (!isHeld) tally.lost += 1
  else if (retryAt) tally.retried += 1
  else tally.failed += 1
}

async function finishNotConfigured(tx: Tx, results: readonly AttemptResult[], tally: Tally): Promise<void> {
  for (const [leaseToken, eventIds] of byLease(results)) {
    tally.notConfigured += await markNotConfigured(tx, leaseToken, eventIds)
  }
}

async function finishUnreadable(tx: Tx, results: readonly AttemptResult[], tally: Tally): Promise<void> {
  if (results.length === 0) return
  const until = addMs(await databaseNow(tx.ctx, tx), UNREADABLE_PAUSE_MS)
  for (const [leaseToken, eventIds] of byLease(results)) {
    tally.putOff += await putOff(tx, leaseToken, eventIds, until, 'secret_unreadable')
  }
}

/** Attempts are recorded whoever holds the lease now: they were made. */
async function recordAttempts(tx: Tx, results: readonly MadeAttempt[]): Promise<void> {
  if (results.length === 0) return
  await insertAttempts(
    tx,
    results.map(({ event, startedAt, durationMs, httpStatus, error, responseHead }) => ({
      eventId: event.id,
      attempt: event.attempt,
      startedAt,
      durationMs,
      httpStatus,
      error,
      responseHead,
    })),
  )
}

/** A lease token stands for one claim, so that a lease that this process lost and took again is not ended by the old attempt. */
function byLease(results: readonly AttemptResult[]): Map<string, number[]> {
  const groups = new Map<string, number[]>()
  for (const { event } of results) {
    const eventIds = groups.get(event.leaseToken) ?? []
    eventIds.push(event.id)
    groups.set(event.leaseToken, eventIds)
  }
  return groups
}
