import type { Middleware } from 'koa'
import type { Context } from '#context.ts'
import type { RequestState } from '#http/errors.ts'
import type { Metrics } from './metrics.ts'

/** Counts and times each request by its route, never by its path: paths hold tokens. `client` is the address that trusted proxies report. */
export function observeRequests(ctx: Context, metrics: Metrics): Middleware<RequestState> {
  return async (http, next) => {
    const startedMs = performance.now()
    // Read first: an aborted request has no socket any more.
    const client = http.ip
    try {
      await next()
    } finally {
      const route = (http as { _matchedRoute?: unknown })._matchedRoute
      const name = typeof route === 'string' ? route : 'unknown'
      const ms = performance.now() - startedMs
      metrics.observeRequest(name, http.method, http.status, ms / 1000)
      const { requestId } = http.state
      ctx.log.debug(
        { requestId, client, route: name, method: http.method, status: http.status, ms: Math.round(ms) },
        'request',
      )
    }
  }
}
