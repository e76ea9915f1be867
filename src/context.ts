import type { Config } from '#config/config.ts'
import type { Database } from '#db/connect.ts'
import type { Keyring } from '#shared/crypto.ts'
import type { Logger } from '#shared/log.ts'
import type { Clock } from '#shared/time.ts'

/** What every command works with. `open-context.ts` makes it; tests make their own. */
export interface Context {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly log: Logger
  readonly keyring: Keyring
  /** Wakes the webhook sender. It polls as well, so a lost wake-up only delays. */
  readonly wakeSender: () => void
  /** Counts something for `/metrics`; worker threads pass it on to the daemon. */
  readonly count: (metric: MetricName, labels?: Readonly<Record<string, string>>, by?: number) => void
  /** Where set, every transaction is rolled back without effects, and what it would have written is collected here. */
  readonly rehearsal?: Rehearsal
}

/** What rehearsed work would have written. */
export interface Rehearsal {
  /** As the audit log would show them. */
  readonly changes: {
    readonly action: string
    /** Null for what belongs to no app. */
    readonly app_id: number | null
    readonly subject: string
    readonly before: object | null
    readonly after: object | null
  }[]
  /** The events that would be sent. */
  readonly events: { readonly event_type: string; readonly app_id: number; readonly data: object }[]
}

/** The same context, in which all work is rehearsed: `rehearsal` collects what it would have written. */
export function rehearsing(ctx: Context): Context & { readonly rehearsal: Rehearsal } {
  return { ...ctx, rehearsal: { changes: [], events: [] } }
}

/** Counters that domain code raises; `daemon/metrics.ts` has a help text for each. */
export type MetricName =
  | 'payments_total'
  | 'payments_flagged_total'
  | 'webhook_deliveries_total'
  | 'reminders_total'
  | 'realtime_writes_total'
  | 'bank_mails_total'
  | 'provider_calls_total'
  | 'transaction_retries_total'
  | 'job_runs_total'
  | 'job_failures_total'
