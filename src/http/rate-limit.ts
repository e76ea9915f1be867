import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { AppError } from '#shared/errors.ts'

/** How long the bursts are that the limit lets through: in this many seconds an app may use all of them at once. */
const BURST_SECONDS = 2

export interface RateLimit {
  /** Counts a request of the app; throws `rate_limited` (429) with `Retry-After` beyond the limit. */
  take(appId: number): Promise<void>
}

/** `perSecond` requests a second for each app, bursts of twice that; 0 turns it off. Counted in this process alone. */
export function openRateLimit(perSecond: number): RateLimit {
  if (perSecond === 0) return { take: () => Promise.resolve() }
  const limiter = new RateLimiterMemory({ points: perSecond * BURST_SECONDS, duration: BURST_SECONDS })
  return {
    async take(appId) {
      try {
        await limiter.consume(appId)
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal
        const seconds = Math.max(1, Math.ceil(refusal.msBeforeNext / 1000))
        throw new AppError('rate_limited', `more than ${perSecond} requests a second: try again in ${seconds} s`, {
          headers: { 'Retry-After': String(seconds) },
        })
      }
    },
  }
}
