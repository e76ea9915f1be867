import type { Context } from '#context.ts'
import { lastSignOf, listLastJobRuns } from '#upkeep/job-runs/store.ts'
import { databaseNow } from '#db/database-now.ts'
import { countFailedWrites } from '#realtime/store.ts'
import { sumUnallocated, type UnallocatedSum } from '#payments/lists/store.ts'
import { findAppsAtLimit } from '#mails/daily-limit.ts'
import { STAGES, stageWindow } from '#mails/reminders/stages.ts'
import { listDueSubscriptions } from '#mails/reminders/due/store.ts'
import { asAppTime, asRealTime, secondsSince } from '#shared/time.ts'
import { clockSkewSeconds } from './check-database.ts'
import { readOutbox } from './store.ts'
import { sumFlagged, type FlaggedSum } from '#reports/store.ts'
import { measureReview, type ReviewSize } from '#review/read-review.ts'

/** The service's health according to the database. Durations in seconds; only the skew may be negative. */
export interface HealthMetrics {
  readonly flagged: readonly FlaggedSum[]
  readonly unallocated: readonly UnallocatedSum[]
  /** Events waiting to be sent, counted up to 100 000, and for how long the oldest due one has been due. */
  readonly outbox: { readonly depth: number; readonly lagSeconds: number }
  /** For how long the oldest due reminder has been due. */
  readonly reminderLagSeconds: number
  readonly realtimeFailed: number
  readonly clockSkewSeconds: number
  readonly jobs: readonly { readonly job: string; readonly secondsSinceRun: number }[]
  /** What waits for an operator, by kind. */
  readonly review: readonly ReviewSize[]
}

/** The metrics that could be read, and the errors of the others, by name. */
export interface HealthReading {
  readonly metrics: Partial<HealthMetrics>
  readonly failures: ReadonlyMap<string, unknown>
}

const MAX_COUNTED = 100_000

const READERS: { readonly [Name in keyof HealthMetrics]: (ctx: Context) => Promise<HealthMetrics[Name]> } = {
  flagged: ({ db }) => sumFlagged(db),
  unallocated: ({ db }) => sumUnallocated(db, null),
  outbox: async (ctx) => {
    const { depth, oldestDueAt } = await readOutbox(ctx.db, MAX_COUNTED)
    return { depth, lagSeconds: oldestDueAt === null ? 0 : secondsSince(oldestDueAt, ctx.clock.now()) }
  },
  reminderLagSeconds: reminderLag,
  realtimeFailed: ({ db }) => countFailedWrites(db, MAX_COUNTED),
  clockSkewSeconds,
  jobs: async (ctx) => {
    const runs = await listLastJobRuns(ctx.db)
    const now = ctx.clock.now()
    return runs.map((run) => ({ job: run.job, secondsSinceRun: secondsSince(lastSignOf(run), now) }))
  },
  review: measureReview,
}

/**
 * Reads the metrics by a few indexed statements, one after the other, so that a scrape takes one connection. A metric that cannot be read
 * does not hide the others. Throws if none can be read.
 */
export async function readHealthMetrics(ctx: Context): Promise<HealthReading> {
  const metrics: Record<string, unknown> = {}
  const failures = new Map<string, unknown>()
  for (const [name, read] of Object.entries(READERS)) {
    try {
      metrics[name] = await read(ctx)
    } catch (error) {
      failures.set(name, error)
    }
  }
  const [first] = failures.values()
  if (failures.size === Object.keys(READERS).length) throw first
  return { metrics, failures }
}

/** Of apps in real time only, since sandbox clocks jump. Mails that a daily limit holds back are not late. */
async function reminderLag(ctx: Context): Promise<number> {
  const realNow = await databaseNow(ctx, ctx.db)
  // The test clocks of these apps were not moved.
  const now = asAppTime(realNow)
  const exceptApps = await findAppsAtLimit(ctx)
  let lag = 0
  for (const stage of STAGES) {
    const [longest] = await listDueSubscriptions(ctx.db, {
      scope: 'apps in real time',
      stage,
      now,
      realNow,
      exceptApps,
      withFailed: true,
      after: null,
      limit: 1,
    })
    if (longest?.currentPeriodEnd)
      lag = Math.max(lag, secondsSince(asRealTime(stageWindow(stage, longest.currentPeriodEnd).from), ctx.clock.now()))
  }
  return lag
}
