import type { Middleware } from 'koa'
import type { RequestState } from '#http/errors.ts'

const REQUEST_HEADERS = 'Authorization, Content-Type, Idempotency-Key, X-App-Key, X-Timestamp, X-Signature'
const EXPOSED_HEADERS =
  'X-Request-Id, Retry-After, Idempotent-Replayed, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset'
const ONE_DAY_SECONDS = '86400'

/** Allows browser clients of any origin to call the API, without the browser's credentials (R16). */
export const crossOrigin: Middleware<RequestState> = async (http, next) => {
  http.set('Access-Control-Allow-Origin', '*')
  http.set('Access-Control-Expose-Headers', EXPOSED_HEADERS)
  if (http.method !== 'OPTIONS' || http.get('Access-Control-Request-Method') === '') {
    await next()
    return
  }
  http.set('Access-Control-Allow-Methods', 'GET, POST, PUT, PATCH')
  http.set('Access-Control-Allow-Headers', REQUEST_HEADERS)
  http.set('Access-Control-Max-Age', ONE_DAY_SECONDS)
  http.status = 204
}
