import type { Context } from '#context.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { randomHex } from '#shared/crypto.ts'
import { addMs, SECOND_MS } from '#shared/time.ts'
import { claimDue, release, type ClaimedEvent, type DueEvent, type Lease } from './store.ts'

/** A claimed event, and when its lease ends by this process's own counter (`performance.now`), which no clock change moves. */
export interface LeasedEvent extends ClaimedEvent {
  readonly leaseEndsMs: number
}

/** Longer than four attempts: an event may wait behind one of its app. */
function leaseMs(ctx: Context): number {
  return 4 * ctx.config.webhook.timeoutMs + SECOND_MS
}

/** A lease that begins now. */
export async function newLease(tx: Tx): Promise<Lease> {
  const from = await databaseNow(tx.ctx, tx)
  return { token: randomHex(16), from, until: addMs(from, leaseMs(tx.ctx)) }
}

/** Leases those of the events to the caller that are still due. Events whose last attempt was cut short by a crash are failed. */
export async function claimDueEvents(ctx: Context, candidates: readonly DueEvent[]): Promise<LeasedEvent[]> {
  const leaseEndsMs = performance.now() + leaseMs(ctx)
  const { claimed, lost } = await inTransaction(ctx, async (tx) => claimDue(tx, candidates, await newLease(tx)))
  if (lost > 0) {
    ctx.count('webhook_deliveries_total', { outcome: 'failed' }, lost)
    ctx.log.error({ lost }, 'deliveries were cut short on their last attempt')
  }
  return claimed.map((event) => ({ ...event, leaseEndsMs }))
}

/** Releases leases of events that were not sent. */
export async function releaseEvents(ctx: Context, claimed: readonly ClaimedEvent[]): Promise<void> {
  for (const leaseToken of new Set(claimed.map((event) => event.leaseToken))) {
    const eventIds = claimed.filter((event) => event.leaseToken === leaseToken).map(({ id }) => id)
    await inTransaction(ctx, (tx) => release(tx, leaseToken, eventIds))
  }
}
