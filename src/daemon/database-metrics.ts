import type { Context } from '#context.ts'
import { JOBS } from '#doctor/check-work.ts'
import { readHealthMetrics, type HealthMetrics } from '#doctor/health-metrics.ts'
import type { ReviewSize } from '#review/read-review.ts'
import { messageOf } from '#shared/errors.ts'
import { secondsSince } from '#shared/time.ts'
import { FRESH_MS, inTime, modeOf, warnUnread } from './database-reading.ts'
import type { Metrics, Sample } from './metrics.ts'
import { CachedReading } from './cached-reading.ts'

/** A gauge whose value comes from the database. It has no samples if the value could not be read. */
interface DatabaseGauge {
  readonly name: string
  readonly help: string
  readonly labelNames?: readonly string[]
  /** `uptimeSeconds` of the daemon. */
  readonly samplesOf: (values: Partial<HealthMetrics>, uptimeSeconds: number) => readonly Sample[] | undefined
}

const MONEY: readonly DatabaseGauge[] = [
  {
    name: 'money_unapplied',
    help: 'Money received, neither applied nor refunded, in the smallest unit of the currency',
    labelNames: ['currency', 'mode'],
    samplesOf: ({ flagged, unallocated }) =>
      // The sum would be wrong with only one of the two.
      flagged &&
      unallocated &&
      sumBy([
        ...flagged.map((sum) => [{ currency: sum.currency, mode: modeOf(sum) }, sum.unapplied] as const),
        ...unallocated.map((sum) => [{ currency: sum.currency, mode: modeOf(sum) }, sum.amount] as const),
      ]),
  },
  {
    name: 'transactions_flagged',
    help: 'Transactions that need an operator, by reason',
    labelNames: ['reason', 'mode'],
    samplesOf: ({ flagged }) =>
      flagged && sumBy(flagged.map((sum) => [{ reason: sum.reason, mode: modeOf(sum) }, BigInt(sum.transactions)])),
  },
  ofReview('review_items', 'Cases that wait for an operator, by kind', ({ cases }) => cases),
  ofReview('review_oldest_seconds', 'How long the oldest case has waited, by kind', (size) => size.oldestSeconds),
]

const QUEUES: readonly DatabaseGauge[] = [
  one('outbox_events', 'Events that wait to be sent, counted up to 100000', ({ outbox }) => outbox?.depth),
  one('outbox_lag_seconds', 'How long the oldest due event has been due', ({ outbox }) => outbox?.lagSeconds),
  one('reminder_lag_seconds', 'How long the oldest due reminder has been due', (values) => values.reminderLagSeconds),
  one('realtime_failed', 'Realtime nodes whose last write failed', ({ realtimeFailed }) => realtimeFailed),
  {
    name: 'job_last_run_seconds',
    help: 'Seconds since the last recorded run of a job, in any daemon',
    labelNames: ['job'],
    // A job that never ran counts as unresponsive since the daemon started.
    samplesOf: ({ jobs }, uptimeSeconds) =>
      jobs &&
      JOBS.map((job) => {
        const run = jobs.find((each) => each.job === job)
        return { value: run?.secondsSinceRun ?? uptimeSeconds, labels: { job } }
      }),
  },
]

const CLOCK = one(
  'database_clock_skew_seconds',
  'How far the clock of the database is ahead of ours',
  ({ clockSkewSeconds: seconds }) => seconds,
)

/** Adds gauges read from the database to `/metrics`. They have no samples while it is unreachable. */
export function addDatabaseMetrics(ctx: Context, metrics: Metrics): void {
  const reading = new CachedReading(FRESH_MS, () => readInTime(ctx))
  const startedAt = ctx.clock.now()
  metrics.gauge('database_up', { help: 'Whether the database answered this scrape' }, async () => {
    const isUp = await reading.get().then(
      () => true,
      () => false,
    )
    return [{ value: Number(isUp) }]
  })
  for (const { name, help, labelNames, samplesOf } of [...MONEY, ...QUEUES, CLOCK]) {
    const samples = async () => samplesOf(await reading.get(), secondsSince(startedAt, ctx.clock.now())) ?? []
    metrics.gauge(name, labelNames ? { help, labelNames } : { help }, samples)
  }
}

function one(
  name: string,
  help: string,
  valueOf: (values: Partial<HealthMetrics>) => number | undefined,
): DatabaseGauge {
  const samplesOf = (values: Partial<HealthMetrics>): Sample[] | undefined => {
    const value = valueOf(values)
    return value === undefined ? undefined : [{ value }]
  }
  return { name, help, samplesOf }
}

function ofReview(name: string, help: string, valueOf: (size: ReviewSize) => number): DatabaseGauge {
  const samplesOf = ({ review }: Partial<HealthMetrics>): Sample[] | undefined =>
    review?.map((size) => ({ value: valueOf(size), labels: { kind: size.kind } }))
  return { name, help, labelNames: ['kind'], samplesOf }
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
