import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Context, MetricName } from '#context.ts'

const COUNTERS: Readonly<Record<MetricName, { readonly help: string; readonly labelNames: readonly string[] }>> = {
  payments_total: { help: 'Payments reported, by provider and outcome', labelNames: ['provider', 'outcome'] },
  payments_flagged_total: { help: 'Payments that need an operator, by reason', labelNames: ['reason'] },
  webhook_deliveries_total: { help: 'Webhook delivery attempts, by outcome', labelNames: ['outcome'] },
  reminders_total: { help: 'Reminder mails, by stage and outcome', labelNames: ['stage', 'outcome'] },
  realtime_writes_total: { help: 'Writes of realtime nodes, by outcome', labelNames: ['outcome'] },
  bank_mails_total: { help: 'Bank mails, by status', labelNames: ['status'] },
  provider_calls_total: {
    help: 'Calls to payment providers, by provider and outcome',
    labelNames: ['provider', 'outcome'],
  },
  transaction_retries_total: {
    help: 'Database transactions run again after a conflict or a lost connection',
    labelNames: [],
  },
  job_runs_total: { help: 'Sweeps of jobs that ended, by job', labelNames: ['job'] },
  job_failures_total: { help: 'Job threads that failed, hung or died, by job', labelNames: ['job', 'reason'] },
}

/** The metrics that `/metrics` shows in the Prometheus text format. */
export interface Metrics {
  readonly registry: Registry
  readonly count: Context['count']
  /** Counts an answered request: its route, method, status and duration in seconds. */
  readonly observeRequest: (route: string, method: string, status: number, seconds: number) => void
  /** Adds a gauge that is read at each scrape. If the read fails, the gauge has no samples, and the scrape continues. */
  readonly gauge: (name: string, shape: GaugeShape, read: () => readonly Sample[] | Promise<readonly Sample[]>) => void
}

export interface GaugeShape {
  readonly help: string
  readonly labelNames?: readonly string[]
}

export interface Sample {
  readonly value: number
  readonly labels?: Readonly<Record<string, string>>
}

const PREFIX = 'paygate_'

function knownLabels(metric: MetricName, labels: Readonly<Record<string, string>>): Record<string, string> {
  const known = COUNTERS[metric].labelNames
  return Object.fromEntries(Object.entries(labels).filter(([name]) => known.includes(name)))
}

export function openMetrics(): Metrics {
  const registry = new Registry()
  const counters = new Map(
    Object.entries(COUNTERS).map(([name, { help, labelNames }]) => [
      name,
      new Counter({ name: `${PREFIX}${name}`, help, labelNames: [...labelNames], registers: [registry] }),
    ]),
  )
  const requests = new Histogram({
    name: `${PREFIX}http_request_seconds`,
    help: 'Duration of HTTP requests',
    labelNames: ['route', 'method', 'status'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  })
  return {
    registry,
    // An unknown label would throw, which would end the daemon if the count came from a worker.
    count: (metric, labels = {}, by = 1) => counters.get(metric)?.inc(knownLabels(metric, labels), by),
    observeRequest: (route, method, status, seconds) => requests.observe({ route, method, status }, seconds),
    gauge(name, { help, labelNames = [] }, read) {
      new Gauge({
        name: `${PREFIX}${name}`,
        help,
        labelNames: [...labelNames],
        registers: [registry],
        async collect() {
          const samples = await Promise.resolve()
            .then(read)
            .catch(() => [])
          this.reset()
          // A reset gauge without labels reads 0, which would be wrong.
          if (labelNames.length === 0) this.remove()
          for (const { value, labels = {} } of samples) this.set(labels, value)
        },
      })
    },
  }
}

/** Adds those of the Node.js process, which measure for as long as it runs. */
export function addProcessMetrics({ registry }: Metrics): void {
  collectDefaultMetrics({ register: registry, prefix: PREFIX })
}
