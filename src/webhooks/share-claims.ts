/** Events of one claim at most, so that its transaction stays small. */
export const CLAIM_SIZE = 256
/** Claimed events that may wait for a place, over all apps: few enough to leave well before their leases end. */
export const MAX_READY = 1024
/** More than one of an app are claimed only up to this many, so that the rest is for apps of which none is. */
const MAX_AHEAD = MAX_READY / 2

/** An app with due events: how many claimed ones wait (`held`), and how many should (`depth`). */
export interface Claimable {
  readonly appId: number
  readonly held: number
  readonly depth: number
}

/**
 * How many events to claim next, by app: one for each app without claimed events, in the order given, and then in equal shares as many
 * as the receivers will take soon. `ready`: how many claimed events wait already.
 */
export function shareClaims(apps: readonly Claimable[], ready: number): Map<number, number> {
  const shares = new Map<number, number>()
  const most = Math.min(CLAIM_SIZE, MAX_READY - ready)
  let shared = 0
  for (const { appId, held, depth } of apps) {
    if (shared >= most) return shares
    if (held > 0 || depth < 1) continue
    shares.set(appId, 1)
    shared += 1
  }
  // Claims are worth their round trips once half of what waits is used up: that of all apps, and that of one.
  if (ready > MAX_AHEAD / 2) return shares
  const mostAhead = Math.min(CLAIM_SIZE, MAX_AHEAD - ready)
  let wanting = apps.filter(({ held, depth }) => held <= depth / 2)
  while (wanting.length > 0) {
    wanting = wanting.filter(({ appId, held, depth }) => held + (shares.get(appId) ?? 0) < depth)
    for (const { appId } of wanting) {
      if (shared >= mostAhead) return shares
      shares.set(appId, (shares.get(appId) ?? 0) + 1)
      shared += 1
    }
  }
  return shares
}
