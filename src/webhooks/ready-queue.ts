/** Claimed events that wait for a place, the app that has waited longest first (contract 7, Webhooks are fair). */
export interface ReadyQueue<Event extends { readonly appId: number }> {
  /** Number of events, over all apps. */
  readonly size: number
  /** Number of events of the app. */
  held(appId: number): number
  /** An app that waits already keeps its turn; another one begins to wait now. */
  add(events: readonly Event[]): void
  /**
   * Takes the next event of the app that has waited longest, of those that `mayBegin`; null where there is none. The app begins to
   * wait anew.
   */
  take(mayBegin: (appId: number) => boolean): Event | null
  takeAll(): Event[]
}

export function openReadyQueue<Event extends { readonly appId: number }>(): ReadyQueue<Event> {
  // In the order in which the apps began to wait.
  const waiting = new Map<number, Event[]>()
  let size = 0
  return {
    get size() {
      return size
    },
    held: (appId) => waiting.get(appId)?.length ?? 0,
    add(events) {
      for (const event of events) {
        const ofApp = waiting.get(event.appId)
        if (ofApp) ofApp.push(event)
        else waiting.set(event.appId, [event])
        size += 1
      }
    },
    take(mayBegin) {
      for (const [appId, events] of waiting) {
        if (!mayBegin(appId)) continue
        const event = events.shift() ?? null
        waiting.delete(appId)
        if (events.length > 0) waiting.set(appId, events)
        if (event) size -= 1
        return event
      }
      return null
    },
    takeAll() {
      const all = [...waiting.values()].flat()
      waiting.clear()
      size = 0
      return all
    },
  }
}
