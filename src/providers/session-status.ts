import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { PolledStatus } from './provider.ts'
import { PAYABLE, updateSessionIn, type ProviderSession } from './store.ts'

/** Records the polled status of a session if it changes. */
export async function recordStatus(ctx: Context, session: ProviderSession, found: PolledStatus): Promise<void> {
  if (found.status === 'paid' || found.status === 'closed') await endSession(ctx, session, found.status)
  else if (found.status === 'processing') await markProcessing(ctx, session)
  else if (found.status === 'expired') await markExpired(ctx, session)
}

/** Closes a session that the provider refused to open, so that the next try begins a new one. */
export async function abandonSession(ctx: Context, session: ProviderSession): Promise<void> {
  await inTransaction(ctx, (tx) =>
    updateSessionIn(tx, session.id, ['opening'], { status: 'closed', nextLookupAt: null }),
  )
}

/** Records that the payer is done and the money may still fail to arrive. */
export async function markProcessing(ctx: Context, session: ProviderSession): Promise<void> {
  if (session.status === 'processing') return
  await inTransaction(ctx, (tx) => updateSessionIn(tx, session.id, ['opening', 'open'], { status: 'processing' }))
}

/** Records that a session ended before its time, so that no payer is sent there. It stays polled for late money. */
async function markExpired(ctx: Context, session: ProviderSession): Promise<void> {
  if (session.expiresAt <= ctx.clock.now()) return
  await inTransaction(ctx, (tx) => updateSessionIn(tx, session.id, ['opening', 'open'], { expiresAt: tx.now }))
}

/** Records that a session was paid, also if it was closed before, or that it can no longer be paid. */
export async function endSession(ctx: Context, session: ProviderSession, status: 'paid' | 'closed'): Promise<void> {
  const from = status === 'paid' ? [...PAYABLE, 'closed' as const] : PAYABLE
  await inTransaction(ctx, (tx) => updateSessionIn(tx, session.id, from, { status, nextLookupAt: null }))
}
