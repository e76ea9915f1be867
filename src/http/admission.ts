import type { Middleware } from 'koa'
import type { Context } from '#context.ts'
import { poolUse } from '#db/session.ts'
import { AppError } from '#shared/errors.ts'
import type { RequestState } from './errors.ts'

/**
 * As many callers may wait for a database connection when another one comes. Beyond the first number reads are turned away, beyond
 * the second writes too, payments by the test method and renewals among them. Provider notifications and bank mails are always let
 * in: what they tell is money, and they wait in a queue that reads cannot fill.
 */
const MOST_WAITING = { read: 100, write: 200 } as const
const RETRY_AFTER_SECONDS = 1

/** Turns a caller away before anything is done for it; throws `rate_limited` (429) with `Retry-After`. */
export function admit(ctx: Context, method: string): void {
  const limit = MOST_WAITING[method === 'GET' || method === 'HEAD' ? 'read' : 'write']
  if (poolUse(ctx.db).waiting < limit) return
  throw new AppError('rate_limited', `too many requests at once: try again in ${RETRY_AFTER_SECONDS} s`, {
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  })
}

/** `admit` for routers that are not the API's. */
export function admission(ctx: Context): Middleware<RequestState> {
  return async (http, next) => {
    admit(ctx, http.method)
    await next()
  }
}
