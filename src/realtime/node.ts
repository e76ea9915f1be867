import type { AppTime, RealTime } from '#shared/time.ts'

/** The part of a subscription that the node shows. Times are the app's own; `currentPeriodEnd` null means lifetime. */
export interface NodeState {
  readonly externalRef: string
  readonly currentPeriodEnd: AppTime | null
}

/** The whole node of one end user (R160). Times are epoch milliseconds. */
export interface RealtimeNode {
  readonly plan: 'premium' | 'free'
  /** End of the paid or trial period; null means lifetime with `premium`, and nothing to expire with `free`. */
  readonly expiresAt: number | null
  readonly purchaseSource: 'web'
  readonly updatedAt: number
}

/** Why a node is written: a change of the subscription, or an operator's re-sync. */
export type WriteReason = 'change' | 'resync'

/**
 * The node for a subscription. `now` is the app's own time, `writtenAt` the real one.
 *
 * A change always writes `premium`, with an end in the past if the period is over: clients compare `expiresAt` with their clock. Only a
 * re-sync writes `free` for such a period (R163).
 */
export function nodeOf(state: NodeState, reason: WriteReason, now: AppTime, writtenAt: RealTime): RealtimeNode {
  const end = state.currentPeriodEnd
  const isOver = end !== null && now >= end
  const isFree = isOver && reason === 'resync'
  return {
    plan: isFree ? 'free' : 'premium',
    expiresAt: isFree || end === null ? null : end.getTime(),
    purchaseSource: 'web',
    updatedAt: writtenAt.getTime(),
  }
}
