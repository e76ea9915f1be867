import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { AppError } from '#shared/errors.ts'
import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { lockExistingEndUser } from '#subscriptions/store.ts'
import { dueOf } from '#payments/balance.ts'
import { findTransaction, getTransaction, type Transaction } from '#transactions/store.ts'
import { AccountUnavailable } from './call-provider.ts'
import type { PaymentRequest, Sessions } from './provider.ts'
import { firstLookupAt } from './engine/schedule.ts'
import { abandonSession, endSession, recordStatus } from './session-status.ts'
import {
  findOpenSession,
  getProviderSession,
  insertProviderSession,
  listPayableSessions,
  updateSessionIn,
  type ProviderSession,
} from './store.ts'

/** A payer is not sent to a session that ends sooner than this. */
const STILL_USEFUL_MS = MINUTE_MS
/** An opening without an answer is repeated for this long; after that its parameters are too old. */
const REPEATABLE_MS = MINUTE_MS
/** Two, so that a second reference is tried if the first one is taken. */
const ATTEMPTS = 2

/** The terms of a new session. */
export interface SessionTerms {
  /** The provider's code. */
  readonly provider: string
  readonly providerAccountId: number
  /** Its end at the provider, in real time. */
  readonly expiresAt: RealTime
  /** A reference that we choose, if the provider requires one. */
  readonly newReference?: () => string
  /** Opens it at the provider; idempotent for the same session. Null if the reference is taken. */
  readonly create: (session: ProviderSession) => Promise<OpenedSession | null>
}

export interface OpenedSession {
  readonly reference: string
  readonly url: string
}

/**
 * Opens a session at the provider for what is due, or returns to an open one; returns where to send the payer. Asks the provider about
 * earlier sessions first: one may be paid, cancelled, expired or processing, and one that asks for another amount is closed (R216). The
 * intent is committed before the provider is called. Throws `provider_error`.
 */
export async function openSession(
  ctx: Context,
  sessions: Sessions,
  request: PaymentRequest,
  terms: SessionTerms,
): Promise<{ redirectUrl: string }> {
  for (const session of await listPayableSessions(ctx.db, request.transaction.id)) {
    if (session.provider !== terms.provider || session.status === 'opening') continue
    const redirectUrl = await resume(ctx, sessions, request, session, terms.providerAccountId)
    if (redirectUrl !== null) return { redirectUrl }
  }
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const session = await beginSession(ctx, request, terms)
    if (!session) return { redirectUrl: request.returnUrl }
    if (session.url !== null) return { redirectUrl: session.url }
    const opened = await terms.create(session)
    if (opened) return { redirectUrl: await recordOpened(ctx, session, opened) }
    await abandonSession(ctx, session)
  }
  throw new AppError('provider_error', 'the provider returned no payment page; please try again')
}

/**
 * Where to send the payer of an earlier session; null if a fresh one is needed. If that session cannot be looked up or closed, the
 * payer continues; an unavailable account throws `provider_error`, unless its credentials were replaced.
 */
async function resume(
  ctx: Context,
  sessions: Sessions,
  { transaction: { id: transactionId }, returnUrl, checkoutUrl }: PaymentRequest,
  session: ProviderSession,
  currentAccountId: number,
): Promise<string | null> {
  const isCurrent = session.providerAccountId === currentAccountId
  const leaveAlone = (error: unknown): void => {
    if (isCurrent && error instanceof AccountUnavailable) throw error
    ctx.log.warn({ error, transactionId }, 'an open session could not be looked up or closed')
  }
  try {
    const found = await sessions.pollStatus(ctx, session)
    await recordStatus(ctx, session, found)
    if (found.status === 'paid') return returnUrl
    if (found.status === 'processing') return checkoutUrl
    if (found.status === 'closed' || found.status === 'expired') return null
  } catch (error) {
    leaveAlone(error)
  }
  if (isAlmostOver(session, ctx.clock.now())) return null
  const isWhatIsDue = session.amount === dueOf(await getTransaction(ctx.db, transactionId))
  if (isCurrent && isWhatIsDue) return session.url
  try {
    await sessions.close(ctx, session)
    await endSession(ctx, session, 'closed')
  } catch (error) {
    leaveAlone(error)
  }
  return null
}

function isAlmostOver({ expiresAt }: ProviderSession, now: RealTime): boolean {
  return expiresAt <= addMs(now, STILL_USEFUL_MS)
}

/**
 * Commits the intent to open a session, before the provider is called. Returns the session to use: an open one (with a `url`), one
 * whose opening another request began (to be repeated with the same parameters), or a new one. Null if the transaction is no longer
 * pending.
 */
async function beginSession(
  ctx: Context,
  request: PaymentRequest,
  { provider, providerAccountId, expiresAt, newReference }: SessionTerms,
): Promise<ProviderSession | null> {
  return inTransaction(ctx, async (tx) => {
    // If the payer clicks twice, the second request finds the row of the first.
    await lockExistingEndUser(tx, request.app.id, request.transaction.externalRef)
    const transaction = await findTransaction(tx, request.transaction.id)
    if (transaction?.status !== 'pending') return null
    const existing = await findOpenSession(tx, transaction.id, providerAccountId)
    if (existing && isUsable(existing, transaction, tx.now)) return existing
    return insertProviderSession(tx, {
      provider,
      providerAccountId,
      expiresAt,
      reference: newReference?.() ?? null,
      appId: request.app.id,
      transactionId: transaction.id,
      url: null,
      amount: dueOf(transaction),
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

function isUsable(session: ProviderSession, transaction: Transaction, now: RealTime): boolean {
  if (session.amount !== dueOf(transaction)) return false
  return session.status === 'open' ? !isAlmostOver(session, now) : session.createdAt > addMs(now, -REPEATABLE_MS)
}

/** Records the provider's answer, in a second short transaction; returns where to send the payer. */
async function recordOpened(ctx: Context, session: ProviderSession, answer: OpenedSession): Promise<string> {
  const url = await inTransaction(ctx, async (tx) => {
    if (await updateSessionIn(tx, session.id, ['opening'], { ...answer, status: 'open' })) return answer.url
    // A concurrent request recorded it first.
    const current = await getProviderSession(tx, session.id)
    return current.status === 'open' ? current.url : null
  })
  if (url === null) throw new AppError('provider_error', 'the payment page was closed meanwhile; please try again')
  return url
}
