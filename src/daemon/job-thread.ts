import type { JobOutcome } from '#upkeep/job-runs/store.ts'
import { doublingPauseMs, HOUR_MS, MINUTE_MS, SECOND_MS, type RealTime } from '#shared/time.ts'
import type { JobSettings } from './job-message.ts'
import type { ScheduledJob } from './jobs.ts'

/** Why a thread ended, other than by cancellation. */
export interface Failure {
  readonly kind: Exclude<JobOutcome, 'done'>
  readonly error: unknown
}

/** A thread without this many heartbeats in a row is considered hung. */
const MISSED_HEARTBEATS = 3
/** Extra time before the first heartbeat, in which a thread loads its modules and connects. */
const START_MS = 30 * SECOND_MS
/** After a long outage of the database, jobs continue no later than this. */
const MAX_RESTART_MS = 15 * SECOND_MS
/** A job that ran this long has recovered: its failures are forgotten. */
const RECOVERED_MS = 5 * MINUTE_MS

/** What the daemon knows about the thread of one job: when it started, when it was last heard, and why it failed. */
export class JobThread {
  readonly job: ScheduledJob
  /** What its thread gets at each start. */
  readonly settings: Omit<JobSettings, 'isHourly'> & { isHourly: boolean }
  #startedAt: RealTime
  #startedMs = performance.now()
  /** Heartbeats that it may still miss. */
  #mayMiss = MISSED_HEARTBEATS
  /** When the last hourly sweep ended; at first an hour before the first one is due. */
  #hourlyMs: number
  #isSweepDone = false
  #failure: Failure | null = null
  #failuresInARow = 0

  /** The first hourly sweep is due after `firstHourlyMs`. */
  constructor(job: ScheduledJob, settings: Omit<JobSettings, 'isHourly'>, now: RealTime, firstHourlyMs: number) {
    this.job = job
    this.settings = { ...settings, isHourly: false }
    this.#startedAt = now
    this.#hourlyMs = performance.now() + firstHourlyMs - HOUR_MS
  }

  get startedAt(): RealTime {
    return this.#startedAt
  }

  /** Decides whether the next sweep also does the hourly work. */
  chooseHourly(): boolean {
    this.settings.isHourly = (this.job.sweep?.isHourly ?? false) && performance.now() - this.#hourlyMs >= HOUR_MS
    return this.settings.isHourly
  }

  start(now: RealTime): void {
    this.#startedAt = now
    this.#startedMs = performance.now()
    // Allows for a late first heartbeat.
    this.#mayMiss = MISSED_HEARTBEATS + Math.ceil(START_MS / this.settings.heartbeatMs)
    this.#isSweepDone = false
    this.#failure = null
  }

  hear(): void {
    this.#mayMiss = MISSED_HEARTBEATS
  }

  /** Its sweep has ended; the thread ends next. */
  finishSweep(): void {
    this.#isSweepDone = true
  }

  /** The first failure is the cause of those that follow it. */
  fail(failure: Failure): void {
    this.#failure ??= failure
  }

  /**
   * Records the failure of a thread that hangs. Returns true once, when it does. Call it once in the time of a heartbeat: it counts the
   * calls rather than the clock, so that a pause of this process or of the machine, however long, counts as one.
   */
  failIfHung(): boolean {
    this.#mayMiss -= 1
    if (this.#failure || this.#mayMiss >= 0) return false
    this.fail({ kind: 'hung', error: `no heartbeat for ${MISSED_HEARTBEATS * this.settings.heartbeatMs} ms` })
    return true
  }

  /** What an error that ends the thread means. */
  failureOf(error: unknown): Failure {
    const { longestSweepMs } = this.job
    if (longestSweepMs !== null && performance.now() - this.#startedMs >= longestSweepMs)
      return { kind: 'overdue', error: `a sweep took more than ${longestSweepMs} ms` }
    const isMemory = (error as { code?: unknown } | null)?.code === 'ERR_WORKER_OUT_OF_MEMORY'
    return { kind: isMemory ? 'out_of_memory' : 'failed', error }
  }

  /** The thread has ended: the failure that ended it, or null after a sweep. */
  end(): Failure | null {
    if (!this.job.sweep || !this.#isSweepDone || this.#failure)
      return this.#failure ?? { kind: 'ended', error: 'the job ended by itself' }
    this.#failuresInARow = 0
    if (this.settings.isHourly) this.#hourlyMs = performance.now()
    return null
  }

  /** Pause before the start that follows a failure: `firstMs`, doubled for each failure in a row before this one. */
  pauseAfterFailureMs(firstMs: number): number {
    const livedMs = performance.now() - this.#startedMs
    this.#failuresInARow = livedMs > RECOVERED_MS ? 1 : this.#failuresInARow + 1
    return doublingPauseMs(firstMs, this.#failuresInARow - 1, MAX_RESTART_MS)
  }
}
