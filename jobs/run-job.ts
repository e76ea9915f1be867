import { parentPort, workerData } from 'node:worker_threads'
import { loadConfig } from '#config.ts'
import type { Context } from '#context.ts'
import type { Counted, JobMessage, JobOrder, JobSettings } from '#daemon/job-message.ts'
import { poolUse } from '#db/session.ts'
import { insertJobRun } from '#db/store.ts'
import { openContext } from '#open-context.ts'
import { MINUTE_MS, SECOND_MS, type RealTime } from '#shared/time.ts'

/** What a job's command works with, besides the context. */
export interface Job {
  readonly settings: JobSettings
  /** Comes when the job must end. */
  readonly signal: AbortSignal
  /** Calls the listener whenever the daemon wakes this job. */
  readonly onWake: (listener: () => void) => void
  /** Notes in the record of runs what was done since `startedAt`, or else since the last note. */
  readonly report: (done: object, startedAt?: RealTime) => Promise<void>
  /** Marks the beginning of a sweep that is meant to end, and its end. */
  readonly sweeping: (isSweeping: boolean) => void
}

const POOL_SIZE = 6
/** Figures travel to the daemon together. */
const COUNTS_MS = SECOND_MS
/** Sweeps that did nothing are noted this often, so that the record shows that the job lives. */
const QUIET_MS = MINUTE_MS

/** Runs a command in this thread until it ends or the daemon cancels it, with a context of the thread's own. */
export async function runJob(command: (ctx: Context, job: Job) => Promise<unknown>): Promise<void> {
  const port = parentPort
  if (!port) throw new Error('a job runs in a thread of the daemon')
  const settings = workerData as JobSettings
  const post = (message: JobMessage): void => port.postMessage(message)
  const stop = new AbortController()
  let wake = (): void => undefined
  port.on('message', (order: JobOrder) => (order === 'cancel' ? stop.abort() : wake()))
  const heart = startHeart(settings.heartbeatMs, post)
  const counts = openCounts(post)
  const { ctx, close } = await openContext({
    config: loadConfig(),
    thread: settings.job,
    poolSize: POOL_SIZE,
    wakeSender: () => post({ type: 'wake' }),
    count: counts.count,
  })
  heart.connected(ctx.db)
  try {
    await command(ctx, {
      settings,
      signal: stop.signal,
      onWake: (listener) => (wake = listener),
      report: openReport(ctx, settings),
      sweeping: heart.sweeping,
    })
  } finally {
    heart.stop()
    await close()
    counts.flush()
  }
  post(stop.signal.aborted ? 'cancelled' : 'done')
  // Nothing that a library left open may hold back the end.
  process.exit(0)
}

/** What a sweep is told. */
export interface SweepJob {
  readonly signal: AbortSignal
  /** Whether it also does what is to be done once an hour. */
  readonly isHourly: boolean
}

/** A command that sweeps once: its thread ends with it, and the scheduler starts another one when there is work again. */
export function sweep(
  command: (ctx: Context, options: SweepJob) => Promise<object | number>,
): (ctx: Context, job: Job) => Promise<void> {
  return async (ctx, { settings: { isHourly }, signal, sweeping, report }) => {
    const startedAt = ctx.clock.now()
    sweeping(true)
    const done = await command(ctx, { signal, isHourly })
    sweeping(false)
    await report(typeof done === 'number' ? { done } : done, startedAt)
  }
}

interface Heart {
  readonly sweeping: (isSweeping: boolean) => void
  /** From then on it tells of the use of these connections too. */
  readonly connected: (db: Context['db']) => void
  readonly stop: () => void
}

/** Tells the daemon that this thread's event loop turns, and how long the present sweep has been running. */
function startHeart(heartbeatMs: number, post: (message: JobMessage) => void): Heart {
  let sweepStartedMs: number | null = null
  let db: Context['db'] | null = null
  const beat = (): void => {
    const sweepMs = sweepStartedMs === null ? null : performance.now() - sweepStartedMs
    post({ type: 'heartbeat', sweepMs, pool: db && poolUse(db.pool) })
  }
  const timer = setInterval(beat, heartbeatMs)
  beat()
  return {
    sweeping: (isSweeping) => {
      sweepStartedMs = isSweeping ? performance.now() : null
    },
    connected: (opened) => {
      db = opened
    },
    stop: () => clearInterval(timer),
  }
}

/** Adds up figures and posts them once in a while: a message for each would cost more than the work it counts. */
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

/** Writes runs that did something, and now and then one that did not. What cannot be written is logged: the work is done. */
function openReport(ctx: Context, { job, daemon }: JobSettings): Job['report'] {
  let notedAt = ctx.clock.now()
  let notedAtMs = -Infinity
  return async (done, startedAt = notedAt) => {
    ctx.count('job_runs_total', { job })
    const isQuiet = Object.values(done).every((figure) => figure === 0)
    if (isQuiet && performance.now() - notedAtMs < QUIET_MS) return
    notedAt = ctx.clock.now()
    notedAtMs = performance.now()
    const run = { job, daemon, startedAt, finishedAt: notedAt, outcome: 'done', summary: done } as const
    try {
      await insertJobRun(ctx.db, run)
    } catch (error) {
      ctx.log.warn({ error }, 'a job run could not be recorded')
    }
  }
}
