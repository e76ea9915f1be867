import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { listDueRefunds } from '#payments/store.ts'
import { databaseNow } from '#db/database-now.ts'
import { addMs, HOUR_MS } from '#shared/time.ts'
import { openTurns } from '#shared/turns.ts'
import { dueOf } from '#payments/balance.ts'
import { findTransaction } from '#transactions/store.ts'
import { AccountUnavailable } from './account-unavailable.ts'
import { endSession, recordLookUp } from './open-session.ts'
import type { LookUp, Sessions } from './provider.ts'
import { listProviders, providerOfCode } from './providers.ts'
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
  recordLookup,
  type Account,
  type ProviderSession,
} from './store.ts'

const BATCH = 1000
/** Providers answer in some 100 ms; a few at a time keep a backlog short without flooding anybody. */
const AT_ONCE = 8
/** Of these, so that an account whose provider hangs leaves room for others. */
const AT_ONCE_OF_ACCOUNT = 4
/** A provider that does not answer for this many accounts in a row is away for all. */
const ACCOUNTS_AWAY = 3
/** An account's failure so long after its last pause is its first one again. */
const FORGOTTEN_MS = HOUR_MS

export interface ReconcileOptions {
  readonly signal?: AbortSignal
  readonly appId?: number
  /** Look up everything that may still be paid, due or not: what an operator asks for. */
  readonly all?: boolean
  /** Also have the providers list refunds that were made there: once an hour is enough. With `all` they do. */
  readonly withRefundLists?: boolean
}

/** What one run did, in sessions. */
export interface ReconcileCounts {
  lookedUp: number
  /** Found paid: the notification never came, or comes later and changes nothing. */
  paid: number
  /** Not payable any more: expired, or paid in another way and closed now. */
  closed: number
  stillOpen: number
  /** The provider did not answer, or refused; tried again later. */
  failed: number
  /** Refunds made at a provider that are new to operators; in payments. */
  refundsNoted: number
  /** Refunds that were under way and succeeded or failed. */
  refundsEnded: number
}

/** What one pass over sessions knows. */
interface Pass {
  readonly counts: ReconcileCounts
  /** Accounts of which nothing is asked now. */
  readonly paused: Set<string>
  /** Accounts with a pause in the database, over or not: an answer ends it. */
  readonly failing: Set<string>
  /** The accounts for which a provider did not answer since it last did for any, by provider. */
  readonly away: Map<string, Set<string>>
}

/**
 * Looks up payments that are still pending at their provider, so that a notification that never came loses nothing
 * (contract 4), closes the sessions of transactions that were completed in another way, and lists refunds that were made at a provider.
 * Safe to run anywhere at any time: each look-up is claimed, and what it finds goes through the same door as a notification. A session
 * that fails waits by itself, longer each time; only a provider that does not answer, or refuses an account's credentials, pauses the
 * account, and the accounts take turns (contract 7, A failure delays its own row).
 */
export async function reconcilePayments(ctx: Context, options: ReconcileOptions = {}): Promise<ReconcileCounts> {
  const counts = await lookUpSessions(ctx, options)
  if (!options.signal?.aborted) {
    counts.refundsEnded = await reconcileRefunds(ctx, options)
    if (options.all || options.withRefundLists) counts.refundsNoted = await noteRefunds(ctx, options)
  }
  return counts
}

/** Whether a session or a refund is to be looked up now. */
export async function hasDueLookUps(ctx: Context): Promise<boolean> {
  const first = { dueAt: await databaseNow(ctx, ctx.db), appId: null, afterId: 0, limit: 1 }
  const due = (await listDueSessions(ctx.db, first)).length + (await listDueRefunds(ctx.db, first)).length
  return due > 0
}

/** Has the providers list their refunds. */
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
    away: new Map(),
  }
}

function nameOf({ providerAccountId }: Account): string {
  return String(providerAccountId)
}

async function lookUpSessions(ctx: Context, options: ReconcileOptions): Promise<ReconcileCounts> {
  const pass = await beginPass(ctx, options.all ?? false)
  for (let afterId = 0; ;) {
    const sessions = await listDueSessions(ctx.db, {
      dueAt: options.all ? null : await databaseNow(ctx, ctx.db),
      appId: options.appId ?? null,
      afterId,
      limit: BATCH,
    })
    const last = sessions.at(-1)
    if (!last) return pass.counts
    afterId = last.id
    await inTurns(sessions, options.signal, (session) => reconcile(ctx, session, pass))
    if (options.signal?.aborted) return pass.counts
  }
}

/**
 * Closes what asks for more than is due of a transaction once money came, so that nobody pays it twice: called after the commit by
 * whatever booked the money. Never throws: what fails here is closed by the next run of `reconcilePayments`. Whoever must answer soon
 * does not wait for it.
 */
export async function closeOpenSessions(ctx: Context, transactionId: number): Promise<void> {
  if (ctx.rehearsal) return
  try {
    const sessions = await listPayableSessions(ctx.db, transactionId)
    if (sessions.length === 0) return
    const pass = await beginPass(ctx, false)
    await inTurns(sessions, undefined, (session) => reconcile(ctx, session, pass))
  } catch (error) {
    ctx.log.warn({ error, transactionId }, 'open sessions were not closed: the next run does it')
  }
}

/**
 * Asks about money of the transaction that was on its way; returns whether some still is. Where the provider cannot say now, it is:
 * nobody shall pay twice.
 */
export async function isStillProcessing(ctx: Context, transactionId: number): Promise<boolean> {
  const sessions = await listPayableSessions(ctx.db, transactionId)
  for (const session of sessions.filter(({ status }) => status === 'processing')) {
    const provider = providerOfCode(session.provider)
    try {
      const found = (await provider?.lookUp?.(ctx, session)) ?? CLOSED
      await recordLookUp(ctx, session, found)
      if (found.status === 'processing') return true
    } catch (error) {
      ctx.log.warn({ error, transactionId }, 'a payment that is being processed could not be looked up')
      return true
    }
  }
  return false
}

/** Works on the sessions, a few at once, and one of each account in turn. */
async function inTurns(
  sessions: readonly ProviderSession[],
  signal: AbortSignal | undefined,
  work: (session: ProviderSession) => Promise<void>,
): Promise<void> {
  const turns = openTurns((session: ProviderSession) => nameOf(session))
  turns.add(sessions)
  const running = new Map<Promise<void>, string>()
  const mayBegin = (account: string): boolean =>
    [...running.values()].filter((other) => other === account).length < AT_ONCE_OF_ACCOUNT
  const next = (): ProviderSession | null => (signal?.aborted || running.size >= AT_ONCE ? null : turns.take(mayBegin))
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
  const provider = providerOfCode(due.provider)
  if (!provider || isPaused(pass, due)) return
  if (!(await claim(ctx, due))) return
  pass.counts.lookedUp += 1
  // It may have waited for its turn, and been opened meanwhile.
  const session = await getProviderSession(ctx.db, due.id)
  try {
    const found = await settle(ctx, provider, session)
    await recordLookUp(ctx, session, found)
    if (found.status === 'open' || found.status === 'processing') pass.counts.stillOpen += 1
    else pass.counts[found.status] += 1
  } catch (error) {
    pass.counts.failed += 1
    const { transactionId } = session
    ctx.log.warn({ error, provider: session.provider, transactionId }, 'a look-up failed')
    await noteFailure(ctx, session, error, pass)
    return
  }
  await noteAnswer(ctx, session, pass)
}

function isPaused({ paused, away }: Pass, session: ProviderSession): boolean {
  return paused.has(nameOf(session)) || (away.get(session.provider)?.size ?? 0) >= ACCOUNTS_AWAY
}

async function claim(ctx: Context, session: ProviderSession): Promise<boolean> {
  return inTransaction(ctx, async (tx) => {
    const now = await databaseNow(ctx, tx)
    return claimLookup(tx, session, now, nextLookupAt(session, now))
  })
}

/** Looks the session up; one that is still open and asks for more than is due, as of a completed transaction, is closed. */
async function settle(ctx: Context, provider: Partial<Sessions>, session: ProviderSession): Promise<LookUp> {
  const found = (await provider.lookUp?.(ctx, session)) ?? CLOSED
  if (found.status === 'paid' || found.status === 'closed') return found
  if (isGivenUp(session, await databaseNow(ctx, ctx.db))) return CLOSED
  if (found.status === 'processing') return found
  const transaction = await findTransaction(ctx.db, session.transactionId)
  if (transaction?.status === 'pending' && found.asks <= dueOf(transaction)) return found
  await provider.close?.(ctx, session)
  return CLOSED
}

const CLOSED: LookUp = { status: 'closed' }

/** The account's provider answers: whatever failed before is over. */
async function noteAnswer(ctx: Context, session: ProviderSession, pass: Pass): Promise<void> {
  const account = nameOf(session)
  pass.away.delete(session.provider)
  pass.paused.delete(account)
  if (session.failures > 0) await inTransaction(ctx, (tx) => recordLookup(tx, session, 0, null))
  if (pass.failing.delete(account)) await inTransaction(ctx, (tx) => endPause(tx, session))
}

async function noteFailure(ctx: Context, session: ProviderSession, error: unknown, pass: Pass): Promise<void> {
  if (error instanceof AccountUnavailable) {
    const account = nameOf(session)
    pass.paused.add(account)
    pass.failing.add(account)
    if (error.isProviderAway) {
      pass.away.set(session.provider, (pass.away.get(session.provider) ?? new Set()).add(account))
    }
    await pauseAccount(ctx, session, error.reason)
  }
  const now = await databaseNow(ctx, ctx.db)
  if (isGivenUp(session, now)) await endSession(ctx, session, 'closed')
  else {
    const { failures, lookups } = session
    // `lookups` counts the one that failed.
    const nextAt = retryAt({ ...session, lookups: lookups - 1 }, now)
    await inTransaction(ctx, (tx) => recordLookup(tx, session, failures + 1, nextAt))
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
