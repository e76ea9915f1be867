import type { Context } from '#context.ts'
import { databasePresent } from '#db/database-now.ts'
import { shuffled } from '#shared/shuffled.ts'
import { SECOND_MS } from '#shared/time.ts'
import { openFairQueue } from '#shared/fair-queue.ts'
import { claimDueEvents, releaseEvents, type LeasedEvent } from './claim-due-events.ts'
import { shareClaims } from './share-claims.ts'
import { listAppsWithPending, listDue, type DueEvent } from './claims/store.ts'

/** How often it polls for apps with due events when nothing wakes the sender. */
const POLL_MS = SECOND_MS
/** Maximum number of due events listed per app. Listing costs more than claiming one event, so one list serves many claims. */
const LIST_SIZE = 512
/** Maximum number of due events listed in one query, over all apps. */
const LIST_ROWS = 4096

/** Leases due events a little ahead of sending, in fair shares between the apps. */
export interface Claimer {
  /** Claims what can be sent soon; false if there was nothing to claim. */
  claim(): Promise<boolean>
  /** The next claimed event of the app that has waited longest, among those that `mayBegin`; null if there is none. */
  take(mayBegin: (appId: number) => boolean): LeasedEvent | null
  /** Stops claiming events of the app for a while, after a failure on our side. */
  pause(appId: number, ms: number): void
  /** Makes the next `claim` poll for apps with due events. */
  pollSoon(): void
  /** Milliseconds until the next regular poll. */
  untilPollMs(): number
  /** Whether no event is claimed or known to be due. */
  isIdle(): boolean
  /** Releases the lease of an event that was taken and not sent. */
  release(event: LeasedEvent): Promise<void>
  /** Releases everything that was not taken. */
  releaseAll(): Promise<void>
}

/** `depthOf`: how many claimed events of an app are useful. */
export function openClaimer(ctx: Context, depthOf: (appId: number) => number): Claimer {
  // Apps with due events, each with its listed events that are not claimed. An empty list is read again. The app that has waited longest is
  // first.
  const due = new Map<number, DueEvent[]>()
  const claimed = openFairQueue(({ appId }: LeasedEvent) => appId)
  const pausedUntilMs = new Map<number, number>()
  let mustPoll = true
  let polledAtMs = 0

  const untilPollMs = (): number => Math.max(0, Math.ceil(polledAtMs + POLL_MS - performance.now()))

  const isPaused = (appId: number): boolean => {
    const untilMs = pausedUntilMs.get(appId)
    if (untilMs !== undefined && untilMs <= performance.now()) pausedUntilMs.delete(appId)
    return pausedUntilMs.has(appId)
  }

  /** Reads which apps have due events. */
  const poll = async (): Promise<void> => {
    mustPoll = false
    polledAtMs = performance.now()
    const pending = await listAppsWithPending(ctx.db, databasePresent(ctx))
    const found = pending.filter(({ appId, isDue }) => isDue && !due.has(appId) && !isPaused(appId))
    for (const { appId } of found.sort((a, b) => a.dueAt.getTime() - b.dueAt.getTime())) due.set(appId, [])
  }

  /** Lists due events for apps whose list is empty. Drops the apps that have none. */
  const listMissing = async (appIds: readonly number[]): Promise<void> => {
    const missing = appIds.filter((appId) => due.get(appId)?.length === 0)
    if (missing.length === 0) return
    const size = Math.min(LIST_SIZE, Math.floor(LIST_ROWS / missing.length))
    const listed = await listDue(ctx.db, missing, size, databasePresent(ctx))
    for (const appId of missing) {
      const events = listed.filter((event) => event.appId === appId)
      if (events.length > 0) due.set(appId, events)
      else due.delete(appId)
    }
  }

  const claimShares = async (shares: ReadonlyMap<number, number>): Promise<void> => {
    await listMissing([...shares.keys()])
    const candidates = [...shares].flatMap(([appId, share]) => due.get(appId)?.splice(0, share) ?? [])
    const leased = await claimDueEvents(ctx, candidates)
    claimed.add(leased)
    for (const appId of shares.keys()) {
      const listed = due.get(appId)
      if (!listed) continue
      // Deleted and set again, which moves it behind the apps that have waited longer.
      due.delete(appId)
      const missed = countOf(candidates, appId) - countOf(leased, appId)
      // Another daemon claims the same events. Shuffled, so that the two contend less.
      due.set(appId, missed > 0 ? shuffled(listed) : listed)
    }
  }

  return {
    untilPollMs,
    pause(appId, ms) {
      pausedUntilMs.set(appId, performance.now() + ms)
      due.delete(appId)
    },
    pollSoon: () => void (mustPoll = true),
    take: (mayBegin) => claimed.take(mayBegin),
    isIdle: () => due.size + claimed.size === 0,
    release: (event) => releaseEvents(ctx, [event]),
    releaseAll: () => releaseEvents(ctx, claimed.takeAll()),
    async claim() {
      // Polls before the claim, so that an app with its first event does not wait until the others have nothing left.
      if (mustPoll || untilPollMs() === 0) await poll()
      const apps = [...due.keys()].map((appId) => ({ appId, held: claimed.sizeOf(appId), depth: depthOf(appId) }))
      const shares = shareClaims(apps, claimed.size)
      if (shares.size === 0) return false
      await claimShares(shares)
      return true
    },
  }
}

function countOf(events: readonly { readonly appId: number }[], appId: number): number {
  return events.filter((event) => event.appId === appId).length
}
