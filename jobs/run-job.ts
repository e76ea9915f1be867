import { parentPort, workerData } from 'node:worker_threads'
import { loadConfig } from '#config/config.ts'
import type { Context } from '#context.ts'
import type { Counted, JobMessage, JobCommand, JobSettings } from '#daemon/job-message.ts'
import { poolUse } from '#http/entry-queue.ts'
import { insertJobRun } from '#upkeep/job-runs/store.ts'
import { openContext } from '#open-context.ts'
import { MINUTE_MS, SECOND_MS, type RealTime } from '#shared/time.ts'

/** What a job uses, besides the context. */
export interface Job {
  readonly settings: JobSettings
  /** Aborts when the job must end. */
  readonly signal: AbortSignal
  /** Calls the listener whenever the daemon wakes this job. */
  readonly onWake: (listener: () => void) => void
  /** Records a run: what was done since `startedAt` or, if absent, since the last record. */
  readonly report: (done: object, startedAt?: RealTime) => Promise<void>
}

const POOL_SIZE = 6
/** Counts go to the daemon together, this often. */
const COUNTS_MS = SECOND_MS
/** How often sweeps that did nothing are recorded, so that the record shows that the job is alive. */
const IDLE_RECORD_MS = MINUTE_MS

/** Runs a job in this thread, with a context of its own, until it ends or the daemon cancels it. */
export async function runJob(work: (ctx: Context, job: Job) => Promise<unknown>): Promise<void> {
  const port = parentPort
  if (!port) throw new Error('a job runs in a thread of the daemon')
  const settings = workerData as JobSettings
  const post = (message: JobMessage): void => port.postMessage(message)
  const stop = new AbortController()
  let wake = (): void => undefined
  port.on('message', (message: JobCommand) => (message === 'cancel' ? stop.abort() : wake()))
  const heartbeats = startHeartbeats(settings.heartbeatMs, post)
  const counts = openCounts(post)
  const { ctx, close } = await openContext({
    config: loadConfig(),
    thread: settings.job,
    poolSize: POOL_SIZE,
    wakeSender: () => post({ type: 'wake' }),
    count: counts.count,
  })
  heartbeats.connected(ctx.db)
  try {
    await work(ctx, {
      settings,
      signal: stop.signal,
      onWake: (listener) => (wake = listener),
      report: openReport(ctx, settings),
    })
  } finally {
    heartbeats.stop()
    await close()
    counts.flush()
  }
  // At the next message Bree terminates the thread, which then writes nothing more.
  ctx.log.flush()
  post(stop.signal.aborted ? 'cancelled' : 'done')
  // A handle that a library left open must not keep the thread alive.
  process.exit(0)
}

/** What a sweep needs to know. */
export interface SweepJob {
  readonly signal: AbortSignal
  /** Whether it also does the hourly work. */
  readonly isHourly: boolean
}

/** A job that sweeps once: its thread ends with the sweep, and the scheduler starts another one when there is work again. */
export function sweep(
  work: (ctx: Context, options: SweepJob) => Promise<object | number>,
): (ctx: Context, job: Job) => Promise<void> {
  return async (ctx, { settings: { isHourly }, signal, report }) => {
    const startedAt = ctx.clock.now()
    const done = await work(ctx, { signal, isHourly })
    await report(typeof done === 'number' ? { done } : done, startedAt)
  }
}

interface Heartbeats {
  /** Includes the use of these connections in later heartbeats. */
  readonly connected: (db: Context['db']) => void
  readonly stop: () => void
}

/** Sends heartbeats, which show that this thread's event loop runs. */
function startHeartbeats(heartbeatMs: number, post: (message: JobMessage) => void): Heartbeats {
  let db: Context['db'] | null = null
  const beat = (): void => post({ type: 'heartbeat', pool: db && poolUse(db.pool) })
  const timer = setInterval(beat, heartbeatMs)
  beat()
  return {
    connected: (opened) => {
      db = opened
    },
    stop: () => clearInterval(timer),
  }
}

/** Adds up counts and posts them together: a message for each would cost more than the work that it counts. */
function openCounts(post: (message: JobMessage) => void): { count: Context['count']; flush: () => void } {
  const sums = new Map<string, Counted>()
  let timer: NodeJS.Timeout | null = null
  const flush = (): void => {
    if (timer) clearTimeout(timer)
    timer = null
    if (sums.size > 0) post({ type: 'counted', counts: [...sums.values()] })
    sums.clear()
  }
  const count: Context['count'] = (metric, labels = {}, by = 1) => {
    const key = JSON.stringify([metric, labels])
    sums.set(key, { metric, labels, by: by + (sums.get(key)?.by ?? 0) })
    timer ??= setTimeout(flush, COUNTS_MS)
  }
  return { count, flush }
}

/** Records runs that did something, and occasionally one that did not. An error is only logged, because the work is done. */
function openReport(ctx: Context, { job, daemon }: JobSettings): Job['report'] {
  let recordedAt = ctx.clock.now()
  let recordedAtMs = -Infinity
  return async (done, startedAt = recordedAt) => {
    ctx.count('job_runs_total', { job })
    const isIdle = Object.values(done).every((count) => count === 0)
    if (isIdle && performance.now() - recordedAtMs < IDLE_RECORD_MS) return
    recordedAt = ctx.clock.now()
    recordedAtMs = performance.now()
    const run = { job, daemon, startedAt, finishedAt: recordedAt, outcome: 'done', summary: done } as const
    try {
      await insertJobRun(ctx.db, run)
    } catch (error) {
      ctx.log.warn({ error }, 'a job run could not be recorded')
    }
  }
}
