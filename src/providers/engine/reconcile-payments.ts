import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { listDueRefunds } from '#payments/store.ts'
import { databaseNow } from '#db/database-now.ts'
import { readPages } from '#db/read-pages.ts'
import { FairQueue } from '#shared/fair-queue.ts'
import { dueOf } from '#payments/balance.ts'
import { findTransaction } from '#transactions/store.ts'
import { recordStatus } from '#providers/session-status.ts'
import { CLOSED, type PolledStatus } from '#providers/provider.ts'
import { listProviders, providerOfCode, sessionsOf } from '#providers/providers.ts'
import { reconcileRefunds } from './refunds.ts'
import { isGivenUp, nextLookupAt } from './schedule.ts'
import { SessionPass } from './session-pass.ts'
import {
  claimLookup,
  getProviderSession,
  listDueSessions,
  listPayableSessions,
  type ProviderSession,
} from '#providers/store.ts'

const BATCH = 1000
/** Providers answer in about 100 ms: a few calls at once keep the backlog short without flooding them. */
const SESSIONS_AT_ONCE = 8
/** Keeps an account whose provider hangs from using all slots. */
const SESSIONS_AT_ONCE_OF_ACCOUNT = 4

export interface ReconcileOptions {
  readonly signal?: AbortSignal
  readonly appId?: number
  /** Look up everything that may still be paid, due or not, for an operator. */
  readonly all?: boolean
  /** Also list the refunds that were made at the providers; `all` includes it. */
  readonly withRefundLists?: boolean
}

/** The result of one run, in sessions. */
export interface ReconcileCounts {
  lookedUp: number
  /** Found paid; a notification that comes later changes nothing. */
  paid: number
  /** No longer payable: expired, or closed because the transaction was paid in another way. */
  closed: number
  stillOpen: number
  /** The provider did not answer, or refused; tried again later. */
  failed: number
  /** New refunds that were made at a provider. */
  refundsNoted: number
  /** Pending refunds that succeeded or failed. */
  refundsEnded: number
}

/** What the look-up of one session led to, as `ReconcileCounts` counts it. */
type Outcome = 'paid' | 'closed' | 'stillOpen' | 'failed'

/**
 * Looks up payments that are still pending at their providers, so that a lost notification loses no payment. Closes the sessions of
 * transactions that were completed in another way, and lists refunds that were made at a provider. Safe to run anywhere at any time: each
 * look-up is claimed, and its result takes the same path as a notification. A failure delays only its own session, longer each time. Only
 * a provider that does not answer, or refuses an account's credentials, pauses the account. Alternates between the accounts (R213).
 */
export async function reconcilePayments(ctx: Context, options: ReconcileOptions = {}): Promise<ReconcileCounts> {
  const counts = await pollSessions(ctx, options)
  if (!options.signal?.aborted) {
    counts.refundsEnded = await reconcileRefunds(ctx, options)
    if (options.all || options.withRefundLists) counts.refundsNoted = await noteRefunds(ctx, options)
  }
  return counts
}

/** Whether a session or a refund is due to be looked up. */
export async function hasDueLookups(ctx: Context): Promise<boolean> {
  const first = { dueAt: await databaseNow(ctx, ctx.db), appId: null, limit: 1 }
  const sessions = await listDueSessions(ctx.db, { ...first, afterId: 0 })
  const refunds = await listDueRefunds(ctx.db, { ...first, after: null })
  return sessions.length + refunds.length > 0
}

/** Lists the refunds that were made at the providers; returns how many are new. */
async function noteRefunds(ctx: Context, options: ReconcileOptions): Promise<number> {
  let noted = 0
  for (const provider of listProviders()) noted += (await provider.noteRefunds?.(ctx, options)) ?? 0
  return noted
}

async function pollSessions(ctx: Context, options: ReconcileOptions): Promise<ReconcileCounts> {
  const counts = { lookedUp: 0, paid: 0, closed: 0, stillOpen: 0, failed: 0, refundsNoted: 0, refundsEnded: 0 }
  const pass = await SessionPass.begin(ctx, { ignoresPauses: options.all ?? false })
  const pages = readPages<ProviderSession>(BATCH, async (last, limit) => {
    const dueAt = options.all ? null : await databaseNow(ctx, ctx.db)
    return listDueSessions(ctx.db, { dueAt, appId: options.appId ?? null, afterId: last?.id ?? 0, limit })
  })
  for await (const sessions of pages) {
    await alternating(sessions, options.signal, async (session) => {
      const outcome = await reconcile(ctx, session, pass)
      if (outcome === null) return
      counts.lookedUp += 1
      counts[outcome] += 1
    })
    if (options.signal?.aborted) break
  }
  return counts
}

/**
 * Closes the sessions of a transaction that ask for more than is due, so that no payer pays twice. Called after the commit that booked
 * money. Never throws: the next run of `reconcilePayments` closes what failed here. A caller that must answer soon does not wait for it.
 */
export async function closeOpenSessions(ctx: Context, transactionId: number): Promise<void> {
  if (ctx.rehearsal) return
  try {
    const sessions = await listPayableSessions(ctx.db, transactionId)
    if (sessions.length === 0) return
    const pass = await SessionPass.begin(ctx, { ignoresPauses: false })
    await alternating(sessions, undefined, (session) => reconcile(ctx, session, pass))
  } catch (error) {
    ctx.log.warn({ error, transactionId }, 'open sessions could not be closed; the next run retries')
  }
}

/**
 * Polls the sessions of the transaction that are processing; returns whether one still is. Also true if a provider cannot be asked, so that
 * no payer pays twice.
 */
export async function isStillProcessing(ctx: Context, transactionId: number): Promise<boolean> {
  const sessions = await listPayableSessions(ctx.db, transactionId)
  for (const session of sessions.filter(({ status }) => status === 'processing')) {
    try {
      const found = await sessionsOf(session.provider).pollStatus(ctx, session)
      await recordStatus(ctx, session, found)
      if (found.status === 'processing') return true
    } catch (error) {
      ctx.log.warn({ error, transactionId }, 'a payment that is being processed could not be looked up')
      return true
    }
  }
  return false
}

/** Works on the sessions, a few at once, alternating between the accounts. */
async function alternating(
  sessions: readonly ProviderSession[],
  signal: AbortSignal | undefined,
  work: (session: ProviderSession) => Promise<unknown>,
): Promise<void> {
  const queue = new FairQueue((session: ProviderSession) => session.providerAccountId)
  queue.add(sessions)
  const running = new Map<Promise<unknown>, number>()
  const mayBegin = (accountId: number): boolean =>
    [...running.values()].filter((other) => other === accountId).length < SESSIONS_AT_ONCE_OF_ACCOUNT
  const next = (): ProviderSession | null =>
    signal?.aborted || running.size >= SESSIONS_AT_ONCE ? null : queue.take(mayBegin)
  for (let session = next(); session || running.size > 0; session = next()) {
    if (!session) {
      await Promise.race(running.keys())
      continue
    }
    const working: Promise<unknown> = work(session).finally(() => running.delete(working))
    running.set(working, session.providerAccountId)
  }
}

/** Looks up one session and records the result; null if it is not looked up now. */
async function reconcile(ctx: Context, due: ProviderSession, pass: SessionPass): Promise<Outcome | null> {
  // Only another version of Paygate has this provider, and polls its sessions.
  if (!providerOfCode(due.provider)) return null
  if (pass.isPaused(due) || !(await claim(ctx, due))) return null
  // The row may have changed while it waited.
  const session = await getProviderSession(ctx.db, due.id)
  const outcome = await lookUp(ctx, session, pass)
  if (outcome !== 'failed') await pass.answered(session)
  return outcome
}

async function lookUp(ctx: Context, session: ProviderSession, pass: SessionPass): Promise<Outcome> {
  try {
    const found = await pollOrClose(ctx, session)
    await recordStatus(ctx, session, found)
    return found.status === 'paid' || found.status === 'closed' ? found.status : 'stillOpen'
  } catch (error) {
    const { provider, transactionId } = session
    ctx.log.warn({ error, provider, transactionId }, 'a look-up failed')
    await pass.failed(session, error)
    return 'failed'
  }
}

async function claim(ctx: Context, session: ProviderSession): Promise<boolean> {
  return inTransaction(ctx, async (tx) => {
    const now = await databaseNow(ctx, tx)
    return claimLookup(tx, session, now, nextLookupAt(session, now))
  })
}

/** Polls the session. Closes it if it is open and asks for more than is due, for example because the transaction is completed. */
async function pollOrClose(ctx: Context, session: ProviderSession): Promise<PolledStatus> {
  const sessions = sessionsOf(session.provider)
  const found = await sessions.pollStatus(ctx, session)
  if (found.status === 'paid' || found.status === 'closed') return found
  if (isGivenUp(session, await databaseNow(ctx, ctx.db))) return CLOSED
  if (found.status === 'processing') return found
  const transaction = await findTransaction(ctx.db, session.transactionId)
  const isPending = transaction?.status === 'pending'
  if (found.status === 'expired') return isPending ? found : CLOSED
  if (isPending && found.asks <= dueOf(transaction)) return found
  await sessions.close(ctx, session)
  return CLOSED
}
