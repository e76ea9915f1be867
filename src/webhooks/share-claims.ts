/** Maximum number of events per claim, so that its statements stay short. */
export const CLAIM_SIZE = 256
/** Maximum number of claimed events that wait to be sent, over all apps: few enough to be sent well before their leases end. */
export const MAX_READY = 1024
/** An app gets more than one event only up to this total. The rest is reserved for apps with nothing claimed. */
const MAX_AHEAD = MAX_READY / 2

/** An app with due events. `held`: how many claimed ones wait. `depth`: how many should. */
export interface AppWithDue {
  readonly appId: number
  readonly held: number
  readonly depth: number
}

/**
 * How many events to claim next, by app. First, one for each app without claimed events, in the given order; then equal shares, up to what
 * the receivers will take soon. `ready`: how many claimed events wait already.
 */
export function shareClaims(apps: readonly AppWithDue[], ready: number): Map<number, number> {
  const shares = new Map<number, number>()
  const most = Math.min(CLAIM_SIZE, MAX_READY - ready)
  let shared = 0
  for (const { appId, held, depth } of apps) {
    if (shared >= most) return shares
    if (held > 0 || depth < 1) continue
    shares.set(appId, 1)
    shared += 1
  }
  // Few events are not worth the round trips of a claim: wait until half of those claimed are sent, over all apps and for the app.
  if (ready > MAX_AHEAD / 2) return shares
  const mostAhead = Math.min(CLAIM_SIZE, MAX_AHEAD - ready)
  let lacking = apps.filter(({ held, depth }) => held <= depth / 2)
  while (lacking.length > 0) {
    lacking = lacking.filter(({ appId, held, depth }) => held + (shares.get(appId) ?? 0) < depth)
    for (const { appId } of lacking) {
      if (shared >= mostAhead) return shares
      shares.set(appId, (shares.get(appId) ?? 0) + 1)
      shared += 1
    }
  }
  return shares
}
