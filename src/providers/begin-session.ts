import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { AppError } from '#shared/errors.ts'
import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { lockExistingEndUser } from '#subscriptions/store.ts'
import { findTransaction, type ProviderCode } from '#transactions/store.ts'
import type { PaymentRequest } from './provider.ts'
import { firstLookupAt } from './schedule.ts'
import {
  findPayableSession,
  getProviderSession,
  insertProviderSession,
  updateSessionIn,
  type ProviderSession,
} from './store.ts'

/** A payer who is sent to a session must have this long to pay. */
const STILL_USEFUL_MS = MINUTE_MS
/** An opening whose answer never came is repeated for this long; its parameters are too old afterwards. */
const REPEATABLE_MS = MINUTE_MS

/** What a new session would be. */
export interface SessionTerms {
  readonly provider: ProviderCode
  /** End of it at the provider, real time. */
  readonly expiresAt: RealTime
  /** The handle that we choose, where the provider wants one. */
  readonly reference: string | null
}

/**
 * Commits the intent to open a session, before the provider is called. Returns the session to use: one that is open (it has a `url`),
 * one whose opening another request is about or died over (to be repeated with the same parameters), or a new one. Null where the
 * transaction is not pending any more: there is nothing left to pay.
 */
export async function beginSession(
  ctx: Context,
  request: PaymentRequest,
  terms: SessionTerms,
): Promise<ProviderSession | null> {
  return inTransaction(ctx, async (tx) => {
    // Two clicks at once must not open two sessions: the second one finds the first one's row.
    await lockExistingEndUser(tx, request.app.id, request.transaction.externalRef)
    const transaction = await findTransaction(tx, request.transaction.id)
    if (transaction?.status !== 'pending') return null
    const existing = await findPayableSession(tx, transaction.id, terms.provider)
    if (existing && isUsable(existing, tx.now)) return existing
    return insertProviderSession(tx, {
      ...terms,
      appId: request.app.id,
      transactionId: transaction.id,
      url: null,
      amount: transaction.amount,
      currency: transaction.currency,
      status: 'opening',
      lookups: 0,
      failures: 0,
      nextLookupAt: firstLookupAt(await databaseNow(ctx, tx)),
      createdAt: tx.now,
      updatedAt: tx.now,
    })
  })
}

function isUsable(session: ProviderSession, now: RealTime): boolean {
  return session.status === 'open'
    ? session.expiresAt > addMs(now, STILL_USEFUL_MS)
    : session.createdAt > addMs(now, -REPEATABLE_MS)
}

export interface OpenedSession {
  readonly reference: string
  readonly url: string
  readonly expiresAt?: RealTime
}

/** Records the provider's answer, in a second short transaction; returns where to send the payer. */
export async function recordOpened(ctx: Context, session: ProviderSession, answer: OpenedSession): Promise<string> {
  const url = await inTransaction(ctx, async (tx) => {
    if (await updateSessionIn(tx, session.id, ['opening'], { ...answer, status: 'open' })) return answer.url
    // The other of two requests that opened it together was first.
    const current = await getProviderSession(tx, session.id)
    return current.status === 'open' ? current.url : null
  })
  if (url === null) throw new AppError('provider_error', 'the payment page was closed meanwhile; please try again')
  return url
}

/** The provider refused to open it: the next try starts afresh. */
export async function abandonSession(ctx: Context, session: ProviderSession): Promise<void> {
  await inTransaction(ctx, (tx) =>
    updateSessionIn(tx, session.id, ['opening'], { status: 'closed', nextLookupAt: null }),
  )
}

/** The session came to its end: paid, or not payable any more. */
export async function endSession(ctx: Context, session: ProviderSession, status: 'paid' | 'closed'): Promise<void> {
  await inTransaction(ctx, (tx) =>
    updateSessionIn(tx, session.id, ['opening', 'open', ...(status === 'paid' ? (['closed'] as const) : [])], {
      status,
      nextLookupAt: null,
    }),
  )
}
