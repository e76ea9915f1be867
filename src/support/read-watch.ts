import type { Context } from '#context.ts'
import { EndpointError, requestEndpoint } from '#http/outbound.ts'
import { readHealthMetrics, type HealthMetrics } from '#operations/health-metrics.ts'
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

const DEADLINE_MS = 1500
const PAYMENTS = '10'

/** Each call reads what `watch` shows: from the database by a few indexed statements, and from `/metrics` of this machine's daemon. */
export function openWatch(ctx: Context): () => Promise<WatchReading> {
  let before: Counters | null = null
  return async () => {
    const url = metricsUrl(ctx)
    const [scraped, { metrics }, payments] = await Promise.all([
      scrape(ctx, url),
      readHealthMetrics(ctx),
      listPayments(ctx, { appId: null, waiting: false }, { limit: PAYMENTS }),
    ])
    const now = typeof scraped === 'string' ? null : scraped
    const rates = ratesOf(before, now)
    before = now
    return {
      at: formatTimestamp(ctx.clock.now()),
      daemon: { url, answers: now !== null, error: typeof scraped === 'string' ? scraped : null },
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

function metricsUrl({ config: { host, port } }: Context): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}/metrics`
}

/** The counters, or why there are none. */
async function scrape({ config, clock }: Context, url: string): Promise<Counters | string> {
  const headers = config.metricsToken === null ? {} : { authorization: `Bearer ${config.metricsToken}` }
  try {
    const { status, body } = await requestEndpoint({ method: 'GET', url, headers, deadlineMs: DEADLINE_MS })
    if (status !== 200) return `/metrics answered ${status}`
    return {
      atMs: clock.now().getTime(),
      requests: sumOf(body, 'paygate_http_request_seconds_count'),
      deliveries: sumOf(body, 'paygate_webhook_deliveries_total'),
    }
  } catch (error) {
    if (error instanceof EndpointError) return `no answer: ${error.failure}`
    throw error
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
  // Lower counters are those of another daemon.
  if (!before || !now || now.atMs <= before.atMs || now.requests < before.requests)
    return { requests_per_second: null, deliveries_per_second: null }
  const perSecond = (count: number): number => Math.round((count * SECOND_MS * 10) / (now.atMs - before.atMs)) / 10
  return {
    // Without the scrape itself.
    requests_per_second: perSecond(Math.max(0, now.requests - before.requests - 1)),
    deliveries_per_second: perSecond(Math.max(0, now.deliveries - before.deliveries)),
  }
}
