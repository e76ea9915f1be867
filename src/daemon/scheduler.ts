import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Bree from 'bree'
import type { Context } from '#context.ts'
import type { PoolUse } from '#http/entry-queue.ts'
import { describeError } from '#shared/log.ts'
import { MINUTE_MS, SECOND_MS, type RealTime } from '#shared/time.ts'
import { daemonName } from './daemon-name.ts'
import type { JobCommand, JobMessage } from './job-message.ts'
import { JobThread, type Failure } from './job-thread.ts'
import { schedule, type ScheduledJob } from './jobs.ts'
import { JobRuns } from './job-runs.ts'

const SENDER = 'deliver-webhooks'

export interface SchedulerOptions {
  readonly jobs?: readonly ScheduledJob[]
  /** Folder of the jobs' files. */
  readonly root?: string
  readonly heartbeatMs?: number
  /** Pause before a job that failed is started again; doubled for each failure in a row. */
  readonly restartMs?: number
  /** Pause before the first hourly sweep, so that a daemon that starts serves first. */
  readonly firstHourlyMs?: number
}

/**
 * Starts the threads of all jobs and supervises them. A thread that throws, hangs, runs out of memory or never ends its sweep is
 * terminated, recorded, counted and restarted after a pause.
 */
export class Scheduler {
  /** Last heartbeat of each job; the scheduler records one for a job that has no thread now. */
  readonly heartbeats = new Map<string, RealTime>()
  /** Use of the connections of each running thread at its last heartbeat. */
  readonly pools = new Map<string, PoolUse>()
  readonly #ctx: Context
  readonly #restartMs: number
  readonly #threads: ReadonlyMap<string, JobThread>
  readonly #runs: JobRuns
  readonly #bree: Bree
  /** The next start or check of a job that has no thread now. */
  readonly #next = new Map<string, NodeJS.Timeout>()
  readonly #watch: NodeJS.Timeout
  readonly #started: Promise<void>
  #isStopping = false

  /** `env` is the environment of the threads. */
  constructor(ctx: Context, env: Readonly<Record<string, string>>, options: SchedulerOptions = {}) {
    const {
      jobs = schedule(ctx.config),
      root = join(import.meta.dirname, '..', '..', 'jobs'),
      heartbeatMs = 5 * SECOND_MS,
      restartMs = SECOND_MS,
      firstHourlyMs = MINUTE_MS,
    } = options
    const daemon = daemonName()
    const now = ctx.clock.now()
    this.#ctx = ctx
    this.#restartMs = restartMs
    this.#runs = new JobRuns(ctx, daemon)
    this.#threads = new Map(
      jobs.map((job) => [job.name, new JobThread(job, { job: job.name, daemon, heartbeatMs }, now, firstHourlyMs)]),
    )
    this.#bree = this.#openBree(root, env)
    this.#started = this.#startAll()
    this.#watch = setInterval(() => {
      this.#endHung()
      this.#beatForIdle()
    }, heartbeatMs)
  }

  /** Wakes the webhook sender. */
  wakeSender(): void {
    this.#bree.workers.get(SENDER)?.postMessage({ type: 'wake' } satisfies JobCommand)
  }

  /** Cancels all jobs and waits until they have ended; terminates the threads that have not by the deadline. */
  async stop(deadlineMs: number): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#watch)
    // Without this wait, the rest of the start would run after the stop.
    await this.#started
    for (const timer of this.#next.values()) clearTimeout(timer)
    await stopWithin(this.#bree, deadlineMs)
  }

  #openBree(root: string, env: Readonly<Record<string, string>>): Bree {
    const bree = new Bree({
      root: false,
      // Bree logs less than we do, and the overlapping runs that it warns of cannot happen.
      logger: false,
      acceptedExtensions: ['.ts'],
      defaultExtension: 'ts',
      jobs: [...this.#threads.values()].map((thread) => definitionOf(thread, root, env)),
      workerMessageHandler: ({ name, message }) => this.#onMessage(name, message as JobMessage),
      errorHandler: (error, { name }) => this.#onError(name, error),
    })
    bree.on('worker created', (name: string) => this.#threads.get(name)?.start(this.#ctx.clock.now()))
    bree.on('worker deleted', (name: string) => this.#onEnded(name))
    return bree
  }

  async #startAll(): Promise<void> {
    try {
      await this.#bree.start()
    } catch (error) {
      this.#ctx.log.fatal({ error }, 'the jobs cannot be started')
    }
    for (const thread of this.#threads.values())
      void (thread.job.sweep ? this.#checkForWork(thread) : this.#run(thread))
  }

  /** Starts the thread of a job that sweeps if there is work for it, and checks again later otherwise. */
  async #checkForWork(thread: JobThread): Promise<void> {
    const { job } = thread
    const startedAt = this.#ctx.clock.now()
    let hasWork = thread.chooseHourly()
    try {
      hasWork ||= (await job.sweep?.hasWork(this.#ctx)) ?? true
    } catch (error) {
      this.#ctx.log.error({ job: job.name, error }, 'cannot check whether a job has work')
      this.#checkLater(thread)
      return
    }
    if (hasWork) {
      await this.#run(thread)
      return
    }
    if (!this.#isStopping) await this.#runs.recordIdle(job.name, startedAt)
    this.#checkLater(thread)
  }

  #checkLater(thread: JobThread): void {
    this.#later(thread, thread.job.sweep?.everyMs ?? 0, () => this.#checkForWork(thread))
  }

  /** Starts the thread of a job. If the system cannot create one (a limit on threads, or on memory), tries again later. */
  async #run(thread: JobThread): Promise<void> {
    if (this.#isStopping) return
    try {
      await this.#bree.run(thread.job.name)
    } catch (error) {
      thread.start(this.#ctx.clock.now())
      this.#startAgain(thread, { kind: 'failed', error })
    }
  }

  /** Records a failure and starts the job's thread again, after a pause that grows with the failures in a row. */
  #startAgain(thread: JobThread, failure: Failure): void {
    const { name } = thread.job
    const pauseMs = thread.pauseAfterFailureMs(this.#restartMs)
    const fields = { job: name, reason: failure.kind, error: describeError(failure.error), pauseMs }
    this.#ctx.log.error(fields, 'a job failed and will be restarted')
    void this.#runs.recordFailure(name, thread.startedAt, failure)
    this.#later(thread, pauseMs, () => this.#run(thread))
  }

  #later({ job: { name } }: JobThread, pauseMs: number, work: () => Promise<void>): void {
    if (this.#isStopping) return
    const begin = (): void => {
      this.#next.delete(name)
      void work()
    }
    this.#next.set(name, setTimeout(begin, pauseMs))
  }

  #onMessage(name: string, message: JobMessage): void {
    if (message === 'done') this.#threads.get(name)?.finishSweep()
    if (typeof message === 'string') return
    switch (message.type) {
      case 'wake':
        this.wakeSender()
        return
      case 'counted':
        for (const { metric, labels, by } of message.counts) this.#ctx.count(metric, labels, by)
        return
      case 'heartbeat':
        this.#threads.get(name)?.hear()
        this.heartbeats.set(name, this.#ctx.clock.now())
        if (message.pool) this.pools.set(name, message.pool)
        return
    }
  }

  /** Bree reports a failure twice: the error itself, and the exit code that follows. */
  #onError(name: string, error: unknown): void {
    const thread = this.#threads.get(name)
    if (thread && !this.#isStopping) thread.fail(thread.failureOf(error))
  }

  #onEnded(name: string): void {
    this.pools.delete(name)
    const thread = this.#threads.get(name)
    if (!thread || this.#isStopping) return
    const failure = thread.end()
    if (failure) this.#startAgain(thread, failure)
    else this.#checkLater(thread)
  }

  #endHung(): void {
    for (const [name, worker] of this.#bree.workers)
      if (this.#threads.get(name)?.failIfHung() === true) void worker.terminate()
  }

  /** Records a heartbeat for each job that sweeps and has no thread now: this thread checks for its work. */
  #beatForIdle(): void {
    for (const { job } of this.#threads.values())
      if (job.sweep && this.#next.has(job.name)) this.heartbeats.set(job.name, this.#ctx.clock.now())
  }
}

function definitionOf(
  { job, settings }: JobThread,
  root: string,
  env: Readonly<Record<string, string>>,
): Bree.JobOptions {
  return {
    name: job.name,
    path: join(root, `${job.name}.ts`),
    // Bree must start no thread itself: it would not retry if the system cannot create one.
    timeout: false,
    ...(job.longestSweepMs === null ? {} : { closeWorkerAfterMs: job.longestSweepMs }),
    worker: {
      env: { ...env },
      resourceLimits: { maxOldGenerationSizeMb: job.memoryMb, maxYoungGenerationSizeMb: job.youngMb },
      // Read again at each start.
      workerData: settings,
    },
  }
}

/** Adds a deadline: Bree waits for its threads without limit, and drops its own limits when it stops. */
async function stopWithin(bree: Bree, deadlineMs: number): Promise<void> {
  const stopped = bree.stop()
  const timeout = new AbortController()
  await Promise.race([stopped, delay(deadlineMs, undefined, { signal: timeout.signal }).catch(() => undefined)])
  timeout.abort()
  await Promise.all([...bree.workers.values()].map((worker) => worker.terminate()))
  await stopped
}
