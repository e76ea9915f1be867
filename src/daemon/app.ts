import Koa, { type Middleware } from 'koa'
import type Router from '@koa/router'
import { authPolicy, type AppRoute } from '#apps/authenticate.ts'
import { checkoutRoutes } from '#checkout/routes.ts'
import type { Context } from '#context.ts'
import { forCaller } from '#db/patience.ts'
import { customerRoutes } from '#customers/routes.ts'
import { apiRouter } from '#http/api-router.ts'
import { refuseBodyOfReads } from '#http/body.ts'
import { errorEnvelope, requestIds, type RequestState } from '#http/errors.ts'
import { openRateLimit } from '#http/rate-limit.ts'
import { refuseMethods, routerRoutes } from '#http/router.ts'
import { bankPages } from '#pages/bank.ts'
import { checkoutPages } from '#pages/checkout.ts'
import { friendlyErrors } from '#pages/message.ts'
import { renewPages } from '#pages/renew.ts'
import { referenceRoutes } from '#reference/routes.ts'
import { planRoutes } from '#plans/routes.ts'
import { promotionRoutes } from '#promotions/routes.ts'
import { MailReader } from '#bank-mail/mail-reader.ts'
import { bankMailRoutes } from '#bank-mail/routes.ts'
import { notificationRoutes } from '#providers/engine/notification-routes.ts'
import { testClockRoutes } from '#test-clock/routes.ts'
import { AppError, notFound } from '#shared/errors.ts'
import { subscriptionRoutes } from '#subscriptions/routes.ts'
import { transactionRoutes } from '#transactions/routes.ts'
import { eventRoutes } from '#webhooks/routes.ts'
import { crossOrigin } from './cross-origin.ts'
import { healthRoutes, type Health } from './health.ts'
import type { Metrics } from './metrics.ts'

/** Every call of the API; docs/api.md lists them. */
export const API_ROUTES: readonly AppRoute[] = [
  ...planRoutes,
  ...promotionRoutes,
  ...customerRoutes,
  ...checkoutRoutes,
  ...subscriptionRoutes,
  ...transactionRoutes,
  ...eventRoutes,
  ...testClockRoutes,
]

/** The HTTP application: health, hosted pages, provider notifications and the API. `mailReader` reads the banks' mails. */
export function createHttpApp(
  ctx: Context,
  metrics: Metrics,
  health: Health,
  mailReader = new MailReader(ctx.config.relay),
): Koa<RequestState> {
  const app = new Koa<RequestState>({ proxy: ctx.config.trustProxy > 0, maxIpsCount: ctx.config.trustProxy })
  app.use(closeWhileStopping(health))
  app.use(requestIds)
  app.use((_http, next) => forCaller(next))
  app.use(observeRequests(ctx, metrics))
  app.use(errorEnvelope(ctx))
  app.use(safeHeaders)
  app.use(requireHost)
  app.use(async (http, next) => {
    if (http.path.startsWith('/api/v1/')) await crossOrigin(http, next)
    else await next()
  })
  app.use(refuseBodyOfReads)
  // The API first, since most requests are for it: each router searches its own paths.
  for (const middleware of apiRouter(ctx, API_ROUTES, authPolicy, openRateLimit(ctx.config.rateLimitPerSecond)))
    app.use(middleware)
  for (const router of routers(ctx, metrics, health, mailReader))
    app.use(routerRoutes(router)).use(refuseMethods(router))
  app.use(pagesForBrowsers(ctx))
  app.use(() => {
    throw notFound('address')
  })
  // Called only for errors of connections that were lost while their response was written.
  app.on('error', (error: unknown) => ctx.log.debug({ error }, 'a response could not be written'))
  return app
}

function routers(ctx: Context, metrics: Metrics, health: Health, mailReader: MailReader): Router<RequestState>[] {
  return [
    healthRoutes(ctx, metrics, health),
    notificationRoutes(ctx),
    bankMailRoutes(ctx, mailReader),
    checkoutPages(ctx),
    bankPages(ctx),
    renewPages(ctx),
    referenceRoutes(ctx, API_ROUTES),
  ]
}

/** While the daemon stops, each response closes its connection: kept connections would never end. */
const closeWhileStopping =
  (health: Health): Middleware<RequestState> =>
  async (http, next) => {
    await next()
    if (health.isStopping) http.set('Connection', 'close')
  }

/** Shows an address that does not exist as a page: mail programs and messengers cut links off, and people open what is left. */
function pagesForBrowsers(ctx: Context): Middleware<RequestState> {
  const friendly = friendlyErrors(ctx)
  return async (http, next) => {
    const isBrowser = http.get('Accept').includes('text/html') && !http.path.startsWith('/api/')
    if (isBrowser) await friendly(http, next)
    else await next()
  }
}

/** HTTP/1.1 asks for it (RFC 9112, 3.2). Node's own refusal would have no error body and no X-Request-Id. */
const requireHost: Middleware<RequestState> = async (http, next) => {
  if (http.req.httpVersion === '1.1' && http.req.headers.host === undefined)
    throw new AppError('invalid_request', 'the Host header is missing')
  await next()
}

const safeHeaders: Middleware<RequestState> = async (http, next) => {
  http.set('X-Content-Type-Options', 'nosniff')
  http.set('Cache-Control', 'no-store')
  await next()
}

/** Counts and times each request by its route, never by its path: paths hold tokens. `client` is the address that trusted proxies report. */
function observeRequests(ctx: Context, metrics: Metrics): Middleware<RequestState> {
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
