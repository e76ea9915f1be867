import type { Context } from '#context.ts'
import { byStatement, inTransaction } from '#commands/transaction.ts'
import { databasePresent } from '#db/database-now.ts'
import { randomNumber } from '#shared/crypto.ts'
import { SECOND_MS } from '#shared/time.ts'
import { claimDue, type ClaimedEvent, type DueEvent, type Lease } from './claims/store.ts'
import { failLost, releaseLeases } from './outcomes/store.ts'

/** A claimed event, and when its lease ends by `performance.now`, which no clock change moves. */
export interface LeasedEvent extends ClaimedEvent {
  readonly leaseEndsMs: number
}

/** A lease for a new claim: longer than four attempts, because an event may wait behind others of its app. */
export function newLease(ctx: Context): Lease {
  return { token: randomNumber(), ms: 4 * ctx.config.webhook.timeoutMs + SECOND_MS }
}

/** Leases the events that are still due. Marks events as failed if a crash interrupted their last attempt. */
export async function claimDueEvents(ctx: Context, candidates: readonly DueEvent[]): Promise<LeasedEvent[]> {
  const lease = newLease(ctx)
  const leaseEndsMs = performance.now() + lease.ms
  const claimed = await byStatement(ctx, (db) => claimDue(db, candidates, lease, databasePresent(ctx)))
  if (claimed.length < candidates.length) await failLostOf(ctx, candidates, claimed)
  return claimed.map((event) => ({ ...event, leaseEndsMs }))
}

/** Fails lost events among those that were not claimed. Other daemons have the rest. */
async function failLostOf(
  ctx: Context,
  candidates: readonly DueEvent[],
  claimed: readonly ClaimedEvent[],
): Promise<void> {
  const claimedIds = new Set(claimed.map(({ id }) => id))
  const missed = candidates.map(({ id }) => id).filter((id) => !claimedIds.has(id))
  const lost = await inTransaction(ctx, (tx) => failLost(tx, missed))
  if (lost === 0) return
  ctx.count('webhook_deliveries_total', { outcome: 'failed' }, lost)
  ctx.log.error({ lost }, 'deliveries were interrupted on their last attempt')
}

/** Releases leases of events that were not sent. */
export async function releaseEvents(ctx: Context, claimed: readonly ClaimedEvent[]): Promise<void> {
  for (const [lease, events] of Map.groupBy(claimed, (event) => event.lease)) {
    const eventIds = events.map(({ id }) => id)
    await inTransaction(ctx, (tx) => releaseLeases(tx, lease, eventIds))
  }
}
