import Router from '@koa/router'
import type { Context } from '#context.ts'
import { isWithoutMajority } from '#db/inspect-servers.ts'
import { pendingMigrations } from '#db/migrate.ts'
import type { RequestState } from '#http/errors.ts'
import { databaseWarning } from '#doctor/check-database.ts'
import { constantTimeEqual } from '#shared/crypto.ts'
import { AppError, messageOf, notFound } from '#shared/errors.ts'
import type { Metrics } from './metrics.ts'
import { CachedReading } from './cached-reading.ts'
import { inTime } from './database-reading.ts'

/** The state of the daemon itself. */
export interface Health {
  readonly isStopping: boolean
}

/** Maximum age of an answer about the database: more frequent requests share it. */
const FRESH_MS = 1000

/** `/healthz`, `/readyz` and `/metrics` (R281, R282). */
export function healthRoutes(ctx: Context, metrics: Metrics, health: Health): Router<RequestState> {
  const router = new Router<RequestState>({ strict: true, sensitive: true })
  const databaseState = new CachedReading(FRESH_MS, () => readDatabaseState(ctx))
  router.get('/healthz', (http) => {
    http.body = { status: 'up' }
  })
  router.get('/readyz', async (http) => {
    const { failure, warning } = health.isStopping ? { failure: 'stopping', warning: null } : await databaseState.get()
    http.status = failure === null ? 200 : 503
    if (failure !== null) http.body = { status: 'not_ready', reason: failure }
    else http.body = { status: 'ready', ...(warning === null ? {} : { warning }) }
  })
  router.get('/metrics', async (http) => {
    // The router also accepts other spellings, such as an absolute address (RFC 9112, 3.2.2), which a proxy may let through.
    if (http.req.url?.split('?')[0] !== '/metrics') throw notFound('address')
    if (!mayReadMetrics(ctx, http.req.socket.remoteAddress ?? '', http.headers))
      throw new AppError('forbidden', 'metrics require a request from loopback or a bearer token')
    http.type = metrics.registry.contentType
    http.body = await metrics.registry.metrics()
  })
  return router
}

interface DatabaseState {
  readonly failure: string | null
  /** A problem that does not stop the daemon from working yet. */
  readonly warning: string | null
}

async function readDatabaseState(ctx: Context): Promise<DatabaseState> {
  try {
    const all = Promise.all([pendingMigrations(ctx.db), databaseWarning(ctx), isWithoutMajority(ctx.db)])
    const [pending, warning, isAlone] = await inTime(all)
    if (isAlone) return { failure: 'the database is cut off from the majority of its group', warning }
    return { failure: pending.length === 0 ? null : 'the schema is behind: run billing-cli migrate', warning }
  } catch (error) {
    ctx.log.warn({ error: messageOf(error) }, 'the database cannot be reached')
    return { failure: 'the database cannot be reached', warning: null }
  }
}

/**
 * If a token is set, it is always required. Without one, only this machine may read metrics; behind a proxy nobody may, because every
 * request then comes from the proxy.
 */
function mayReadMetrics(
  { config: { metricsToken, trustProxy } }: Context,
  remoteAddress: string,
  headers: NodeJS.Dict<string | string[]>,
): boolean {
  if (metricsToken !== null) {
    const { authorization } = headers
    const token = /^Bearer (.+)$/i.exec(typeof authorization === 'string' ? authorization : '')?.[1]
    return token !== undefined && constantTimeEqual(token, metricsToken)
  }
  // A request through a proxy on this machine comes from elsewhere, regardless of the settings.
  const isForwarded = headers['x-forwarded-for'] !== undefined || headers['forwarded'] !== undefined
  return trustProxy === 0 && !isForwarded && /^(127\.|::1$|::ffff:127\.)/.test(remoteAddress)
}

export function warnOfUnreadableMetrics({ config: { metricsToken, trustProxy }, log }: Context): void {
  if (trustProxy > 0 && metricsToken === null)
    log.warn('nobody can read /metrics: behind a proxy (BILLING_TRUST_PROXY) it needs BILLING_METRICS_TOKEN')
}
