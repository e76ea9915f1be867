import type Router from '@koa/router'
import type { Middleware } from 'koa'
import { AppError } from '#shared/errors.ts'
import type { RequestState } from './errors.ts'

/** The router's own middleware, typed for an application with our state. */
export function routerRoutes(router: Router<RequestState>): Middleware<RequestState> {
  return router.routes() as unknown as Middleware<RequestState>
}

/** 405 with `Allow` if the path is known and the method is not. */
export function refuseMethods(router: Router<RequestState>): Middleware<RequestState> {
  return async (http, next) => {
    const allowed = new Set(router.match(http.path, http.method).path.flatMap((layer) => layer.methods))
    if (allowed.size === 0) {
      await next()
      return
    }
    throw methodNotAllowed(http.method, [...allowed].sort())
  }
}

export function methodNotAllowed(method: string, allowed: readonly string[]): AppError {
  return new AppError('method_not_allowed', `${method} is not allowed here`, {
    headers: { Allow: allowed.join(', ') },
  })
}
