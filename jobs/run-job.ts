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
  const heartbeats = new Heartbeats(settings.heartbeatMs, post)
  const counts = new CountBatch(post)
  const { ctx, close } = await openContext({
    config: loadConfig(),
    thread: settings.job,
    wakeSender: () => post({ type: 'wake' }),
    count: (metric, labels, by) => counts.add(metric, labels, by),
  })
  heartbeats.db = ctx.db
  const record = new RunRecord(ctx, settings)
  try {
    await work(ctx, {
      settings,
      signal: stop.signal,
      onWake: (listener) => (wake = listener),
      report: (done, startedAt) => record.report(done, startedAt),
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

/** Sends heartbeats, which show that this thread's event loop runs. */
class Heartbeats {
  /** Its connections, whose use later heartbeats include; null until there are any. */
  db: Context['db'] | null = null
  readonly #post: (message: JobMessage) => void
  readonly #timer: NodeJS.Timeout

  constructor(heartbeatMs: number, post: (message: JobMessage) => void) {
    this.#post = post
    this.#timer = setInterval(() => this.#beat(), heartbeatMs)
    this.#beat()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #beat(): void {
    this.#post({ type: 'heartbeat', pool: this.db && poolUse(this.db.pool) })
  }
}

/** Adds up counts and posts them together: a message for each would cost more than the work that it counts. */
class CountBatch {
  readonly #post: (message: JobMessage) => void
  readonly #sums = new Map<string, Counted>()
  #timer: NodeJS.Timeout | null = null

  constructor(post: (message: JobMessage) => void) {
    this.#post = post
  }

  add(metric: Counted['metric'], labels: Counted['labels'] = {}, by = 1): void {
    const key = JSON.stringify([metric, labels])
    this.#sums.set(key, { metric, labels, by: by + (this.#sums.get(key)?.by ?? 0) })
    this.#timer ??= setTimeout(() => this.flush(), COUNTS_MS)
  }

  flush(): void {
    if (this.#timer) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#sums.size > 0) this.#post({ type: 'counted', counts: [...this.#sums.values()] })
    this.#sums.clear()
  }
}

/** Records runs that did something, and occasionally one that did not. An error is only logged, because the work is done. */
class RunRecord {
  readonly #ctx: Context
  readonly #settings: JobSettings
  #recordedAt: RealTime
  #recordedMs = -Infinity

  constructor(ctx: Context, settings: JobSettings) {
    this.#ctx = ctx
    this.#settings = settings
    this.#recordedAt = ctx.clock.now()
  }

  async report(done: object, startedAt = this.#recordedAt): Promise<void> {
    const { job, daemon } = this.#settings
    this.#ctx.count('job_runs_total', { job })
    const isIdle = Object.values(done).every((count) => count === 0)
    if (isIdle && performance.now() - this.#recordedMs < IDLE_RECORD_MS) return
    this.#recordedAt = this.#ctx.clock.now()
    this.#recordedMs = performance.now()
    const run = { job, daemon, startedAt, finishedAt: this.#recordedAt, outcome: 'done', summary: done } as const
    try {
      await insertJobRun(this.#ctx.db, run)
    } catch (error) {
      this.#ctx.log.warn({ error }, 'a job run could not be recorded')
    }
  }
}
