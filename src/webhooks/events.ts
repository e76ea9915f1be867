/**
 * Everything an app is ever told, on one screen (specification 6). `data` holds these fields and no others; times in it are
 * `YYYY-MM-DD HH:MM:SS` in UTC, but for `sent_at`, which is ISO 8601 with an offset (contract 4, Times in events).
 */
export interface EventData {
  readonly 'subscription.updated': SubscriptionSubject & {
    readonly status: 'active' | 'expired'
    readonly current_period_end: string | null
    readonly in_trial: boolean
    readonly trial_ends_at: string | null
  }
  readonly 'subscription.renewed': SubscriptionSubject & {
    readonly provider_code: string
    readonly transaction_id: number
    readonly amount: number
    readonly currency: string
    readonly previous_period_end: string | null
    readonly current_period_end: string | null
    /** Whether a trial turned into a paid subscription. */
    readonly was_trial: boolean
  }
  /** Never carries the renewal link. */
  readonly 'subscription.renewal_reminder_sent': SubscriptionSubject & {
    readonly reminder_day: 3 | 1 | 0
    readonly period_end: string
    readonly in_trial: boolean
    readonly sent_at: string
  }
  readonly 'transaction.completed': {
    readonly external_ref: string
    readonly plan_ref: string
    readonly amount: number
    readonly currency: string
    readonly status: 'completed'
  }
  /** Sent by `billing-cli webhook test`, to see whether a receiver answers; the table of the specification does not know it. */
  readonly 'webhook.test': Record<string, never>
}
export type EventType = keyof EventData

/** Whose subscription an event is about, and what it is for. */
export interface SubscriptionSubject {
  readonly external_ref: string
  readonly paygate_customer_id: string | null
  readonly merchant_customer_id: string | null
  readonly plan_id: string
  readonly price_id: string
  readonly plan_ref: string
}
