import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { listDueRefunds } from '#payments/store.ts'
import { databaseNow } from '#db/database-now.ts'
import { readPages } from '#db/read-pages.ts'
import { addMs, HOUR_MS } from '#shared/time.ts'
import { openFairQueue } from '#shared/fair-queue.ts'
import { dueOf } from '#payments/balance.ts'
import { findTransaction } from '#transactions/store.ts'
import { AccountUnavailable } from '#providers/call-provider.ts'
import { endSession, recordStatus } from '#providers/open-session.ts'
import { CLOSED, type PolledStatus } from '#providers/provider.ts'
import { listProviders, providerOfCode, sessionsOf } from '#providers/providers.ts'
import { reconcileRefunds } from './refunds.ts'
import { isGivenUp, nextLookupAt, pauseMs, retryAt } from './schedule.ts'
import {
  beginPause,
  claimLookup,
  endPause,
  findPause,
  getProviderSession,
  listDueSessions,
  listPauses,
  listPayableSessions,
  recordLookupResult,
  type Account,
  type ProviderSession,
} from '#providers/store.ts'

const BATCH = 1000
/** Providers answer in about 100 ms: a few calls at once keep the backlog short without flooding them. */
const AT_ONCE = 8
/** Per account, so that an account with a hanging provider leaves room for others. */
const AT_ONCE_OF_ACCOUNT = 4
/** A provider that does not answer for this many accounts in a row counts as unreachable for all. */
const MAX_UNANSWERED = 3
/** A failure this long after the last pause counts as the first one. */
const FORGOTTEN_MS = HOUR_MS

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
  /** No longer payable: expired, or closed now since it was paid in another way. */
  closed: number
  stillOpen: number
  /** The provider did not answer, or refused; tried again later. */
  failed: number
  /** New refunds that were made at a provider. */
  refundsNoted: number
  /** Pending refunds that succeeded or failed. */
  refundsEnded: number
}

/** The state of one pass over sessions. */
interface Pass {
  readonly counts: ReconcileCounts
  /** Accounts that are not called now. */
  readonly paused: Set<string>
  /** Accounts with a pause in the database, expired or not: an answer deletes it. */
  readonly failing: Set<string>
  /** By provider: the accounts for which it did not answer since its last answer for any account. */
  readonly unanswered: Map<string, Set<string>>
}

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
export async function hasDueLookUps(ctx: Context): Promise<boolean> {
  const first = { dueAt: await databaseNow(ctx, ctx.db), appId: null, afterId: 0, after: null, limit: 1 }
  const due = (await listDueSessions(ctx.db, first)).length + (await listDueRefunds(ctx.db, first)).length
  return due > 0
}

/** Lists the refunds that were made at the providers; returns how many are new. */
async function noteRefunds(ctx: Context, options: ReconcileOptions): Promise<number> {
  let noted = 0
  for (const provider of listProviders()) noted += (await provider.noteRefunds?.(ctx, options)) ?? 0
  return noted
}

async function beginPass(ctx: Context, isPauseIgnored: boolean): Promise<Pass> {
  const pauses = await listPauses(ctx.db)
  const now = await databaseNow(ctx, ctx.db)
  const active = isPauseIgnored ? [] : pauses.filter(({ pausedUntil }) => pausedUntil > now)
  return {
    counts: { lookedUp: 0, paid: 0, closed: 0, stillOpen: 0, failed: 0, refundsNoted: 0, refundsEnded: 0 },
    paused: new Set(active.map(nameOf)),
    failing: new Set(pauses.map(nameOf)),
    unanswered: new Map(),
  }
}

function nameOf({ providerAccountId }: Account): string {
  return String(providerAccountId)
}

async function pollSessions(ctx: Context, options: ReconcileOptions): Promise<ReconcileCounts> {
  const pass = await beginPass(ctx, options.all ?? false)
  const pages = readPages<ProviderSession>(BATCH, async (last, limit) => {
    const dueAt = options.all ? null : await databaseNow(ctx, ctx.db)
    return listDueSessions(ctx.db, { dueAt, appId: options.appId ?? null, afterId: last?.id ?? 0, limit })
  })
  for await (const sessions of pages) {
    await alternating(sessions, options.signal, (session) => reconcile(ctx, session, pass))
    if (options.signal?.aborted) break
  }
  return pass.counts
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
    const pass = await beginPass(ctx, false)
    await alternating(sessions, undefined, (session) => reconcile(ctx, session, pass))
  } catch (error) {
    ctx.log.warn({ error, transactionId }, 'open sessions were not closed: the next run does it')
  }
}

/**
 * Polls the sessions of the transaction that are processing; returns whether one still is. Also true if the provider cannot be reached, or
 * this version does not have it, so that no payer pays twice.
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
  work: (session: ProviderSession) => Promise<void>,
): Promise<void> {
  const queue = openFairQueue((session: ProviderSession) => nameOf(session))
  queue.add(sessions)
  const running = new Map<Promise<void>, string>()
  const mayBegin = (account: string): boolean =>
    [...running.values()].filter((other) => other === account).length < AT_ONCE_OF_ACCOUNT
  const next = (): ProviderSession | null => (signal?.aborted || running.size >= AT_ONCE ? null : queue.take(mayBegin))
  for (let session = next(); session || running.size > 0; session = next()) {
    if (!session) {
      await Promise.race(running.keys())
      continue
    }
    const working: Promise<void> = work(session).finally(() => running.delete(working))
    running.set(working, nameOf(session))
  }
}

async function reconcile(ctx: Context, due: ProviderSession, pass: Pass): Promise<void> {
  // A provider that only another version has: its sessions are left to that version.
  if (!providerOfCode(due.provider)) return
  if (isPaused(pass, due)) return
  if (!(await claim(ctx, due))) return
  pass.counts.lookedUp += 1
  // The row may have changed while it waited.
  const session = await getProviderSession(ctx.db, due.id)
  try {
    const found = await pollOrClose(ctx, session)
    await recordStatus(ctx, session, found)
    if (found.status === 'paid' || found.status === 'closed') pass.counts[found.status] += 1
    else pass.counts.stillOpen += 1
  } catch (error) {
    pass.counts.failed += 1
    const { transactionId } = session
    ctx.log.warn({ error, provider: session.provider, transactionId }, 'a look-up failed')
    await noteFailure(ctx, session, error, pass)
    return
  }
  await noteAnswer(ctx, session, pass)
}

function isPaused({ paused, unanswered }: Pass, session: ProviderSession): boolean {
  return paused.has(nameOf(session)) || (unanswered.get(session.provider)?.size ?? 0) >= MAX_UNANSWERED
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

/** Records that the provider answered for the account, which ends its failures. */
async function noteAnswer(ctx: Context, session: ProviderSession, pass: Pass): Promise<void> {
  const account = nameOf(session)
  pass.unanswered.delete(session.provider)
  pass.paused.delete(account)
  if (session.failures > 0) await inTransaction(ctx, (tx) => recordLookupResult(tx, session, 0, null))
  if (pass.failing.delete(account)) await inTransaction(ctx, (tx) => endPause(tx, session))
}

async function noteFailure(ctx: Context, session: ProviderSession, error: unknown, pass: Pass): Promise<void> {
  if (error instanceof AccountUnavailable) {
    const account = nameOf(session)
    pass.paused.add(account)
    pass.failing.add(account)
    if (error.isUnreachable) {
      pass.unanswered.set(session.provider, (pass.unanswered.get(session.provider) ?? new Set()).add(account))
    }
    await pauseAccount(ctx, session, error.reason)
  }
  const now = await databaseNow(ctx, ctx.db)
  if (isGivenUp(session, now)) await endSession(ctx, session, 'closed')
  else {
    const { failures, lookups } = session
    // `lookups` includes the failed one.
    const nextAt = retryAt({ ...session, lookups: lookups - 1 }, now)
    await inTransaction(ctx, (tx) => recordLookupResult(tx, session, failures + 1, nextAt))
  }
}

async function pauseAccount(ctx: Context, account: Account, reason: string): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    const { appId, provider, providerAccountId } = account
    const now = await databaseNow(ctx, tx)
    const last = await findPause(tx, account)
    const before = last && now < addMs(last.pausedUntil, FORGOTTEN_MS) ? last : null
    const failures = before?.failures ?? 0
    const since = before?.since ?? now
    const pausedUntil = addMs(now, pauseMs(failures))
    const pause = { appId, provider, providerAccountId, failures: failures + 1, reason, since, pausedUntil }
    await beginPause(tx, pause, now)
  })
}
