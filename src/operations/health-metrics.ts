import type { Context } from '#context.ts'
import { listLastJobRuns } from '#db/store.ts'
import { databaseNow } from '#db/database-now.ts'
import { countFailedWrites } from '#realtime/store.ts'
import { sumUnallocated, type UnallocatedSum } from '#payments/store.ts'
import { findAppsAtLimit } from '#renewals/daily-limit.ts'
import { STAGES, stageWindow } from '#renewals/stages.ts'
import { listDueSubscriptions } from '#renewals/store.ts'
import { SECOND_MS, asAppTime, asRealTime, type RealTime } from '#shared/time.ts'
import { clockSkewSeconds } from './check-database.ts'
import { readOutbox, sumFlagged, type FlaggedSum } from './store.ts'

/** The service's health according to the database. Durations in seconds; only the skew may be negative. */
export interface HealthMetrics {
  readonly flagged: readonly FlaggedSum[]
  readonly unallocated: readonly UnallocatedSum[]
  /** Events waiting to be sent, counted up to 100 000. */
  readonly outboxDepth: number
  /** For how long the oldest due event has been due. */
  readonly outboxLagSeconds: number
  /** For how long the oldest due reminder has been due. */
  readonly reminderLagSeconds: number
  readonly realtimeFailed: number
  readonly clockSkewSeconds: number
  readonly jobs: readonly { readonly job: string; readonly secondsSinceRun: number }[]
}

const MAX_COUNTED = 100_000

/** Reads them by a few indexed statements, one after the other, so that a scrape takes one connection. */
export async function readHealthMetrics(ctx: Context): Promise<HealthMetrics> {
  const { depth, oldestDueAt } = await readOutbox(ctx.db, MAX_COUNTED)
  const runs = await listLastJobRuns(ctx.db)
  return {
    flagged: await sumFlagged(ctx.db),
    unallocated: await sumUnallocated(ctx.db, null),
    outboxDepth: depth,
    outboxLagSeconds: oldestDueAt === null ? 0 : secondsSince(ctx, oldestDueAt),
    reminderLagSeconds: await reminderLag(ctx),
    realtimeFailed: await countFailedWrites(ctx.db, MAX_COUNTED),
    clockSkewSeconds: await clockSkewSeconds(ctx),
    jobs: runs.map((run) => ({ job: run.job, secondsSinceRun: secondsSince(ctx, run.finishedAt ?? run.startedAt) })),
  }
}

/** Of apps in real time only, since sandbox clocks jump. Mails that a daily limit holds back are not late. */
async function reminderLag(ctx: Context): Promise<number> {
  const realNow = await databaseNow(ctx, ctx.db)
  // The own time of these apps is the real one.
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
      lag = Math.max(lag, secondsSince(ctx, asRealTime(stageWindow(stage, longest.currentPeriodEnd).from)))
  }
  return lag
}

function secondsSince(ctx: Context, instant: RealTime): number {
  return Math.max(0, (ctx.clock.now().getTime() - instant.getTime()) / SECOND_MS)
}
