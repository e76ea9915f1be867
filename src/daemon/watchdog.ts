import { execFile } from 'node:child_process'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { ServiceManager } from '#config.ts'
import type { Context } from '#context.ts'
import { MINUTE_MS, SECOND_MS, type RealTime } from '#shared/time.ts'

/** What the watchdog looks at. Never the database: a restart does not bring that back, and hurts what still works. */
export interface VitalSigns {
  /** Half of the event loop's turns came no later than this. */
  readonly loopLagMs: number
  /** When each job's thread last said that it lives; null where it has not yet. */
  readonly heartbeats: readonly (readonly [job: string, at: RealTime | null])[]
}

/** More than the scheduler takes to notice a hung thread and to start it again after the longest pause. */
const LONGEST_SILENCE_MS = 3 * MINUTE_MS
const MOST_LAG_MS = SECOND_MS
/** systemd asks for a sign at half of its time at least; a third leaves room for one that is lost. */
const SIGNS_PER_PERIOD = 3
const NOTIFY_DEADLINE_MS = 5 * SECOND_MS

/** What is wrong with the process, so that it is better started again; null where nothing is. */
export function ailmentOf({ loopLagMs, heartbeats }: VitalSigns, startedAt: RealTime, now: RealTime): string | null {
  if (loopLagMs > MOST_LAG_MS) return `the event loop is ${Math.round(loopLagMs)} ms late`
  const silent = heartbeats.find(([, at]) => now.getTime() - (at ?? startedAt).getTime() > LONGEST_SILENCE_MS)
  return silent ? `the job ${silent[0]} is silent` : null
}

export interface Watchdog {
  /** Tells systemd that the daemon is stopping; no more signs of life. */
  stop(): void
}

export interface WatchdogOptions {
  readonly manager: ServiceManager | null
  readonly jobs: readonly string[]
  readonly heartbeats: ReadonlyMap<string, RealTime>
}

/** Tells systemd that the daemon is ready, and then again and again that it is well, as long as it is. Without systemd does nothing. */
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
    const ailment = ailmentOf(signs, startedAt, ctx.clock.now())
    if (ailment === null) notify(ctx, 'WATCHDOG=1')
    else ctx.log.error({ ailment }, 'unhealthy: skipping the systemd watchdog ping')
  }, manager.watchdogMs / SIGNS_PER_PERIOD)
  return {
    stop() {
      clearInterval(timer)
      lag.disable()
      notify(ctx, 'STOPPING=1')
    },
  }
}

/** Node has no datagram sockets of the UNIX kind: systemd's own program speaks to them. */
function notify(ctx: Context, ...assignments: string[]): void {
  execFile('systemd-notify', assignments, { timeout: NOTIFY_DEADLINE_MS }, (error) => {
    if (error) ctx.log.warn({ error: error.message }, 'systemd was not notified: is systemd-notify installed?')
  })
}
