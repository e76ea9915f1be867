import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hasBaseUrl, listenUrl, unknownVariables, type Config } from '#config/config.ts'
import { childEnvironment, serviceManager } from '#config/environment.ts'
import { newerContractions, pendingMigrations } from '#db/migrate.ts'
import type { Queries } from '#db/queries.ts'
import { openContext, type OpenContext, type OpenContextOptions } from '#open-context.ts'
import { skewWarning } from '#doctor/check-database.ts'
import { counted } from '#shared/counted.ts'
import { createHttpApp } from './app.ts'
import { answerClientErrors } from './client-errors.ts'
import { warnOfUnreadableMetrics } from './health.ts'
import { answerWhileStarting } from './starting.ts'
import { stopOnSignal } from './stop.ts'
import { addProcessMetrics, openMetrics } from './metrics.ts'
import { recordPresence } from './record-presence.ts'
import { schedule } from './jobs.ts'
import { Scheduler } from './scheduler.ts'
import { addBusinessMetrics } from './business-metrics.ts'
import { addDatabaseMetrics } from './database-metrics.ts'
import { addThreadMetrics } from './thread-metrics.ts'
import { startWatchdog, type Watchdog } from './watchdog.ts'

/** Time limits for headers and for whole requests, so that slow senders cannot hold sockets permanently. */
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 30_000
/** How often both are checked. Node's default of 30 s would give slow senders four times the time. */
const CHECK_TIMEOUTS_MS = 1000

/** Every call is answered within 12 s while the database is unresponsive: it may also wait 2 s for a connection. */
const STATEMENT_SECONDS = 7
/** Maximum number of connections waiting to be accepted. A client beyond it retries only after seconds. */
const BACKLOG = 4096

/** Listens, answers 503 until the database is open and its schema current, and then serves until a signal stops it. */
export async function serve(settings: Config): Promise<void> {
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_TIMEOUTS_MS,
    // The application answers with the error body.
    requireHostHeader: false,
  })
  answerClientErrors(server)
  server.on('request', answerWhileStarting)
  const port = await listen(server, settings)
  const url = listenUrl(settings.host, port)
  const config: Config = { ...settings, port, baseUrl: hasBaseUrl() ? settings.baseUrl : url }
  const metrics = openMetrics()
  const sender: { wake: () => void } = { wake: () => undefined }
  const { ctx, close } = await openCurrent({ config, count: metrics.count, wakeSender: () => sender.wake() })
  const skew = await skewWarning(ctx)
  if (skew !== null) ctx.log.warn({ skew }, "this machine's clock differs from the database's")
  for (const variable of unknownVariables()) ctx.log.warn({ variable }, 'a variable BILLING_… is not a setting')
  warnOfUnreadableMetrics(ctx)
  const alive = await recordPresence(ctx)
  const scheduler = new Scheduler(
    ctx,
    childEnvironment({ BILLING_BASE_URL: config.baseUrl, BILLING_PORT: String(port) }),
  )
  sender.wake = () => scheduler.wakeSender()
  addProcessMetrics(metrics)
  addDatabaseMetrics(ctx, metrics)
  addThreadMetrics(ctx, metrics, scheduler)
  addBusinessMetrics(ctx, metrics)
  const health = { isStopping: false }
  const handle = createHttpApp(ctx, metrics, health).callback()
  server.off('request', answerWhileStarting).on('request', (request, response) => void handle(request, response))
  ctx.log.info({ url, baseUrl: config.baseUrl, env: config.env, pid: process.pid }, 'listening')
  const jobs = schedule(config).map(({ name }) => name)
  const watchdog = startWatchdog(ctx, { manager: serviceManager(), jobs, heartbeats: scheduler.heartbeats })
  stopOnSignal(ctx, { server, health, scheduler: stopping(watchdog, scheduler), close: () => alive.stop().then(close) })
}

/**
 * For an upgrade, while the previous version serves: throws if this version would not start. By now, everything that it loads is loaded.
 */
export async function rehearseStart(config: Config): Promise<void> {
  const { close } = await openCurrent({ config })
  await close()
}

/** Throws if the schema is behind, or a newer version has taken away what this one uses. */
async function openCurrent(options: Omit<OpenContextOptions, 'thread'>): Promise<OpenContext> {
  const opened = await openContext({ statementSeconds: STATEMENT_SECONDS, ...options, thread: 'daemon' })
  try {
    await refuseOtherSchema(opened.ctx.db)
    return opened
  } catch (error) {
    await opened.close()
    throw error
  }
}

async function refuseOtherSchema(db: Queries): Promise<void> {
  const pending = await pendingMigrations(db)
  if (pending.length > 0)
    throw new Error(
      `the database lacks ${counted(pending.length, 'migration')}: run billing-cli migrate, then start again`,
    )
  const [newer] = await newerContractions(db)
  if (newer !== undefined)
    throw new Error(
      `a newer version has taken away what this one uses (${newer}): start that version, or restore a backup from before`,
    )
}

/** A scheduler whose stop notifies systemd first. */
function stopping(watchdog: Watchdog, scheduler: Scheduler): Pick<Scheduler, 'stop'> {
  return {
    stop(deadlineMs) {
      watchdog.stop()
      return scheduler.stop(deadlineMs)
    },
  }
}

function listen(server: Server, { host, port }: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, () => resolve((server.address() as AddressInfo).port))
  })
}
