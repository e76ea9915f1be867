import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Bree from 'bree'
import type { Context } from '#context.ts'
import { insertJobRun, type JobOutcome } from '#db/store.ts'
import type { PoolUse } from '#http/entry-queue.ts'
import { describeError } from '#shared/log.ts'
import { doublingPauseMs, HOUR_MS, MINUTE_MS, SECOND_MS, type RealTime } from '#shared/time.ts'
import { daemonName } from './daemon-name.ts'
import type { Heartbeat, JobMessage, JobCommand, JobSettings } from './job-message.ts'
import { schedule, type ScheduledJob } from './jobs.ts'

const SENDER = 'deliver-webhooks'

export interface Scheduler {
  /** Wakes the webhook sender. */
  readonly wakeSender: () => void
  /** Cancels all jobs and waits until they have ended; terminates the threads that have not by the deadline. */
  readonly stop: (deadlineMs: number) => Promise<void>
  /** Last heartbeat of each job; the scheduler records one for a job that has no thread now. */
  readonly heartbeats: ReadonlyMap<string, RealTime>
  /** Use of the connections of each running thread at its last heartbeat. */
  readonly pools: ReadonlyMap<string, PoolUse>
}

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

/** A thread without this many heartbeats in a row is considered hung. */
const MISSED_HEARTBEATS = 3
/** Extra time before the first heartbeat, in which a thread loads its modules and connects. */
const START_MS = 30 * SECOND_MS
/** After a long outage of the database, jobs continue no later than this. */
const MAX_RESTART_MS = 15 * SECOND_MS
/** A job that ran this long has recovered: its failures are forgotten. */
const RECOVERED_MS = 5 * MINUTE_MS

/** How often checks without work are recorded, so that the record shows that the job is alive. */
const IDLE_RECORD_MS = MINUTE_MS

/** Why a thread ended, other than by cancellation. */
type Failure = Exclude<JobOutcome, 'done'>

/** What the scheduler knows about one job's thread. */
interface Watched {
  readonly job: ScheduledJob
  /** Passed to its thread at the start. */
  readonly settings: { -readonly [K in keyof JobSettings]: JobSettings[K] }
  startedAt: RealTime
  startedMs: number
  heardMs: number
  failuresInARow: number
  failure: { readonly kind: Failure; readonly error: unknown } | null
  /** Whether its sweep ended. */
  isDone: boolean
  /** When the last hourly sweep ended; at first an hour before the first one is due. */
  hourlyMs: number
  /** When a check without work was last recorded. */
  recordedMs: number
  /** The next start or check. */
  next: NodeJS.Timeout | null
}

interface Supervisor {
  readonly ctx: Context
  readonly bree: Bree
  readonly watched: ReadonlyMap<string, Watched>
  readonly heartbeats: Map<string, RealTime>
  readonly pools: Map<string, PoolUse>
  readonly daemon: string
  readonly heartbeatMs: number
  readonly restartMs: number
  isStopping: boolean
}

/**
 * Starts the threads of all jobs and supervises them. A thread that throws, hangs, runs out of memory or never ends its sweep is
 * terminated, recorded, counted and restarted after a pause. `env` is their environment.
 */
export function startScheduler(
  ctx: Context,
  env: Readonly<Record<string, string>>,
  options: SchedulerOptions = {},
): Scheduler {
  const supervisor = openSupervisor(ctx, env, options)
  const { bree, heartbeats, pools } = supervisor
  bree.on('worker created', (name: string) => onCreated(supervisor, name))
  bree.on('worker deleted', (name: string) => onDeleted(supervisor, name))
  const started = bree.start().catch((error: unknown) => ctx.log.fatal({ error }, 'the jobs cannot be started'))
  void started.then(() => {
    for (const thread of supervisor.watched.values())
      void (thread.job.sweep ? checkForWork(supervisor, thread) : run(supervisor, thread))
  })
  const watch = setInterval(() => {
    endHung(supervisor)
    beatForIdle(supervisor)
  }, supervisor.heartbeatMs)
  return {
    wakeSender: () => wakeSender(supervisor),
    heartbeats,
    pools,
    async stop(deadlineMs) {
      supervisor.isStopping = true
      clearInterval(watch)
      // A stop during the start would be followed by the rest of the start.
      await started
      await stopAll(supervisor, deadlineMs)
    },
  }
}

function openSupervisor(ctx: Context, env: Readonly<Record<string, string>>, options: SchedulerOptions): Supervisor {
  const {
    jobs = schedule(ctx.config),
    root = join(import.meta.dirname, '..', '..', 'jobs'),
    heartbeatMs = 5 * SECOND_MS,
    restartMs = SECOND_MS,
    firstHourlyMs = MINUTE_MS,
  } = options
  const daemon = daemonName()
  const hourlyMs = performance.now() + firstHourlyMs - HOUR_MS
  const watched = new Map(
    jobs.map((job) => [
      job.name,
      watchedOf(ctx, job, { job: job.name, daemon, heartbeatMs, isHourly: false }, hourlyMs),
    ]),
  )
  const definitionOf = ({ job: { name, memoryMb, youngMb, longestSweepMs }, settings }: Watched) => ({
    name,
    path: join(root, `${name}.ts`),
    // Bree starts none by itself, because it would not try again if a thread could not be created.
    timeout: false as const,
    ...(longestSweepMs === null ? {} : { closeWorkerAfterMs: longestSweepMs }),
    worker: {
      env: { ...env },
      resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: youngMb },
      // Read again at each start.
      workerData: settings,
    },
  })
  const bree = new Bree({
    root: false,
    // Bree logs less than we do, and the overlapping runs that it warns of cannot happen.
    logger: false,
    timezone: 'UTC',
    acceptedExtensions: ['.ts'],
    defaultExtension: 'ts',
    jobs: [...watched.values()].map(definitionOf),
    workerMessageHandler: ({ name, message }) => onMessage(supervisor, name, message as JobMessage),
    errorHandler: (error, { name }) => onError(supervisor, name, error),
  })
  const supervisor: Supervisor = {
    ctx,
    bree,
    watched,
    heartbeats: new Map(),
    pools: new Map(),
    daemon,
    heartbeatMs,
    restartMs,
    isStopping: false,
  }
  return supervisor
}

function watchedOf(ctx: Context, job: ScheduledJob, settings: JobSettings, hourlyMs: number): Watched {
  const never = { startedAt: ctx.clock.now(), startedMs: 0, heardMs: 0, recordedMs: -Infinity }
  return {
    job,
    settings: { ...settings },
    ...never,
    hourlyMs,
    failuresInARow: 0,
    failure: null,
    isDone: false,
    next: null,
  }
}

/** Starts the thread of a job that sweeps if there is work for it, and checks again later otherwise. */
async function checkForWork(supervisor: Supervisor, thread: Watched): Promise<void> {
  thread.next = null
  const { ctx } = supervisor
  const { job, settings } = thread
  const startedAt = ctx.clock.now()
  settings.isHourly = (job.sweep?.isHourly ?? false) && performance.now() - thread.hourlyMs >= HOUR_MS
  let hasWork = settings.isHourly
  try {
    hasWork ||= (await job.sweep?.hasWork(ctx)) ?? true
  } catch (error) {
    ctx.log.error({ job: job.name, error }, 'cannot check whether a job has work')
    checkLater(supervisor, thread)
    return
  }
  if (supervisor.isStopping) return
  if (hasWork) {
    await run(supervisor, thread)
    return
  }
  await recordIdle(supervisor, thread, startedAt)
  checkLater(supervisor, thread)
}

function checkLater(supervisor: Supervisor, thread: Watched): void {
  if (supervisor.isStopping) return
  thread.next = setTimeout(() => void checkForWork(supervisor, thread), thread.job.sweep?.everyMs)
}

/** Starts the thread of a job. If the system cannot create one (a limit on threads, or on memory), tries again later. */
async function run(supervisor: Supervisor, thread: Watched): Promise<void> {
  if (supervisor.isStopping) return
  try {
    await supervisor.bree.run(thread.job.name)
  } catch (error) {
    thread.startedAt = supervisor.ctx.clock.now()
    thread.startedMs = performance.now()
    startAgain(supervisor, thread, { kind: 'failed', error })
  }
}

async function recordIdle({ ctx, daemon }: Supervisor, thread: Watched, startedAt: RealTime): Promise<void> {
  const { name } = thread.job
  ctx.count('job_runs_total', { job: name })
  if (performance.now() - thread.recordedMs < IDLE_RECORD_MS) return
  thread.recordedMs = performance.now()
  await recordRun(ctx, { job: name, daemon, startedAt, finishedAt: ctx.clock.now(), outcome: 'done', summary: {} })
}

async function recordRun(ctx: Context, row: Parameters<typeof insertJobRun>[1]): Promise<void> {
  try {
    await insertJobRun(ctx.db, row)
  } catch (error) {
    ctx.log.warn({ error, job: row.job }, 'a job run could not be recorded')
  }
}

/** Records a heartbeat for each job that sweeps and has no thread now: this thread checks for its work. */
function beatForIdle({ ctx, bree, watched, heartbeats }: Supervisor): void {
  for (const { job, next } of watched.values())
    if (job.sweep && next && !bree.workers.has(job.name)) heartbeats.set(job.name, ctx.clock.now())
}

function onCreated({ ctx, watched }: Supervisor, name: string): void {
  const thread = watched.get(name)
  if (!thread) return
  thread.startedAt = ctx.clock.now()
  thread.startedMs = performance.now()
  // Allows for a late first heartbeat.
  thread.heardMs = thread.startedMs + START_MS
  thread.failure = null
  thread.isDone = false
}

function onMessage(supervisor: Supervisor, name: string, message: JobMessage): void {
  if (typeof message === 'string') {
    const thread = supervisor.watched.get(name)
    if (thread && message === 'done') thread.isDone = true
    return
  }
  switch (message.type) {
    case 'wake':
      wakeSender(supervisor)
      return
    case 'counted':
      for (const { metric, labels, by } of message.counts) supervisor.ctx.count(metric, labels, by)
      return
    case 'heartbeat':
      onHeartbeat(supervisor, name, message)
      return
  }
}

function onHeartbeat(supervisor: Supervisor, name: string, { pool }: Heartbeat): void {
  const thread = supervisor.watched.get(name)
  if (!thread) return
  thread.heardMs = performance.now()
  supervisor.heartbeats.set(name, supervisor.ctx.clock.now())
  if (pool) supervisor.pools.set(name, pool)
}

function endHung(supervisor: Supervisor): void {
  const limitMs = MISSED_HEARTBEATS * supervisor.heartbeatMs
  for (const thread of supervisor.watched.values()) {
    const isRunning = supervisor.bree.workers.has(thread.job.name)
    if (thread.failure || !isRunning || performance.now() - thread.heardMs <= limitMs) continue
    thread.failure = { kind: 'hung', error: `no heartbeat for ${limitMs} ms` }
    void supervisor.bree.workers.get(thread.job.name)?.terminate()
  }
}

/** Bree reports a failure twice: the error itself, and the exit code that follows. */
function onError({ watched, isStopping }: Supervisor, name: string, error: unknown): void {
  const thread = watched.get(name)
  if (!thread || isStopping) return
  const { longestSweepMs } = thread.job
  const isMemory = (error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
  if (longestSweepMs !== null && performance.now() - thread.startedMs >= longestSweepMs)
    thread.failure ??= { kind: 'overdue', error: `a sweep took more than ${longestSweepMs} ms` }
  thread.failure ??= { kind: isMemory ? 'out_of_memory' : 'failed', error }
}

function onDeleted(supervisor: Supervisor, name: string): void {
  supervisor.pools.delete(name)
  const thread = supervisor.watched.get(name)
  if (!thread || supervisor.isStopping) return
  if (thread.job.sweep && thread.isDone && !thread.failure) {
    thread.failuresInARow = 0
    if (thread.settings.isHourly) thread.hourlyMs = performance.now()
    checkLater(supervisor, thread)
    return
  }
  startAgain(supervisor, thread, thread.failure ?? { kind: 'ended', error: 'the job ended by itself' })
}

/** Records a failure and starts the job's thread again, after a pause that grows with the failures in a row. */
function startAgain(supervisor: Supervisor, thread: Watched, { kind, error }: NonNullable<Watched['failure']>): void {
  const { name } = thread.job
  const livedMs = performance.now() - thread.startedMs
  thread.failuresInARow = livedMs > RECOVERED_MS ? 1 : thread.failuresInARow + 1
  const pauseMs = doublingPauseMs(supervisor.restartMs, thread.failuresInARow - 1, MAX_RESTART_MS)
  const { ctx } = supervisor
  ctx.log.error({ job: name, reason: kind, error: describeError(error), pauseMs }, 'a job failed and is started again')
  ctx.count('job_failures_total', { job: name, reason: kind })
  void recordFailure(supervisor, thread, kind, error)
  thread.next = setTimeout(() => {
    thread.next = null
    void run(supervisor, thread)
  }, pauseMs)
}

async function recordFailure(
  { ctx, daemon }: Supervisor,
  { job, startedAt }: Watched,
  outcome: Failure,
  error: unknown,
): Promise<void> {
  const { message } = describeError(error)
  const summary = { error: message }
  await recordRun(ctx, { job: job.name, daemon, startedAt, finishedAt: ctx.clock.now(), outcome, summary })
}

function wakeSender({ bree }: Supervisor): void {
  bree.workers.get(SENDER)?.postMessage({ type: 'wake' } satisfies JobCommand)
}

/** Adds a deadline: Bree waits for its threads without limit, and drops its own limits when it stops. */
async function stopAll({ bree, watched }: Supervisor, deadlineMs: number): Promise<void> {
  for (const { next } of watched.values()) if (next) clearTimeout(next)
  const stopped = bree.stop()
  const timeout = new AbortController()
  await Promise.race([stopped, delay(deadlineMs, undefined, { signal: timeout.signal }).catch(() => undefined)])
  timeout.abort()
  await Promise.all([...bree.workers.values()].map((worker) => worker.terminate()))
  await stopped
}
