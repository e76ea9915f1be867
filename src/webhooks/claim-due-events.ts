import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { randomHex } from '#shared/crypto.ts'
import { addMs, SECOND_MS } from '#shared/time.ts'
import { claimDue, release, type ClaimedEvent, type DueEvent } from './store.ts'

/** Longer than four attempts: an event may wait behind one of its app, and clocks of daemons differ. */
export function leaseMs(timeoutMs: number): number {
  return 4 * timeoutMs + SECOND_MS
}

/** Leases those of the events to the caller that are still due. Events whose last attempt was cut short by a crash are failed. */
export async function claimDueEvents(ctx: Context, candidates: readonly DueEvent[]): Promise<ClaimedEvent[]> {
  const token = randomHex(16)
  const { claimed, lost } = await inTransaction(ctx, (tx) =>
    claimDue(tx, candidates, { token, until: addMs(tx.now, leaseMs(ctx.config.webhook.timeoutMs)) }),
  )
  if (lost > 0) {
    ctx.count('webhook_deliveries_total', { outcome: 'failed' }, lost)
    ctx.log.error({ lost }, 'deliveries were cut short on their last attempt')
  }
  return claimed
}

/** Releases leases of events that were not sent. */
export async function releaseEvents(ctx: Context, claimed: readonly ClaimedEvent[]): Promise<void> {
  for (const leaseToken of new Set(claimed.map((event) => event.leaseToken))) {
    const eventIds = claimed.filter((event) => event.leaseToken === leaseToken).map(({ id }) => id)
    await inTransaction(ctx, (tx) => release(tx, leaseToken, eventIds))
  }
}
