import Router from '@koa/router'
import type { Context } from '#context.ts'
import { pendingMigrations } from '#db/migrate.ts'
import type { RequestState } from '#http/errors.ts'
import { skewWarning } from '#operations/check-database.ts'
import { constantTimeEqual } from '#shared/crypto.ts'
import { AppError, messageOf } from '#shared/errors.ts'
import type { Metrics } from './metrics.ts'

/** What the daemon knows of itself. */
export interface Health {
  readonly isStopping: boolean
}

const DATABASE_DEADLINE_MS = 2000

/** `/healthz`, `/readyz` and `/metrics` (contract 1). */
export function healthRoutes(ctx: Context, metrics: Metrics, health: Health): Router<RequestState> {
  const router = new Router<RequestState>()
  router.get('/healthz', (http) => {
    http.body = { status: 'up' }
  })
  router.get('/readyz', async (http) => {
    const { fault, warning } = health.isStopping ? { fault: 'stopping', warning: null } : await lookAtDatabase(ctx)
    http.status = fault === null ? 200 : 503
    if (fault !== null) http.body = { status: 'not_ready', reason: fault }
    else http.body = { status: 'ready', ...(warning === null ? {} : { warning }) }
  })
  router.get('/metrics', async (http) => {
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

async function lookAtDatabase(ctx: Context): Promise<Standing> {
  try {
    const both = Promise.all([pendingMigrations(ctx.db), skewWarning(ctx)])
    const [pending, warning] = await Promise.race([both, deadline()])
    return { fault: pending.length === 0 ? null : 'the schema is behind: run billing-cli migrate', warning }
  } catch (error) {
    ctx.log.warn({ error: messageOf(error) }, 'the database cannot be reached')
    return { fault: 'the database cannot be reached', warning: null }
  }
}

function deadline(): Promise<never> {
  return new Promise((_resolve, reject) => {
    setTimeout(() => reject(new Error(`no answer in ${DATABASE_DEADLINE_MS} ms`)), DATABASE_DEADLINE_MS).unref()
  })
}

function mayReadMetrics(ctx: Context, remoteAddress: string, headers: NodeJS.Dict<string | string[]>): boolean {
  const token = /^Bearer (.+)$/i.exec(typeof headers['authorization'] === 'string' ? headers['authorization'] : '')?.[1]
  if (ctx.config.metricsToken !== null && token !== undefined) return constantTimeEqual(token, ctx.config.metricsToken)
  // A request that came through a proxy on this machine is not from this machine.
  const isForwarded = headers['x-forwarded-for'] !== undefined || headers['forwarded'] !== undefined
  return !isForwarded && /^(127\.|::1$|::ffff:127\.)/.test(remoteAddress)
}
