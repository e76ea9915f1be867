import type { Context } from '#context.ts'
import { databasePresent } from '#db/database-now.ts'
import { shuffled } from '#shared/shuffled.ts'
import { SECOND_MS } from '#shared/time.ts'
import { FairQueue } from '#shared/fair-queue.ts'
import { claimDueEvents, releaseEvents, type LeasedEvent } from './claim-due-events.ts'
import { shareClaims } from './share-claims.ts'
import type { Slots } from './slots.ts'
import { listAppsWithPending, listDue, type DueEvent } from './claims/store.ts'

/** How often it polls for apps with due events when nothing wakes the sender. */
const POLL_MS = SECOND_MS
/** Maximum number of due events listed per app. Listing costs more than claiming one event, so one list serves many claims. */
const LIST_SIZE = 512
/** Maximum number of due events listed in one query, over all apps. */
const LIST_ROWS = 4096

/** Leases due events a little ahead of sending, in fair shares between the apps. */
export class Claimer {
  readonly #ctx: Context
  readonly #slots: Slots
  /**
   * Apps with due events, each with its listed events that are not claimed. An empty list is read again. The app that has waited longest is
   * first.
   */
  readonly #due = new Map<number, DueEvent[]>()
  readonly #claimed = new FairQueue(({ appId }: LeasedEvent) => appId)
  readonly #pausedUntilMs = new Map<number, number>()
  #mustPoll = true
  #polledAtMs = 0

  constructor(ctx: Context, slots: Slots) {
    this.#ctx = ctx
    this.#slots = slots
  }

  /** Claims what can be sent soon; false if there was nothing to claim. */
  async claim(): Promise<boolean> {
    // Polls before the claim, so that an app with its first event does not wait until the others have nothing left.
    if (this.#mustPoll || this.untilPollMs() === 0) await this.#poll()
    const apps = [...this.#due.keys()].map((appId) => ({
      appId,
      held: this.#claimed.sizeOf(appId),
      depth: this.#slots.depth(appId),
    }))
    const shares = shareClaims(apps, this.#claimed.size)
    if (shares.size === 0) return false
    await this.#claimShares(shares)
    return true
  }

  /** The next claimed event of the app that has waited longest, among those that `mayBegin`; null if there is none. */
  take(mayBegin: (appId: number) => boolean): LeasedEvent | null {
    return this.#claimed.take(mayBegin)
  }

  /** Stops claiming events of the app for a while, after a failure on our side. */
  pause(appId: number, ms: number): void {
    this.#pausedUntilMs.set(appId, performance.now() + ms)
    this.#due.delete(appId)
  }

  /** Makes the next `claim` poll for apps with due events. */
  pollSoon(): void {
    this.#mustPoll = true
  }

  /** Milliseconds until the next regular poll. */
  untilPollMs(): number {
    return Math.max(0, Math.ceil(this.#polledAtMs + POLL_MS - performance.now()))
  }

  /** Whether no event is claimed or known to be due. */
  isIdle(): boolean {
    return this.#due.size + this.#claimed.size === 0
  }

  /** Releases the lease of an event that was taken and not sent. */
  async release(event: LeasedEvent): Promise<void> {
    await releaseEvents(this.#ctx, [event])
  }

  /** Releases everything that was not taken. */
  async releaseAll(): Promise<void> {
    await releaseEvents(this.#ctx, this.#claimed.takeAll())
  }

  /** Reads which apps have due events. */
  async #poll(): Promise<void> {
    this.#mustPoll = false
    this.#polledAtMs = performance.now()
    const pending = await listAppsWithPending(this.#ctx.db, databasePresent(this.#ctx))
    const found = pending.filter(({ appId, isDue }) => isDue && !this.#due.has(appId) && !this.#isPaused(appId))
    for (const { appId } of found.sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime())) this.#due.set(appId, [])
  }

  #isPaused(appId: number): boolean {
    const untilMs = this.#pausedUntilMs.get(appId)
    if (untilMs !== undefined && untilMs <= performance.now()) this.#pausedUntilMs.delete(appId)
    return this.#pausedUntilMs.has(appId)
  }

  async #claimShares(shares: ReadonlyMap<number, number>): Promise<void> {
    await this.#listMissing([...shares.keys()])
    const candidates = [...shares].flatMap(([appId, share]) => this.#due.get(appId)?.splice(0, share) ?? [])
    const leased = await claimDueEvents(this.#ctx, candidates)
    this.#claimed.add(leased)
    for (const appId of shares.keys()) {
      const listed = this.#due.get(appId)
      if (!listed) continue
      // Deleted and set again, which moves it behind the apps that have waited longer.
      this.#due.delete(appId)
      const missed = countOf(candidates, appId) - countOf(leased, appId)
      // Another daemon claims the same events. Shuffled, so that the two contend less.
      this.#due.set(appId, missed > 0 ? shuffled(listed) : listed)
    }
  }

  /** Lists due events for apps whose list is empty. Drops the apps that have none. */
  async #listMissing(appIds: readonly number[]): Promise<void> {
    const missing = appIds.filter((appId) => this.#due.get(appId)?.length === 0)
    if (missing.length === 0) return
    const size = Math.min(LIST_SIZE, Math.floor(LIST_ROWS / missing.length))
    const listed = await listDue(this.#ctx.db, missing, size, databasePresent(this.#ctx))
    for (const appId of missing) {
      const events = listed.filter((event) => event.appId === appId)
      if (events.length > 0) this.#due.set(appId, events)
      else this.#due.delete(appId)
    }
  }
}

function countOf(events: readonly { readonly appId: number }[], appId: number): number {
  return events.filter((event) => event.appId === appId).length
}
