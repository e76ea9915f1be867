import type { Context } from '#context.ts'
import { askMetrics } from '#doctor/ask-metrics.ts'
import { readHealthMetrics, type HealthMetrics } from '#doctor/health-metrics.ts'
import { listPayments, presentListedPayment } from '#payments/list-payments.ts'
import { SECOND_MS, formatTimestamp } from '#shared/time.ts'

/** What `watch` shows. Durations in seconds, amounts in the smallest unit, rates from the daemon's counters at two readings. */
export interface WatchReading {
  readonly at: string
  readonly daemon: {
    readonly url: string
    readonly answers: boolean
    /** Why it does not answer; null if it does. */
    readonly error: string | null
    /** What to do about it. */
    readonly fix: string | null
  }
  /** Null at the first reading, and while the daemon does not answer. */
  readonly requests_per_second: number | null
  readonly deliveries_per_second: number | null
  /** This and what follows is null if it cannot be read. */
  readonly outbox: { readonly events: number; readonly oldest_due_seconds: number } | null
  readonly reminders_late_seconds: number | null
  readonly realtime_failed: number | null
  readonly flagged:
    | readonly {
        readonly sandbox: boolean
        readonly reason: string
        readonly currency: string
        readonly transactions: number
        readonly unapplied: bigint
      }[]
    | null
  readonly jobs: readonly { readonly job: string; readonly seconds_since_run: number }[] | null
  /** The newest first. */
  readonly payments: readonly ReturnType<typeof presentListedPayment>[]
}

/** The daemon's counters at an instant; the next reading is compared with them. */
interface Counters {
  readonly atMs: number
  readonly requests: number
  readonly deliveries: number
}

const PAYMENTS = '10'

/** Reads what `watch` shows: from the database by a few indexed statements, and from `/metrics` of this machine's daemon. */
export class Watch {
  readonly #ctx: Context
  /** Null before the first reading, and if the daemon did not answer the last one. */
  #before: Counters | null = null

  constructor(ctx: Context) {
    this.#ctx = ctx
  }

  /** Its rates are those since the last reading. */
  async read(): Promise<WatchReading> {
    const ctx = this.#ctx
    const [{ url, text, error, fix }, { metrics }, payments] = await Promise.all([
      askMetrics(ctx),
      readHealthMetrics(ctx),
      listPayments(ctx, { appId: null, waiting: false }, { limit: PAYMENTS }),
    ])
    const now = text === null ? null : countersIn(text, ctx.clock.now().getTime())
    const rates = ratesOf(this.#before, now)
    this.#before = now
    return {
      at: formatTimestamp(ctx.clock.now()),
      daemon: { url, answers: now !== null, error, fix },
      ...rates,
      ...healthOf(metrics),
      payments: payments.rows.map(presentListedPayment),
    }
  }
}

function healthOf({ outbox, reminderLagSeconds, realtimeFailed, flagged, jobs }: Partial<HealthMetrics>) {
  return {
    outbox: outbox ? { events: outbox.depth, oldest_due_seconds: Math.round(outbox.lagSeconds) } : null,
    reminders_late_seconds: reminderLagSeconds === undefined ? null : Math.round(reminderLagSeconds),
    realtime_failed: realtimeFailed ?? null,
    flagged: flagged?.map(({ isSandbox, ...sum }) => ({ sandbox: isSandbox, ...sum })) ?? null,
    jobs: jobs?.map(({ job, secondsSinceRun }) => ({ job, seconds_since_run: Math.round(secondsSinceRun) })) ?? null,
  }
}

/** The counters in the daemon's metrics. */
function countersIn(text: string, atMs: number): Counters {
  return {
    atMs,
    requests: sumOf(text, 'paygate_http_request_seconds_count'),
    deliveries: sumOf(text, 'paygate_webhook_deliveries_total'),
  }
}

/** The sum of all samples of a metric in Prometheus text. */
export function sumOf(text: string, metric: string): number {
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${metric}{`) || line.startsWith(`${metric} `))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

function ratesOf(
  before: Counters | null,
  now: Counters | null,
): Pick<WatchReading, 'requests_per_second' | 'deliveries_per_second'> {
  // Counters that went down belong to a restarted daemon.
  if (!before || !now || now.atMs <= before.atMs || now.requests < before.requests)
    return { requests_per_second: null, deliveries_per_second: null }
  const perSecond = (count: number): number => Math.round((count * SECOND_MS * 10) / (now.atMs - before.atMs)) / 10
  return {
    // Without the scrape itself.
    requests_per_second: perSecond(Math.max(0, now.requests - before.requests - 1)),
    deliveries_per_second: perSecond(Math.max(0, now.deliveries - before.deliveries)),
  }
}
