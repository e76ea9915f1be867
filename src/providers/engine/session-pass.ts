import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { AccountUnavailable } from '#providers/call-provider.ts'
import { endSession } from '#providers/session-status.ts'
import { beginPause, endPause, findPause, listPauses, type ProviderPause } from '#providers/pauses/store.ts'
import { recordLookupResult, type ProviderSession } from '#providers/store.ts'
import { addMs, HOUR_MS } from '#shared/time.ts'
import { isGivenUp, pauseMs, retryAt } from './schedule.ts'

/** A provider that does not answer for this many accounts in a row counts as unreachable for all. */
const MAX_UNANSWERED = 3
/** An account with this many answers of 5xx in a row counts as unavailable. Fewer may be about their sessions alone. */
const MAX_SERVER_ERRORS = 3
/** A failure this long after the last pause counts as the first one. */
const FORGOTTEN_MS = HOUR_MS

/** One pass over sessions: which accounts it does not call, and what it records of each answer and failure. */
export class SessionPass {
  readonly #ctx: Context
  /** Accounts that are not called now. */
  readonly #paused: Set<number>
  /** Accounts with a pause in the database, expired or not: an answer deletes it. */
  readonly #failing: Set<number>
  /** By provider: the accounts for which it did not answer since its last answer for any account. */
  readonly #unanswered = new Map<string, Set<number>>()
  /** By account: the answers of 5xx in a row. */
  readonly #serverErrors = new Map<number, number>()

  private constructor(ctx: Context, pauses: readonly ProviderPause[], active: readonly ProviderPause[]) {
    this.#ctx = ctx
    this.#paused = new Set(active.map(({ providerAccountId }) => providerAccountId))
    this.#failing = new Set(pauses.map(({ providerAccountId }) => providerAccountId))
  }

  static async begin(ctx: Context, { ignoresPauses }: { readonly ignoresPauses: boolean }): Promise<SessionPass> {
    const pauses = await listPauses(ctx.db)
    const now = await databaseNow(ctx, ctx.db)
    return new SessionPass(ctx, pauses, ignoresPauses ? [] : pauses.filter(({ pausedUntil }) => pausedUntil > now))
  }

  /** Whether the session's account, or its provider as a whole, is not called now. */
  isPaused({ provider, providerAccountId }: ProviderSession): boolean {
    return this.#paused.has(providerAccountId) || (this.#unanswered.get(provider)?.size ?? 0) >= MAX_UNANSWERED
  }

  /** Records that the provider answered for the session, which ends the failures of the session and its account. */
  async answered(session: ProviderSession): Promise<void> {
    const { provider, providerAccountId } = session
    this.#unanswered.delete(provider)
    this.#serverErrors.delete(providerAccountId)
    this.#paused.delete(providerAccountId)
    if (session.failures > 0) await inTransaction(this.#ctx, (tx) => recordLookupResult(tx, session, 0, null))
    if (this.#failing.delete(providerAccountId)) await inTransaction(this.#ctx, (tx) => endPause(tx, providerAccountId))
  }

  /** Records a failed look-up or closing: pauses an unavailable account, and sets when the session is tried again, or gives it up. */
  async failed(session: ProviderSession, error: unknown): Promise<void> {
    if (error instanceof AccountUnavailable && this.#recordAccountError(session, error))
      await this.#pause(session, error)
    const now = await databaseNow(this.#ctx, this.#ctx.db)
    if (isGivenUp(session, now)) return endSession(this.#ctx, session, 'closed')
    const { failures, lookups } = session
    // `lookups` includes the failed one.
    const nextAt = retryAt({ ...session, lookups: lookups - 1 }, now)
    await inTransaction(this.#ctx, (tx) => recordLookupResult(tx, session, failures + 1, nextAt))
  }

  /** Counts answers of 5xx. Returns whether the account is unavailable: a few of them may be about their sessions alone. */
  #recordAccountError({ providerAccountId }: ProviderSession, { isServerError }: AccountUnavailable): boolean {
    if (!isServerError) return true
    const errors = (this.#serverErrors.get(providerAccountId) ?? 0) + 1
    this.#serverErrors.set(providerAccountId, errors)
    return errors >= MAX_SERVER_ERRORS
  }

  async #pause(session: ProviderSession, { isUnreachable, reason }: AccountUnavailable): Promise<void> {
    const { provider, providerAccountId } = session
    this.#paused.add(providerAccountId)
    this.#failing.add(providerAccountId)
    if (isUnreachable) {
      const unanswered = this.#unanswered.get(provider) ?? new Set()
      this.#unanswered.set(provider, unanswered.add(providerAccountId))
    }
    await recordPause(this.#ctx, session, reason)
  }
}

async function recordPause(ctx: Context, session: ProviderSession, reason: string): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    const { appId, provider, providerAccountId } = session
    const now = await databaseNow(ctx, tx)
    const last = await findPause(tx, providerAccountId)
    const before = last && now < addMs(last.pausedUntil, FORGOTTEN_MS) ? last : null
    const failures = before?.failures ?? 0
    const since = before?.since ?? now
    const pausedUntil = addMs(now, pauseMs(failures))
    const pause = { appId, provider, providerAccountId, failures: failures + 1, reason, since, pausedUntil }
    await beginPause(tx, pause, now)
  })
}
