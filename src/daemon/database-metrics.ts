import type { Context } from '#context.ts'
import { expectedWaitMs, poolUse, type PoolUse } from '#http/entry-queue.ts'
import { JOBS } from '#doctor/check-work.ts'
import { readHealthMetrics, type HealthMetrics } from '#doctor/health-metrics.ts'
import type { ReviewSize } from '#review/read-review.ts'
import { messageOf } from '#shared/errors.ts'
import { SECOND_MS, type RealTime } from '#shared/time.ts'
import { FRESH_MS, inTime, modeOf, warnUnread } from './database-reading.ts'
import type { Metrics, Sample } from './metrics.ts'
import type { Scheduler } from './scheduler.ts'
import { shareReading } from './share-reading.ts'

/** Adds gauges about the database, its pools and the jobs' threads to `/metrics`. Without the database they have no samples. */
export function addDatabaseMetrics(
  ctx: Context,
  metrics: Metrics,
  { heartbeats, pools }: Pick<Scheduler, 'heartbeats' | 'pools'>,
): void {
  const read = shareReading(FRESH_MS, () => readInTime(ctx))
  // A job that never ran or never gave a heartbeat counts as unresponsive from the start of the daemon.
  const startedAt = ctx.clock.now()
  type Of<Result> = (values: Partial<HealthMetrics>) => Result | undefined
  // Values that could not be read have no samples.
  const gauge = (name: string, help: string, labelNames: readonly string[], of: Of<Sample[]>) =>
    metrics.gauge(name, { help, labelNames }, async () => of(await read()) ?? [])
  const one = (name: string, help: string, of: Of<number>) =>
    gauge(name, help, [], (values) => {
      const value = of(values)
      return value === undefined ? undefined : [{ value }]
    })

  metrics.gauge('database_up', { help: 'Whether the database answered this scrape' }, async () => [
    {
      value: await read().then(
        () => 1,
        () => 0,
      ),
    },
  ])
  gauge(
    'money_unapplied',
    'Money received, neither applied nor refunded, in the smallest unit of the currency',
    ['currency', 'mode'],
    ({ flagged, unallocated }) =>
      // One of the two alone would be a wrong sum.
      flagged &&
      unallocated &&
      sumBy([
        ...flagged.map((sum) => [{ currency: sum.currency, mode: modeOf(sum) }, sum.unapplied] as const),
        ...unallocated.map((sum) => [{ currency: sum.currency, mode: modeOf(sum) }, sum.amount] as const),
      ]),
  )
  gauge(
    'transactions_flagged',
    'Transactions that need an operator, by reason',
    ['reason', 'mode'],
    ({ flagged }) =>
      flagged && sumBy(flagged.map((sum) => [{ reason: sum.reason, mode: modeOf(sum) }, BigInt(sum.transactions)])),
  )
  const ofReview = (name: string, help: string, value: (size: ReviewSize) => number) =>
    gauge(name, help, ['kind'], ({ review }) =>
      review?.map((size) => ({ value: value(size), labels: { kind: size.kind } })),
    )
  ofReview('review_items', 'Matters that wait for an operator, by kind', ({ matters }) => matters)
  ofReview('review_oldest_seconds', 'How long the oldest matter has waited, by kind', (size) => size.oldestSeconds)
  one('outbox_events', 'Events that wait to be sent, counted up to 100000', ({ outbox }) => outbox?.depth)
  one('outbox_lag_seconds', 'How long the oldest due event has been due', ({ outbox }) => outbox?.lagSeconds)
  one('reminder_lag_seconds', 'How long the oldest due reminder has been due', (values) => values.reminderLagSeconds)
  one(
    'database_clock_skew_seconds',
    'How far the clock of the database is ahead of ours',
    ({ clockSkewSeconds: seconds }) => seconds,
  )
  one('realtime_failed', 'Realtime nodes whose last write failed', ({ realtimeFailed }) => realtimeFailed)
  gauge(
    'job_last_run_seconds',
    'Seconds since the last recorded run of a job, in any daemon',
    ['job'],
    ({ jobs }) =>
      jobs &&
      JOBS.map((job) => {
        const seen = jobs.find((each) => each.job === job)
        return { value: seen?.secondsSinceRun ?? ageOf(ctx, startedAt), labels: { job } }
      }),
  )
  metrics.gauge(
    'job_heartbeat_seconds',
    { help: "Seconds since the last heartbeat of a job's thread in this daemon", labelNames: ['job'] },
    () => JOBS.map((job) => ({ value: ageOf(ctx, heartbeats.get(job) ?? startedAt), labels: { job } })),
  )
  metrics.gauge(
    'expected_wait_seconds',
    { help: 'How long a call of the API would wait for the database; from 0.3 on reads are answered 429' },
    () => [{ value: expectedWaitMs(ctx.db.pool) / SECOND_MS }],
  )
  metrics.gauge(
    'database_connections',
    { help: 'Connections of each thread, by state; waiting: callers without one', labelNames: ['thread', 'state'] },
    () => [['daemon', poolUse(ctx.db.pool)] as const, ...pools].flatMap(([thread, pool]) => samplesOf(thread, pool)),
  )
}

/** The metrics that could be read; throws if none could. */
async function readInTime(ctx: Context): Promise<Partial<HealthMetrics>> {
  try {
    const { metrics, failures } = await inTime(readHealthMetrics(ctx))
    for (const [metric, error] of failures) warnUnread(ctx, metric, error)
    return metrics
  } catch (error) {
    ctx.log.warn({ error: messageOf(error) }, 'the database metrics cannot be read')
    throw error
  }
}

/** One sample for each set of labels. Prometheus keeps 53 bits of a value: a greater sum is rounded once, at the end. */
function sumBy(parts: readonly (readonly [Readonly<Record<string, string>>, bigint])[]): Sample[] {
  const sums = new Map<string, { readonly labels: Readonly<Record<string, string>>; readonly value: bigint }>()
  for (const [labels, value] of parts) {
    const key = JSON.stringify(labels)
    sums.set(key, { labels, value: value + (sums.get(key)?.value ?? 0n) })
  }
  return [...sums.values()].map(({ labels, value }) => ({ labels, value: Number(value) }))
}

function samplesOf(thread: string, pool: PoolUse): Sample[] {
  return Object.entries(pool).map(([state, value]) => ({ value, labels: { thread, state } }))
}

function ageOf(ctx: Context, at: RealTime): number {
  return Math.max(0, (ctx.clock.now().getTime() - at.getTime()) / SECOND_MS)
}
