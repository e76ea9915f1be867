import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import type { AttemptResult, MadeAttempt } from './attempt-delivery.ts'
import { databaseNow } from '#db/database-now.ts'
import { addMs, MINUTE_MS } from '#shared/time.ts'
import { nextAttemptAt } from './schedule.ts'
import { hasAttempt, insertAttempts, type NewAttempt } from './attempts/store.ts'
import { markDelivered, markFailed, markNotConfigured, markRetried, postpone } from './outcomes/store.ts'
import { emptyTally, type Tally } from './tally.ts'

/** Pause of an event with a signing secret that cannot be decrypted. An operator must restore the key. */
export const UNREADABLE_PAUSE_MS = MINUTE_MS

/**
 * Records attempts and ends their leases in one transaction. Pass at most a few hundred. `doubted`: results whose earlier recording
 * failed. Skips those that were committed after all.
 */
export async function finishAttempts(
  ctx: Context,
  fresh: readonly AttemptResult[],
  doubted: readonly AttemptResult[] = [],
): Promise<Tally> {
  // Shows whether a COMMIT whose answer was lost took place. A doubted result cannot: an earlier call may have recorded it.
  const witness = fresh.find(isMade)
  const tally = await inTransaction(
    ctx,
    async (tx) => finishIn(tx, [...fresh, ...(await unrecorded(tx, doubted))]),
    async (tx, attempt) => attempt > 1 && witness !== undefined && (await hasAttempt(tx, attemptOf(witness))),
  )
  for (const outcome of ['delivered', 'retried', 'failed'] as const) {
    if (tally[outcome] > 0) ctx.count('webhook_deliveries_total', { outcome }, tally[outcome])
  }
  if (tally.lost > 0) ctx.log.warn({ lost: tally.lost }, 'deliveries took longer than their lease and were taken over')
  return tally
}

async function unrecorded(tx: Tx, doubted: readonly AttemptResult[]): Promise<AttemptResult[]> {
  const left: AttemptResult[] = []
  for (const result of doubted) {
    const isRecorded = isMade(result) && (await hasAttempt(tx, attemptOf(result)))
    if (!isRecorded) left.push(result)
  }
  return left
}

async function finishIn(tx: Tx, results: readonly AttemptResult[]): Promise<Tally> {
  const tally = emptyTally()
  await recordAttempts(tx, results.filter(isMade))
  for (const [first, ...others] of Map.groupBy(results, groupKeyOf).values()) {
    if (!first) continue
    const eventIds = [first, ...others].map(({ event }) => event.id)
    const [outcome, held] = await endGroup(tx, first, eventIds)
    tally[outcome] += held
    tally.lost += eventIds.length - held
  }
  return tally
}

function isMade(result: AttemptResult): result is MadeAttempt {
  return result.kind === 'made'
}

/** Results with the same key end by the same statement. Each claim has a new lease, so an old attempt cannot end a later claim's. */
function groupKeyOf({ event: { lease, retriesLeft }, error }: AttemptResult): string {
  return error === null ? `${lease}` : `${lease} ${retriesLeft} ${error}`
}

/** Ends the leases of a group's events by one statement. Returns the outcome, and how many leases were still held. */
async function endGroup(
  tx: Tx,
  { event: { lease, retriesLeft }, error }: AttemptResult,
  eventIds: readonly number[],
): Promise<[outcome: Exclude<keyof Tally, 'lost'>, held: number]> {
  if (error === null) return ['delivered', await markDelivered(tx, lease, eventIds)]
  if (error === 'not_configured') return ['notConfigured', await markNotConfigured(tx, lease, eventIds)]
  const now = await databaseNow(tx.ctx, tx)
  if (error === 'secret_unreadable')
    return ['postponed', await postpone(tx, lease, eventIds, addMs(now, UNREADABLE_PAUSE_MS), error)]
  const retryAt = nextAttemptAt(tx.ctx.config.webhook.retryMinutes, retriesLeft, now)
  return retryAt
    ? ['retried', await markRetried(tx, lease, eventIds, retryAt, error)]
    : ['failed', await markFailed(tx, lease, eventIds, error)]
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
