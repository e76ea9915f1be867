// Written by `npm run docs` from the schemas that serve the API.

export type CreateCheckoutSessionInput =
  | {
      /**
       * Your own id for the end user who pays. It must not be `.` or `..`.
       */
      external_ref: string
      /**
       * The customer who gets the mails, `cus_1`. In mode `subscription` attached to the subscription when the payment is applied.
       */
      customer_id?: string
      /**
       * Where the payer goes after paying. A visit proves nothing: rely on the webhook, or ask the API.
       */
      success_url: string
      /**
       * Where the payer goes after cancelling.
       */
      cancel_url: string
      /**
       * Fixes the payment method; otherwise the payer chooses on the page.
       */
      payment_method?: 'card' | 'payos' | 'bank_transfer' | 'test'
      /**
       * Your own names and texts, such as an order number: at most 20 keys of 1 to 40 characters of `A-Z a-z 0-9 _ . -`, with texts of at most 500 characters. Kept on the transaction and never shown to the payer.
       */
      metadata?: {
        [k: string]: string
      }
      /**
       * Seconds until the link expires, at most one day.
       */
      expires_in?: number
      mode: 'subscription'
      /**
       * A price on sale, `price_1`.
       */
      price_id: string
      /**
       * True to pay the full price at once.
       */
      skip_trial?: boolean
      /**
       * The code of a promotion, in upper or lower case: takes its discount off this payment.
       */
      promotion_code?: string
    }
  | {
      /**
       * Your own id for the end user who pays. It must not be `.` or `..`.
       */
      external_ref: string
      /**
       * The customer who gets the mails, `cus_1`. In mode `subscription` attached to the subscription when the payment is applied.
       */
      customer_id?: string
      /**
       * Where the payer goes after paying. A visit proves nothing: rely on the webhook, or ask the API.
       */
      success_url: string
      /**
       * Where the payer goes after cancelling.
       */
      cancel_url: string
      /**
       * Fixes the payment method; otherwise the payer chooses on the page.
       */
      payment_method?: 'card' | 'payos' | 'bank_transfer' | 'test'
      /**
       * Your own names and texts, such as an order number: at most 20 keys of 1 to 40 characters of `A-Z a-z 0-9 _ . -`, with texts of at most 500 characters. Kept on the transaction and never shown to the payer.
       */
      metadata?: {
        [k: string]: string
      }
      /**
       * Seconds until the link expires, at most one day.
       */
      expires_in?: number
      mode: 'payment'
      /**
       * Your name for the item: 1 to 64 characters of `a-z 0-9 _ -`. It does not have to be the code of a plan.
       */
      plan_ref: string
      /**
       * Shown to the payer instead of `plan_ref`.
       */
      plan_name?: string
      /**
       * In the currency's smallest unit.
       */
      amount: number
      /**
       * ISO 4217, in upper or lower case.
       */
      currency: string
    }
/**
 * An event of the app, with the state of its delivery.
 */
export type Event = (
  | SubscriptionUpdatedEvent
  | SubscriptionRenewedEvent
  | SubscriptionRenewalReminderSentEvent
  | TransactionCompletedEvent
  | TransactionRefundedEvent
  | TransactionFlaggedEvent
  | SubscriptionExpiredEvent
  | WebhookTestEvent
) & {
  /**
   * `pending`, `delivered`, `failed`, or `not_configured` if the app had no address or no secret.
   */
  delivery_status: string
  /**
   * The number of delivery attempts.
   */
  attempts: number
}

/**
 * Something that end users subscribe to.
 */
export interface Plan {
  id: string
  /**
   * Your name for the plan; `plan_ref` in webhooks.
   */
  code: string
  name: string
  description: string | null
  status: 'active' | 'archived'
  /**
   * The prices on sale; in the response to a write, all prices.
   */
  prices: Price[]
  created_at: string
  updated_at: string
}
/**
 * What one period of a plan costs.
 */
export interface Price {
  id: string
  name: string | null
  /**
   * In the currency's smallest unit.
   */
  amount: number
  /**
   * ISO 4217, in upper case.
   */
  currency: string
  interval_unit: 'day' | 'week' | 'month' | 'year' | 'lifetime'
  interval_count: number
  /**
   * Null if the price has no trial.
   */
  trial: {
    /**
     * 0 for a free trial.
     */
    amount: number
    interval_unit: 'day' | 'week' | 'month' | 'year'
    interval_count: number
  } | null
  /**
   * An archived price cannot be bought; subscriptions on it keep renewing.
   */
  status: 'active' | 'archived'
  created_at: string
}
export interface CreatePlanInput {
  /**
   * Your name for the plan, unique in the app: 1 to 64 characters of `a-z 0-9 _ -`. It never changes.
   */
  code: string
  /**
   * Shown to payers.
   */
  name: string
  /**
   * What the plan includes.
   */
  description?: string | null
  /**
   * @minItems 1
   * @maxItems 20
   */
  prices: {
    /**
     * A label, such as `Monthly`.
     */
    name?: string | null
    /**
     * In the currency's smallest unit: 99000 for VND 99,000, 990 for USD 9.90.
     */
    amount: number
    /**
     * ISO 4217, in upper or lower case.
     */
    currency: string
    /**
     * `lifetime` is paid once and never ends.
     */
    interval_unit: 'day' | 'week' | 'month' | 'year' | 'lifetime'
    /**
     * How many units one period lasts, at most a hundred years. Required, except for `lifetime`.
     */
    interval_count?: number
    /**
     * Granted once per end user and plan. Not allowed for `lifetime`.
     */
    trial?: {
      /**
       * What the trial costs, in the currency's smallest unit; 0 for a free trial.
       */
      amount: number
      interval_unit: 'day' | 'week' | 'month' | 'year'
      /**
       * How many units the trial lasts, at most a hundred years.
       */
      interval_count: number
    } | null
  }[]
}
export interface UpdatePlanInput {
  name?: string
  /**
   * Null clears it.
   */
  description?: string | null
  status?: 'active' | 'archived'
}
export interface AddPriceInput {
  /**
   * A label, such as `Monthly`.
   */
  name?: string | null
  /**
   * In the currency's smallest unit: 99000 for VND 99,000, 990 for USD 9.90.
   */
  amount: number
  /**
   * ISO 4217, in upper or lower case.
   */
  currency: string
  /**
   * `lifetime` is paid once and never ends.
   */
  interval_unit: 'day' | 'week' | 'month' | 'year' | 'lifetime'
  /**
   * How many units one period lasts, at most a hundred years. Required, except for `lifetime`.
   */
  interval_count?: number
  /**
   * Granted once per end user and plan. Not allowed for `lifetime`.
   */
  trial?: {
    /**
     * What the trial costs, in the currency's smallest unit; 0 for a free trial.
     */
    amount: number
    interval_unit: 'day' | 'week' | 'month' | 'year'
    /**
     * How many units the trial lasts, at most a hundred years.
     */
    interval_count: number
  } | null
}
export interface UpdatePriceInput {
  /**
   * Null removes the label.
   */
  name?: string | null
  status?: 'active' | 'archived'
}
/**
 * A code that takes something off a payment.
 */
export interface Promotion {
  id: string
  /**
   * In upper case.
   */
  code: string
  /**
   * What is taken off, in percent; null where `amount` is.
   */
  percent: number | null
  /**
   * What is taken off, in the currency's smallest unit; null where `percent` is.
   */
  amount: number | null
  /**
   * The currency of `amount`.
   */
  currency: string | null
  /**
   * The plans that it is for; null for all.
   */
  plan_codes: string[] | null
  /**
   * Whether every renewal gets the discount, too.
   */
  every_period: boolean
  valid_until: string | null
  max_uses: number | null
  once_per_user: boolean
  /**
   * Whether payers may type the code on the hosted page.
   */
  on_page: boolean
  status: 'active' | 'archived'
  /**
   * How many payments have used it; renewals of `every_period` do not count.
   */
  uses: number
  created_at: string
}
export interface CreatePromotionInput {
  /**
   * What callers and payers give, in upper or lower case: 3 to 40 characters of `A-Z a-z 0-9 _ -`; kept in upper case, unique in the app.
   */
  code: string
  /**
   * What is taken off, in percent, rounded down to the smallest unit.
   */
  percent?: number | null
  /**
   * What is taken off instead, in the currency's smallest unit.
   */
  amount?: number | null
  /**
   * The currency of `amount`; the promotion fits prices in it.
   */
  currency?: string | null
  /**
   * The codes of the plans that it is for; by default all.
   */
  plan_codes?: string[] | null
  /**
   * True to take the discount off every renewal, too; by default only the first payment gets it.
   */
  every_period?: boolean
  /**
   * The promotion is over from then on, in the app's own time; null for no end.
   */
  valid_until?: string | null
  /**
   * How many payments may use it; null for any number.
   */
  max_uses?: number | null
  /**
   * By default, each end user may use it once. False lifts that.
   */
  once_per_user?: boolean
  /**
   * True to let payers type the code on the hosted page.
   */
  on_page?: boolean
}
export interface UpdatePromotionInput {
  /**
   * An archived promotion cannot be used until it is restored.
   */
  status?: 'active' | 'archived'
  /**
   * The promotion is over from then on, in the app's own time; null for no end.
   */
  valid_until?: string | null
  /**
   * How many payments may use it; null for any number.
   */
  max_uses?: number | null
}
/**
 * A person who receives the reminders of a subscription.
 */
export interface Customer {
  id: string
  name: string
  email: string
  /**
   * Your own id for the customer.
   */
  merchant_customer_id: string | null
  cc_emails: string[]
  bcc_emails: string[]
  /**
   * The language of mails and pages.
   */
  locale: 'en' | 'vi'
  created_at: string
  updated_at: string
}
export interface CreateCustomerInput {
  /**
   * The customer's name, used in mails.
   */
  name: string
  /**
   * Where reminders go.
   */
  email: string
  /**
   * Your own id for the customer. It does not have to be unique.
   */
  merchant_customer_id?: string | null
  /**
   * Cc recipients of each mail.
   */
  cc_emails?: string[] | null
  /**
   * Bcc recipients of each mail.
   */
  bcc_emails?: string[] | null
  /**
   * The language of mails and pages; `en` by default.
   */
  locale?: ('en' | 'vi') | null
}
export interface UpdateCustomerInput {
  /**
   * The customer's name, used in mails.
   */
  name?: string
  /**
   * Where reminders go.
   */
  email?: string
  /**
   * Your own id for the customer. It does not have to be unique.
   */
  merchant_customer_id?: string | null
  /**
   * Cc recipients of each mail.
   */
  cc_emails?: string[] | null
  /**
   * Bcc recipients of each mail.
   */
  bcc_emails?: string[] | null
  /**
   * The language of mails and pages; `en` by default.
   */
  locale?: ('en' | 'vi') | null
}
/**
 * A hosted page where a payer pays once.
 */
export interface CheckoutSession {
  id: string
  /**
   * Redirect the payer there. Equals `success_url` if `activated`.
   */
  checkout_url: string
  /**
   * True if there is nothing to pay: a free trial started at once, or a promotion takes everything off.
   */
  activated: boolean
  /**
   * What a promotion takes off; null without one.
   */
  discount: {
    /**
     * The promotion's code.
     */
    code: string
    /**
     * What it takes off, in the currency's smallest unit.
     */
    amount: number
  } | null
  /**
   * The trial that this checkout grants, or null.
   */
  trial: {
    amount: number
    interval_unit: string
    interval_count: number
    /**
     * When the trial ends; for a paid trial, when it would end if paid now.
     */
    ends_at: string
  } | null
  /**
   * The transaction: pending, or completed if a promotion takes everything off; null for a free trial.
   */
  transaction_id: number | null
  expires_at: string
}
/**
 * A subscription with the end user who has it.
 */
export interface ListedSubscription {
  /**
   * The plan's `code`.
   */
  plan_ref: string
  plan_id: string
  /**
   * What the next renewal costs.
   */
  price_id: string
  /**
   * The customer who receives reminders.
   */
  customer_id: string | null
  /**
   * `expired` as soon as `current_period_end` is reached.
   */
  status: 'active' | 'expired'
  /**
   * Null for lifetime.
   */
  current_period_end: string | null
  /**
   * Whether the latest period is a trial.
   */
  in_trial: boolean
  trial_ends_at: string | null
  /**
   * Your own id for the end user.
   */
  external_ref: string
}
/**
 * What an end user has access to, and until when. An end user has at most one.
 */
export interface Subscription {
  /**
   * The plan's `code`.
   */
  plan_ref: string
  plan_id: string
  /**
   * What the next renewal costs.
   */
  price_id: string
  /**
   * The customer who receives reminders.
   */
  customer_id: string | null
  /**
   * `expired` as soon as `current_period_end` is reached.
   */
  status: 'active' | 'expired'
  /**
   * Null for lifetime.
   */
  current_period_end: string | null
  /**
   * Whether the latest period is a trial.
   */
  in_trial: boolean
  trial_ends_at: string | null
}
export interface SwitchPlanInput {
  /**
   * A price on sale, `price_1`.
   */
  price_id: string
}
export interface AttachCustomerInput {
  /**
   * A customer of the app, `cus_1`.
   */
  customer_id: string
}
/**
 * A requested payment and its outcome.
 */
export interface Transaction {
  transaction_id: number
  /**
   * Your own id for the end user.
   */
  external_ref: string
  mode: 'subscription' | 'payment'
  plan_ref: string
  /**
   * Null in mode `payment`.
   */
  price_id: string | null
  paygate_customer_id: string | null
  /**
   * The amount requested, in the currency's smallest unit: the price less `discount`.
   */
  amount: number
  /**
   * What a promotion takes off; null without one.
   */
  discount: {
    /**
     * The promotion's code.
     */
    code: string
    /**
     * What it takes off, in the currency's smallest unit.
     */
    amount: number
  } | null
  /**
   * The amount received so far.
   */
  amount_received: number
  /**
   * What was refunded: the refunds that succeeded.
   */
  amount_refunded: number
  currency: string
  /**
   * `pending` until `amount` has arrived, then `completed`; `refunded` once it was refunded in full. `void` is reserved: no transaction has it.
   */
  status: 'pending' | 'completed' | 'refunded' | 'void'
  /**
   * The provider that took the payment, see Payment methods. Before that, the one that the payer chose last; null until a choice. `promotion` if a promotion left nothing to pay.
   */
  provider_code: string | null
  /**
   * Whether an operator must review it.
   */
  flagged: boolean
  /**
   * `underpaid`, `already_lifetime`, `trial_already_used`, `duplicate_payment`, `period_guard` or `superseded`; null if it is not flagged.
   */
  flag_reason: string | null
  created_at: string
  completed_at: string | null
  /**
   * What you gave when you opened the checkout; `{}` if nothing.
   */
  metadata: {
    [k: string]: string
  }
}
/**
 * A subscription changed: it was activated, renewed or ended, a customer was attached, a price was chosen.
 */
export interface SubscriptionUpdatedEvent {
  /**
   * The same for all attempts. Both signatures cover it. Use it to skip events that you have already handled.
   */
  id: string
  event_type: 'subscription.updated'
  app_id: number
  data: {
    /**
     * Your own id for the end user.
     */
    external_ref: string
    paygate_customer_id: string | null
    /**
     * Your own id for the customer.
     */
    merchant_customer_id: string | null
    plan_id: string
    price_id: string
    /**
     * The plan's `code`.
     */
    plan_ref: string
    status: 'active' | 'expired'
    /**
     * Null for lifetime.
     */
    current_period_end: string | null
    in_trial: boolean
    trial_ends_at: string | null
  }
  /**
   * ISO 8601 with an offset in a webhook, `YYYY-MM-DD HH:MM:SS` in UTC in a list.
   */
  created_at: string
}
/**
 * A payment was applied to an existing subscription. Not sent for a second payment for a period that is already renewed.
 */
export interface SubscriptionRenewedEvent {
  /**
   * The same for all attempts. Both signatures cover it. Use it to skip events that you have already handled.
   */
  id: string
  event_type: 'subscription.renewed'
  app_id: number
  data: {
    /**
     * Your own id for the end user.
     */
    external_ref: string
    paygate_customer_id: string | null
    /**
     * Your own id for the customer.
     */
    merchant_customer_id: string | null
    plan_id: string
    price_id: string
    /**
     * The plan's `code`.
     */
    plan_ref: string
    /**
     * As in `GET /transactions/{id}`.
     */
    provider_code: string
    transaction_id: number
    /**
     * What was paid, in the currency's smallest unit: without a surplus, and less if an operator accepted less.
     */
    amount: number
    currency: string
    previous_period_end: string | null
    /**
     * Null for lifetime.
     */
    current_period_end: string | null
    /**
     * Whether a trial turned into a paid subscription.
     */
    was_trial: boolean
  }
  /**
   * ISO 8601 with an offset in a webhook, `YYYY-MM-DD HH:MM:SS` in UTC in a list.
   */
  created_at: string
}
/**
 * A reminder was sent, once per stage and period. It never carries the renewal link.
 */
export interface SubscriptionRenewalReminderSentEvent {
  /**
   * The same for all attempts. Both signatures cover it. Use it to skip events that you have already handled.
   */
  id: string
  event_type: 'subscription.renewal_reminder_sent'
  app_id: number
  data: {
    /**
     * Your own id for the end user.
     */
    external_ref: string
    paygate_customer_id: string | null
    /**
     * Your own id for the customer.
     */
    merchant_customer_id: string | null
    plan_id: string
    price_id: string
    /**
     * The plan's `code`.
     */
    plan_ref: string
    /**
     * Days before the end; 0 is the mail after the end.
     */
    reminder_day: 3 | 1 | 0
    period_end: string
    in_trial: boolean
    /**
     * ISO 8601 with an offset.
     */
    sent_at: string
  }
  /**
   * ISO 8601 with an offset in a webhook, `YYYY-MM-DD HH:MM:SS` in UTC in a list.
   */
  created_at: string
}
/**
 * A one-time payment was completed.
 */
export interface TransactionCompletedEvent {
  /**
   * The same for all attempts. Both signatures cover it. Use it to skip events that you have already handled.
   */
  id: string
  event_type: 'transaction.completed'
  app_id: number
  data: {
    transaction_id: number
    /**
     * Your own id for the end user.
     */
    external_ref: string
    paygate_customer_id: string | null
    plan_ref: string
    /**
     * In the currency's smallest unit.
     */
    amount: number
    currency: string
    status: 'completed'
    /**
     * What you gave when you opened the checkout; `{}` if nothing.
     */
    metadata: {
      [k: string]: string
    }
  }
  /**
   * ISO 8601 with an offset in a webhook, `YYYY-MM-DD HH:MM:SS` in UTC in a list.
   */
  created_at: string
}
/**
 * A refund succeeded. Only for apps that ask for it (`app update --more-events`).
 */
export interface TransactionRefundedEvent {
  /**
   * The same for all attempts. Both signatures cover it. Use it to skip events that you have already handled.
   */
  id: string
  event_type: 'transaction.refunded'
  app_id: number
  data: {
    transaction_id: number
    /**
     * Your own id for the end user.
     */
    external_ref: string
    plan_ref: string
    /**
     * Of this refund.
     */
    amount_refunded: number
    /**
     * Of all refunds that succeeded so far.
     */
    amount_refunded_total: number
    currency: string
    /**
     * Of the transaction, after the refund.
     */
    status: 'pending' | 'completed' | 'refunded' | 'void'
    refunded_at: string
  }
  /**
   * ISO 8601 with an offset in a webhook, `YYYY-MM-DD HH:MM:SS` in UTC in a list.
   */
  created_at: string
}
/**
 * An operator must review a transaction. Only for apps that ask for it (`app update --more-events`).
 */
export interface TransactionFlaggedEvent {
  /**
   * The same for all attempts. Both signatures cover it. Use it to skip events that you have already handled.
   */
  id: string
  event_type: 'transaction.flagged'
  app_id: number
  data: {
    transaction_id: number
    /**
     * Your own id for the end user.
     */
    external_ref: string
    plan_ref: string
    /**
     * In the currency's smallest unit.
     */
    amount: number
    amount_received: number
    currency: string
    /**
     * As in `GET /transactions/{id}`.
     */
    flag_reason: string
  }
  /**
   * ISO 8601 with an offset in a webhook, `YYYY-MM-DD HH:MM:SS` in UTC in a list.
   */
  created_at: string
}
/**
 * A period ended and was not extended. Only for apps that ask for it (`app update --more-events`).
 */
export interface SubscriptionExpiredEvent {
  /**
   * The same for all attempts. Both signatures cover it. Use it to skip events that you have already handled.
   */
  id: string
  event_type: 'subscription.expired'
  app_id: number
  data: {
    /**
     * Your own id for the end user.
     */
    external_ref: string
    paygate_customer_id: string | null
    /**
     * Your own id for the customer.
     */
    merchant_customer_id: string | null
    plan_id: string
    price_id: string
    /**
     * The plan's `code`.
     */
    plan_ref: string
    period_end: string
    /**
     * Whether the period was a trial.
     */
    was_trial: boolean
  }
  /**
   * ISO 8601 with an offset in a webhook, `YYYY-MM-DD HH:MM:SS` in UTC in a list.
   */
  created_at: string
}
/**
 * An operator ran `billing-cli webhook test` to check the receiver.
 */
export interface WebhookTestEvent {
  /**
   * The same for all attempts. Both signatures cover it. Use it to skip events that you have already handled.
   */
  id: string
  event_type: 'webhook.test'
  app_id: number
  data: Record<string, never>
  /**
   * ISO 8601 with an offset in a webhook, `YYYY-MM-DD HH:MM:SS` in UTC in a list.
   */
  created_at: string
}
export interface AdvanceTestClockInput {
  /**
   * How far to move, at most a hundred years.
   */
  advance_seconds?: number
  /**
   * The time to move to, `2027-01-01 09:30:00`.
   */
  now?: string
}
export interface ErrorBody {
  success: false
  error: {
    code:
      | 'invalid_request'
      | 'price_not_found'
      | 'payment_method_unavailable'
      | 'promotion_not_valid'
      | 'unauthorized'
      | 'forbidden'
      | 'app_disabled'
      | 'not_found'
      | 'method_not_allowed'
      | 'plan_code_taken'
      | 'promotion_code_taken'
      | 'already_lifetime'
      | 'idempotency_conflict'
      | 'checkout_expired'
      | 'payload_too_large'
      | 'rate_limited'
      | 'internal_error'
      | 'provider_error'
      | 'service_unavailable'
    /**
     * For developers, in English. It may change.
     */
    message: string
    /**
     * The dotted path of the invalid field, `prices.0.trial.amount`; cut at 200 characters, ending in `…`.
     */
    field: string | null
    request_id: string
  }
}

/** The body of a webhook. There may be further types one day: ignore those that you do not know. */
export type WebhookBody =
  | SubscriptionUpdatedEvent
  | SubscriptionRenewedEvent
  | SubscriptionRenewalReminderSentEvent
  | TransactionCompletedEvent
  | TransactionRefundedEvent
  | TransactionFlaggedEvent
  | SubscriptionExpiredEvent
  | WebhookTestEvent
