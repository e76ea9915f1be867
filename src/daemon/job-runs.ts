import type { Context } from '#context.ts'
import { insertJobRun } from '#upkeep/job-runs/store.ts'
import { describeError } from '#shared/log.ts'
import { MINUTE_MS, type RealTime } from '#shared/time.ts'
import type { Failure } from './job-thread.ts'

/** How often checks without work are recorded, so that the record shows that the job is alive. */
const IDLE_RECORD_MS = MINUTE_MS

/** The record of job runs, as far as the daemon itself writes it: threads record their own sweeps. */
export class JobRuns {
  readonly #ctx: Context
  readonly #daemon: string
  /** When a check without work was last recorded, by job. */
  readonly #idleRecordedMs = new Map<string, number>()

  constructor(ctx: Context, daemon: string) {
    this.#ctx = ctx
    this.#daemon = daemon
  }

  /** A check found no work. */
  async recordIdle(job: string, startedAt: RealTime): Promise<void> {
    this.#ctx.count('job_runs_total', { job })
    if (performance.now() - (this.#idleRecordedMs.get(job) ?? -Infinity) < IDLE_RECORD_MS) return
    this.#idleRecordedMs.set(job, performance.now())
    await this.#insert({ job, startedAt, outcome: 'done', summary: {} })
  }

  async recordFailure(job: string, startedAt: RealTime, { kind, error }: Failure): Promise<void> {
    this.#ctx.count('job_failures_total', { job, reason: kind })
    await this.#insert({ job, startedAt, outcome: kind, summary: { error: describeError(error).message } })
  }

  async #insert(run: Omit<Parameters<typeof insertJobRun>[1], 'daemon' | 'finishedAt'>): Promise<void> {
    try {
      await insertJobRun(this.#ctx.db, { ...run, daemon: this.#daemon, finishedAt: this.#ctx.clock.now() })
    } catch (error) {
      this.#ctx.log.warn({ error, job: run.job }, 'a job run could not be recorded')
    }
  }
}
