import { findApp } from '#apps/store.ts'
import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction } from '#db/transaction.ts'
import { findTransaction } from '#transactions/store.ts'
import { endSession } from './begin-session.ts'
import { noteRefunds, noteRefundsHourly } from './card/note-refunds.ts'
import { ProviderUnreachable } from './provider-unreachable.ts'
import type { LookUp, Provider } from './provider.ts'
import { providerOfCode } from './providers.ts'
import { isGivenUp, nextLookupAt } from './schedule.ts'
import { claimLookup, listDueSessions, listPayableSessions } from './store.ts'
import type { ProviderSession } from './store.ts'

const BATCH = 50
/** Providers answer in some 100 ms; a few at a time keep a backlog short without flooding anybody. */
const AT_ONCE = 4

export interface ReconcileOptions {
  readonly signal?: AbortSignal
  readonly appId?: number
  /** Look up everything that may still be paid, due or not: what an operator asks for. */
  readonly all?: boolean
}

/** What one run did, in sessions. */
export interface ReconcileCounts {
  lookedUp: number
  /** Found paid: the notification never came, or comes later and changes nothing. */
  paid: number
  /** Not payable any more: expired, or paid in another way and closed now. */
  closed: number
  stillOpen: number
  /** The provider did not answer; tried again later. */
  failed: number
  /** Refunds made in Stripe's dashboard that are new to operators; in payments. */
  refundsNoted: number
}

/**
 * Looks up card and PayOS payments that are still pending at their provider, so that a notification that never came loses nothing
 * (contract 4), closes the sessions of transactions that were completed in another way, and lists refunds made in Stripe's dashboard.
 * Safe to run anywhere at any time: each look-up is claimed, and what it finds goes through the same door as a notification.
 */
export async function reconcilePayments(ctx: Context, options: ReconcileOptions = {}): Promise<ReconcileCounts> {
  const counts = await lookUpSessions(ctx, options)
  if (!options.signal?.aborted) {
    counts.refundsNoted = await (options.all ? noteRefunds(ctx, options) : noteRefundsHourly(ctx, options))
  }
  return counts
}

function noCounts(): ReconcileCounts {
  return { lookedUp: 0, paid: 0, closed: 0, stillOpen: 0, failed: 0, refundsNoted: 0 }
}

async function lookUpSessions(ctx: Context, options: ReconcileOptions): Promise<ReconcileCounts> {
  const counts = noCounts()
  const silent = new Set<string>()
  for (let afterId = 0; ;) {
    const sessions = await listDueSessions(ctx.db, {
      dueAt: options.all ? null : ctx.clock.now(),
      appId: options.appId ?? null,
      afterId,
      limit: BATCH,
    })
    const last = sessions.at(-1)
    if (!last) return counts
    afterId = last.id
    await inTurns(sessions, options.signal, (session) => reconcile(ctx, session, counts, silent))
    if (options.signal?.aborted) return counts
  }
}

/**
 * Closes what is still payable of a transaction that was completed in another way. Best effort, after commit: what fails is closed by
 * the next run of `reconcilePayments`.
 */
export async function closeOpenSessions(ctx: Context, transactionId: number): Promise<void> {
  const counts = noCounts()
  const sessions = await listPayableSessions(ctx.db, transactionId)
  await inTurns(sessions, undefined, (session) => reconcile(ctx, session, counts, new Set()))
}

/** `closeOpenSessions` that nobody waits for. */
export function closeSoon(ctx: Context, transactionId: number): void {
  closeOpenSessions(ctx, transactionId).catch((error: unknown) => {
    ctx.log.warn({ error, transactionId }, 'open sessions were not closed: the next run does it')
  })
}

async function inTurns(
  sessions: readonly ProviderSession[],
  signal: AbortSignal | undefined,
  work: (session: ProviderSession) => Promise<void>,
): Promise<void> {
  const waiting = [...sessions]
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next && !signal?.aborted; next = waiting.shift()) await work(next)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

async function reconcile(
  ctx: Context,
  session: ProviderSession,
  counts: ReconcileCounts,
  silent: Set<string>,
): Promise<void> {
  const provider = providerOfCode(session.provider)
  const app = await findApp(ctx.db, session.appId)
  const account = `${session.provider} ${session.appId}`
  if (!provider?.lookUp || !app || silent.has(session.provider) || silent.has(account)) return
  if (!(await claim(ctx, session))) return
  counts.lookedUp += 1
  try {
    const found = await settle(ctx, provider, app, session)
    if (found === 'open') counts.stillOpen += 1
    else {
      counts[found] += 1
      await endSession(ctx, session, found)
    }
  } catch (error) {
    counts.failed += 1
    // Who did not answer a moment ago is left alone until the next run: an app's account, or the provider altogether.
    silent.add(error instanceof ProviderUnreachable ? session.provider : account)
    ctx.log.warn({ error, provider: session.provider, transactionId: session.transactionId }, 'a look-up failed')
    if (isGivenUp(session, ctx.clock.now())) await endSession(ctx, session, 'closed')
  }
}

async function claim(ctx: Context, session: ProviderSession): Promise<boolean> {
  return inTransaction(ctx, (tx) => claimLookup(tx, session, nextLookupAt(session, tx.now)))
}

/** Looks the session up; one that is still open, of a transaction that was completed in another way, is closed. */
async function settle(ctx: Context, provider: Provider, app: App, session: ProviderSession): Promise<LookUp> {
  const found = (await provider.lookUp?.(ctx, app, session)) ?? 'open'
  if (found !== 'open') return found
  const transaction = await findTransaction(ctx.db, session.transactionId)
  if (transaction?.status === 'pending') return isGivenUp(session, ctx.clock.now()) ? 'closed' : 'open'
  await provider.close?.(ctx, app, session)
  return 'closed'
}
