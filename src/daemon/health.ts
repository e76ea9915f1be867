import Router from '@koa/router'
import type { Context } from '#context.ts'
import { pendingMigrations } from '#db/migrate.ts'
import type { RequestState } from '#http/errors.ts'
import { skewWarning } from '#operations/check-database.ts'
import { within } from '#shared/budget.ts'
import { constantTimeEqual } from '#shared/crypto.ts'
import { AppError, messageOf, notFound } from '#shared/errors.ts'
import type { Metrics } from './metrics.ts'
import { shareReading } from './share-reading.ts'

/** What the daemon knows of itself. */
export interface Health {
  readonly isStopping: boolean
}

const DATABASE_DEADLINE_MS = 2000
/** How old an answer about the database may be: whoever asks more often does not reach it. */
const FRESH_MS = 1000

/** `/healthz`, `/readyz` and `/metrics` (contract 1). */
export function healthRoutes(ctx: Context, metrics: Metrics, health: Health): Router<RequestState> {
  const router = new Router<RequestState>({ strict: true, sensitive: true })
  const lookAtDatabase = shareReading(FRESH_MS, () => readDatabase(ctx))
  router.get('/healthz', (http) => {
    http.body = { status: 'up' }
  })
  router.get('/readyz', async (http) => {
    const { fault, warning } = health.isStopping ? { fault: 'stopping', warning: null } : await lookAtDatabase()
    http.status = fault === null ? 200 : 503
    if (fault !== null) http.body = { status: 'not_ready', reason: fault }
    else http.body = { status: 'ready', ...(warning === null ? {} : { warning }) }
  })
  router.get('/metrics', async (http) => {
    // The router reads other spellings alike, a whole address (RFC 9112, 3.2.2) for one, which a proxy may let through.
    if (http.req.url?.split('?')[0] !== '/metrics') throw notFound('address')
    if (!mayReadMetrics(ctx, http.req.socket.remoteAddress ?? '', http.headers))
      throw new AppError('forbidden', 'metrics are for loopback or a bearer token')
    http.type = metrics.registry.contentType
    http.body = await metrics.registry.metrics()
  })
  return router
}

interface Standing {
  readonly fault: string | null
  /** Something that does not keep the daemon from its work, and may one day. */
  readonly warning: string | null
}

async function readDatabase(ctx: Context): Promise<Standing> {
  try {
    const both = Promise.all([pendingMigrations(ctx.db), skewWarning(ctx)])
    const late = new Error(`no answer in ${DATABASE_DEADLINE_MS} ms`)
    const [pending, warning] = await within(both, DATABASE_DEADLINE_MS, late)
    return { fault: pending.length === 0 ? null : 'the schema is behind: run billing-cli migrate', warning }
  } catch (error) {
    ctx.log.warn({ error: messageOf(error) }, 'the database cannot be reached')
    return { fault: 'the database cannot be reached', warning: null }
  }
}

/**
 * With a token set it is always needed. Without one, figures are for this machine alone: for nobody where a proxy is in front, since
 * then everybody comes from this machine or the proxy's.
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
  // A request that came through a proxy on this machine is not from this machine, whatever the settings say of proxies.
  const isForwarded = headers['x-forwarded-for'] !== undefined || headers['forwarded'] !== undefined
  return trustProxy === 0 && !isForwarded && /^(127\.|::1$|::ffff:127\.)/.test(remoteAddress)
}
