import type { Fit } from '#bank-mail/fits.ts'
import type { presentCustomer } from '#customers/present.ts'
import type { presentSubscription } from '#subscriptions/present.ts'
import type { presentTransaction } from '#transactions/present.ts'

/** The price of the subscription's next period. */
export interface PriceView {
  readonly amount: number
  readonly currency: string
  readonly interval_unit: string
  readonly interval_count: number | null
}

/** A mail of a subscription; `reminder_day` 3, 1 or 0. Times are the app's own but for `at`, which is real. */
export interface MailView {
  readonly reminder_id: number
  readonly reminder_day: number
  readonly period_end: string
  /** `claimed` (under way), `failed` (tried again later), `sent`, `unconfirmed` (it may have been sent), `refused` (the address does not exist). */
  readonly status: string
  readonly at: string
  readonly error: string | null
}

/** A mail about money; `kind` `received`, `part` or `refunded`. `at` is real time. */
export interface ReceiptView {
  readonly receipt_id: number
  readonly transaction_id: number
  readonly kind: string
  readonly amount: number
  readonly currency: string
  /** `due`, `claimed` (under way), `failed` (tried again later), `sent`, `unconfirmed` (it may have been sent), `dropped` (not sent). */
  readonly status: string
  readonly at: string
  readonly error: string | null
}

/** What is known of an end user. Amounts in the smallest unit; times in UTC. */
export interface EndUser {
  readonly app_id: number
  readonly app_name: string
  readonly sandbox: boolean
  readonly external_ref: string
  readonly subscription: (ReturnType<typeof presentSubscription> & { readonly price: PriceView | null }) | null
  readonly customer: ReturnType<typeof presentCustomer> | null
  /** Since when the reminders are stopped; null if they are on. */
  readonly reminders_stopped_at: string | null
  /** The page that renews the subscription; null for lifetime. Whoever has the link may pay. */
  readonly renewal_link: string | null
  /** Newest first. `link`: the page of a checkout that can still be paid. */
  readonly transactions: readonly (ReturnType<typeof presentTransaction> & {
    readonly transfer_code: string | null
    readonly link: string | null
  })[]
  /** Unmatched money that fits one of the transactions. */
  readonly unmatched: readonly Fit[]
  readonly mails: readonly MailView[]
  /** Those of `transactions`, the newest first. */
  readonly receipts: readonly ReceiptView[]
  readonly events: { readonly pending: number; readonly failed: number; readonly last_failed: string | null }
}
