import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '#context.ts'
import { SECOND_MS } from '#shared/time.ts'

/** What must be stopped, and the flag that shows it. */
export interface Running {
  readonly server: Server
  readonly health: { isStopping: boolean }
  readonly scheduler: { stop(deadlineMs: number): Promise<void> }
  readonly close: () => Promise<void>
}

/** For everything after the drain (R283); `TimeoutStopSec` of the unit is longer than both. */
const STOP_DEADLINE_MS = 30_000
const JOBS_DEADLINE_MS = 20_000
/** Requests that are still running then, mostly from slow senders, are cut off. */
const REQUESTS_DEADLINE_MS = 25_000
/** A signal to a process group may arrive twice, for example from `timeout`, or from a terminal that runs `npm start`. */
const SAME_SIGNAL_MS = SECOND_MS
/** Time for requests that were already being sent on an idle connection when the signal arrived. */
const IDLE_GRACE_MS = 500

/**
 * On SIGTERM or SIGINT, reports that it is not ready for `BILLING_DRAIN_SECONDS`, so that a load balancer sends no more calls. Then accepts
 * no new connections, finishes what is in flight, lets jobs release their leases, and exits with 0. A second signal, at least a
 * second later, exits at once.
 */
export function stopOnSignal(ctx: Context, running: Running): void {
  let signalledMs = 0
  const onSignal = (signal: NodeJS.Signals) => {
    if (running.health.isStopping) {
      if (performance.now() - signalledMs >= SAME_SIGNAL_MS) process.exit(1)
      return
    }
    signalledMs = performance.now()
    running.health.isStopping = true
    ctx.log.info({ signal }, 'stopping')
    void drainAndStop(ctx, running)
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
}

async function drainAndStop(ctx: Context, running: Running): Promise<void> {
  await delay(ctx.config.drainSeconds * SECOND_MS)
  setTimeout(() => {
    ctx.log.error('did not stop in time')
    process.exit(1)
  }, STOP_DEADLINE_MS).unref()
  await stop(ctx, running)
}

async function stop(ctx: Context, { server, scheduler, close }: Running): Promise<void> {
  try {
    await Promise.all([closeServer(server), scheduler.stop(JOBS_DEADLINE_MS)])
    await close()
    ctx.log.info('stopped')
    process.exit(0)
  } catch (error) {
    ctx.log.error({ error }, 'stopping failed')
    process.exit(1)
  }
}

/**
 * Stops accepting connections and waits for the requests on open ones; each response closes its connection. The server's own `close`
 * would first cut off idle connections, and with them requests that are just arriving.
 */
async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve()))
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_GRACE_MS)
  const deadline = setTimeout(() => server.closeAllConnections(), REQUESTS_DEADLINE_MS)
  await closed
  clearInterval(idle)
  clearTimeout(deadline)
}
