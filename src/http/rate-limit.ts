import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { AppError } from '#shared/errors.ts'

/** How long the bursts are that the limit lets through: in this many seconds an app may use all of them at once. */
const BURST_SECONDS = 2
/** An end user has this part of its app's limit, and never less than so many requests a second (contract 7, Callers). */
const END_USER_PART = 1 / 5
const LEAST_PER_END_USER = 5

export interface RateLimit {
  /**
   * Counts a request of the app, and of the end user whose client makes it; `endUser` is empty for the app's server. Throws
   * `rate_limited` (429) with `Retry-After` beyond either limit.
   */
  take(appId: number, endUser: string): Promise<void>
}

/**
 * `perSecond` requests a second for each app, bursts of twice that, and a fifth of both for each of its end users; 0 turns it off.
 * Counted in this process alone. What one end user is refused does not count for the app. Counts are forgotten after two seconds, and
 * an app that has none left begins no more of them for its end users: however many these are, memory stays bounded.
 */
export function openRateLimit(perSecond: number): RateLimit {
  if (perSecond === 0) return { take: () => Promise.resolve() }
  const apps = openCounts(perSecond, '')
  const endUsers = openCounts(Math.max(LEAST_PER_END_USER, Math.floor(perSecond * END_USER_PART)), ' of one end user')
  return {
    async take(appId, endUser) {
      if (endUser !== '') {
        await apps.check(String(appId))
        await endUsers.take(`${appId} ${endUser}`)
      }
      await apps.take(String(appId))
    },
  }
}

function openCounts(perSecond: number, whose: string) {
  const points = perSecond * BURST_SECONDS
  const limiter = new RateLimiterMemory({ points, duration: BURST_SECONDS })
  const refusal = ({ msBeforeNext }: RateLimiterRes): AppError => {
    const seconds = Math.max(1, Math.ceil(msBeforeNext / 1000))
    const message = `more than ${perSecond} requests a second${whose}: try again in ${seconds} s`
    return new AppError('rate_limited', message, { headers: { 'Retry-After': String(seconds) } })
  }
  return {
    /** Throws where there is none left. */
    async check(key: string): Promise<void> {
      const count = await limiter.get(key)
      if (count && count.consumedPoints >= points) throw refusal(count)
    },
    async take(key: string): Promise<void> {
      try {
        await limiter.consume(key)
      } catch (thrown) {
        throw thrown instanceof RateLimiterRes ? refusal(thrown) : thrown
      }
    },
  }
}
