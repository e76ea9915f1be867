/** Maximum number of young attempts, over all apps. */
const MAX_YOUNG = 128
/** Places reserved for apps without an open attempt, so that prompt receivers do not wait for slow ones. */
const FIRST_PLACES = 16
/** Maximum number of open attempts, over all apps: each holds a socket. */
const MAX_OPEN = 2048
/** An attempt that is open longer gives its place to others; its app gets no further one until it ends. */
const STALL_MS = 1000
const FIRST_WINDOW = 4
const MAX_WINDOW = 64
const SLOWEST_WINDOW = 1
/** Windows of events held ready for a receiver that keeps its whole window busy: a claim takes as long as many such answers. */
const WINDOWS_AHEAD = 4

/** A begun attempt. */
export interface Slot {
  readonly appId: number
  readonly startedMs: number
  isYoung: boolean
}

/**
 * How many attempts may run at once, so that no receiver holds back another's deliveries. Each app has a window that grows while its
 * receiver answers at once and closes to one attempt at a time when it does not answer at all. Attempts open for more than a second
 * stop counting against the others, so that receivers that hang hold sockets, never places.
 */
export interface Slots {
  /** How many attempts the app may begin now. */
  room(appId: number): number
  /**
   * How many events of the app are worth holding ready: those that it might begin if all places were free and, unless its receiver is
   * slow, as many behind them, or some windows of them where it is fast.
   */
  depth(appId: number): number
  begin(appId: number): Slot
  /** `hung`: the receiver gave no answer in time. */
  end(slot: Slot, hung: boolean): void
}

interface AppLimit {
  window: number
  open: number
  stalled: number
}

/** `nowMs` is a monotonic clock. */
export function openSlots(nowMs: () => number): Slots {
  const limits = new Map<number, AppLimit>()
  const young = new Set<Slot>()
  let open = 0

  const limitOf = (appId: number): AppLimit => {
    const limit = limits.get(appId) ?? { window: FIRST_WINDOW, open: 0, stalled: 0 }
    limits.set(appId, limit)
    return limit
  }

  const ageYoung = (): void => {
    const oldest = nowMs() - STALL_MS
    // In the order of their beginning, so the first that is young enough ends the search.
    for (const slot of young) {
      if (slot.startedMs > oldest) return
      young.delete(slot)
      slot.isYoung = false
      const limit = limitOf(slot.appId)
      limit.stalled += 1
      limit.window = Math.min(limit.window, FIRST_WINDOW)
    }
  }

  const windowsAhead = ({ stalled, window }: AppLimit): number => {
    if (stalled > 0 || window < FIRST_WINDOW) return 0
    return window < MAX_WINDOW ? 1 : WINDOWS_AHEAD
  }

  return {
    room(appId) {
      ageYoung()
      const limit = limitOf(appId)
      const places = limit.open === 0 ? MAX_YOUNG : MAX_YOUNG - FIRST_PLACES
      return Math.max(0, Math.min(limit.window - limit.open, places - young.size, MAX_OPEN - open))
    },
    depth(appId) {
      const limit = limitOf(appId)
      return Math.max(0, limit.window - limit.open) + limit.window * windowsAhead(limit)
    },
    begin(appId) {
      const slot = { appId, startedMs: nowMs(), isYoung: true }
      young.add(slot)
      limitOf(appId).open += 1
      open += 1
      return slot
    },
    end(slot, hung) {
      ageYoung()
      const limit = limitOf(slot.appId)
      limit.open -= 1
      open -= 1
      if (slot.isYoung) {
        young.delete(slot)
        limit.window = Math.min(MAX_WINDOW, limit.window + 1)
      } else {
        limit.stalled -= 1
      }
      if (hung) limit.window = SLOWEST_WINDOW
    },
  }
}
