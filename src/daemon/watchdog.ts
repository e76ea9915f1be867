import { execFile } from 'node:child_process'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { ServiceManager } from '#config/environment.ts'
import type { Context } from '#context.ts'
import { MINUTE_MS, SECOND_MS, type RealTime } from '#shared/time.ts'

/** What the watchdog checks. It never checks the database: a restart would not repair it, and would stop what still works. */
export interface Liveness {
  /** Median delay of the event loop. */
  readonly loopLagMs: number
  /** Last heartbeat of each job; null before the first. */
  readonly heartbeats: readonly (readonly [job: string, at: RealTime | null])[]
}

/** Longer than the scheduler takes to notice a hung thread and to restart it after the longest pause. */
const MAX_SILENCE_MS = 3 * MINUTE_MS
const MAX_LAG_MS = SECOND_MS
/** systemd recommends a ping at half its period; at a third, one ping may be lost. */
const PINGS_PER_PERIOD = 3
const NOTIFY_DEADLINE_MS = 5 * SECOND_MS

/** Why the process should be restarted; null if it is healthy. */
export function findHang({ loopLagMs, heartbeats }: Liveness, startedAt: RealTime, now: RealTime): string | null {
  if (loopLagMs > MAX_LAG_MS) return `the event loop is ${Math.round(loopLagMs)} ms late`
  const unresponsive = heartbeats.find(([, at]) => now.getTime() - (at ?? startedAt).getTime() > MAX_SILENCE_MS)
  return unresponsive ? `the job ${unresponsive[0]} is unresponsive` : null
}

export interface Watchdog {
  /** Notifies systemd that the daemon is stopping, and ends the pings. */
  stop(): void
}

export interface WatchdogOptions {
  readonly manager: ServiceManager | null
  readonly jobs: readonly string[]
  readonly heartbeats: ReadonlyMap<string, RealTime>
}

/** Notifies systemd that the daemon is ready, and pings it for as long as the daemon is healthy. Does nothing without systemd. */
export function startWatchdog(ctx: Context, { manager, jobs, heartbeats }: WatchdogOptions): Watchdog {
  if (!manager) return { stop: () => undefined }
  const startedAt = ctx.clock.now()
  notify(ctx, 'READY=1', `STATUS=listening on ${ctx.config.host}:${ctx.config.port}`)
  if (manager.watchdogMs === null) return { stop: () => notify(ctx, 'STOPPING=1') }
  const lag = monitorEventLoopDelay({ resolution: 20 })
  lag.enable()
  const timer = setInterval(() => {
    const loopLagMs = lag.percentile(50) / 1e6
    lag.reset()
    const signs = { loopLagMs, heartbeats: jobs.map((job) => [job, heartbeats.get(job) ?? null] as const) }
    const reason = findHang(signs, startedAt, ctx.clock.now())
    if (reason === null) notify(ctx, 'WATCHDOG=1')
    else ctx.log.error({ reason }, 'unhealthy: skipping the systemd watchdog ping')
  }, manager.watchdogMs / PINGS_PER_PERIOD)
  return {
    stop() {
      clearInterval(timer)
      lag.disable()
      notify(ctx, 'STOPPING=1')
    },
  }
}

/** Runs systemd's own program, since Node has no UNIX datagram sockets. */
function notify(ctx: Context, ...assignments: string[]): void {
  execFile('systemd-notify', assignments, { timeout: NOTIFY_DEADLINE_MS }, (error) => {
    if (error) ctx.log.warn({ error: error.message }, 'systemd was not notified: is systemd-notify installed?')
  })
}
