import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import { AppError } from '#shared/errors.ts'

/** A burst may use the requests of so many seconds at once. */
const BURST_SECONDS = 2
/** An end user's share of the app's limit, and the least that it is, in requests a second (R240). */
const END_USER_SHARE = 1 / 5
const MIN_PER_END_USER = 5

export interface RateLimit {
  /**
   * Counts a request for the app, and for the end user whose client makes it; `endUser` is empty for the app's server. Returns the headers
   * of the limit with fewer requests left; none if the limits are off. Beyond either limit, throws `rate_limited` (429) with these headers
   * and `Retry-After`.
   */
  take(appId: number, endUser: string): Promise<RateLimitHeaders>
}

/** `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`, in seconds. */
export type RateLimitHeaders = Readonly<Record<string, string>>

/**
 * `perSecond` requests a second for each app, bursts of twice that, and a fifth of both for each of its end users; 0 turns the limits
 * off. Each process counts for itself. A request that is refused to an end user does not count for the app. Memory is bounded however
 * many end users there are: counts are dropped after two seconds, and an app over its limit starts no counts for end users.
 */
export function openRateLimit(perSecond: number): RateLimit {
  if (perSecond === 0) return { take: () => Promise.resolve({}) }
  const apps = new RequestCounts(perSecond, '')
  const endUsers = new RequestCounts(
    Math.max(MIN_PER_END_USER, Math.floor(perSecond * END_USER_SHARE)),
    ' of one end user',
  )
  return {
    async take(appId, endUser) {
      if (endUser === '') return apps.headers(await apps.take(String(appId)))
      await apps.check(String(appId))
      const own = await endUsers.take(`${appId} ${endUser}`)
      const all = await apps.take(String(appId))
      return own.remainingPoints <= all.remainingPoints ? endUsers.headers(own) : apps.headers(all)
    },
  }
}

/** The requests of each app, or of each end user, in the last seconds. */
class RequestCounts {
  readonly #perSecond: number
  /** Completes `more than 20 requests a second` in the error message. */
  readonly #whose: string
  readonly #points: number
  readonly #limiter: RateLimiterMemory

  constructor(perSecond: number, whose: string) {
    this.#perSecond = perSecond
    this.#whose = whose
    this.#points = perSecond * BURST_SECONDS
    this.#limiter = new RateLimiterMemory({ points: this.#points, duration: BURST_SECONDS })
  }

  headers(count: RateLimiterRes): RateLimitHeaders {
    return {
      'RateLimit-Limit': String(this.#points),
      'RateLimit-Remaining': String(Math.max(0, count.remainingPoints)),
      'RateLimit-Reset': secondsUntilReset(count),
    }
  }

  /** Throws if the limit is reached. */
  async check(key: string): Promise<void> {
    const count = await this.#limiter.get(key)
    if (count && count.consumedPoints >= this.#points) throw this.#refusal(count)
  }

  /** Counts a request. Throws beyond the limit. */
  async take(key: string): Promise<RateLimiterRes> {
    try {
      return await this.#limiter.consume(key)
    } catch (thrown) {
      throw thrown instanceof RateLimiterRes ? this.#refusal(thrown) : thrown
    }
  }

  #refusal(count: RateLimiterRes): AppError {
    const seconds = secondsUntilReset(count)
    const message = `more than ${this.#perSecond} requests a second${this.#whose}: try again in ${seconds} s`
    return new AppError('rate_limited', message, { headers: { ...this.headers(count), 'Retry-After': seconds } })
  }
}

function secondsUntilReset({ msBeforeNext }: RateLimiterRes): string {
  return String(Math.max(1, Math.ceil(msBeforeNext / 1000)))
}
