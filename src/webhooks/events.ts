import { z } from 'zod'
import { publicId, timestamp } from '#shared/validate.ts'

/** The subscription that an event is about. */
const subject = {
  external_ref: z.string().describe('Your own id for the end user.'),
  paygate_customer_id: publicId('cus').nullable(),
  merchant_customer_id: z.string().nullable().describe('Your own id for the customer.'),
  plan_id: publicId('plan'),
  price_id: publicId('price'),
  plan_ref: z.string().describe("The plan's `code`."),
}
const subjectExample = {
  external_ref: 'user-42',
  paygate_customer_id: 'cus_1',
  merchant_customer_id: 'user-42',
  plan_id: 'plan_1',
  price_id: 'price_1',
  plan_ref: 'premium',
}

/** The payment that an event is about. */
const payment = {
  transaction_id: z.int(),
  external_ref: z.string().describe('Your own id for the end user.'),
  plan_ref: z.string(),
}
const paymentExample = { transaction_id: 3, external_ref: 'user-42', plan_ref: 'sticker-pack' }

/**
 * All events, on one screen. `data` has exactly these fields. Its times are `YYYY-MM-DD HH:MM:SS` in UTC, except `sent_at`, which is ISO 8601
 * with an offset (R150).
 */
export const EVENTS = {
  'subscription.updated': {
    when: 'A subscription changed: it was activated, renewed or ended, a customer was attached, a price was chosen.',
    data: z.strictObject({
      ...subject,
      status: z.enum(['active', 'expired']),
      current_period_end: timestamp.nullable().describe('Null for lifetime.'),
      in_trial: z.boolean(),
      trial_ends_at: timestamp.nullable(),
    }),
    example: {
      ...subjectExample,
      status: 'active',
      current_period_end: '2027-01-01 09:30:00',
      in_trial: false,
      trial_ends_at: null,
    },
  },
  'subscription.renewed': {
    when: 'A payment was applied to an existing subscription. Not sent for a second payment for a period that is already renewed.',
    data: z.strictObject({
      ...subject,
      provider_code: z.string().describe('As in `GET /transactions/{id}`.'),
      transaction_id: z.int(),
      amount: z
        .int()
        .describe(
          "What was paid, in the currency's smallest unit: without a surplus, and less if an operator accepted less.",
        ),
      currency: z.string(),
      previous_period_end: timestamp.nullable(),
      current_period_end: timestamp.nullable().describe('Null for lifetime.'),
      was_trial: z.boolean().describe('Whether a trial turned into a paid subscription.'),
    }),
    example: {
      ...subjectExample,
      provider_code: 'test',
      transaction_id: 2,
      amount: 99000,
      currency: 'VND',
      previous_period_end: '2027-01-01 09:30:00',
      current_period_end: '2027-02-01 09:30:00',
      was_trial: false,
    },
  },
  'subscription.renewal_reminder_sent': {
    when: 'A reminder was sent, once per stage and period. It never carries the renewal link.',
    data: z.strictObject({
      ...subject,
      reminder_day: z
        .union([z.literal(3), z.literal(1), z.literal(0)])
        .describe('Days before the end; 0 is the mail after the end.'),
      period_end: timestamp,
      in_trial: z.boolean(),
      sent_at: z.string().describe('ISO 8601 with an offset.'),
    }),
    example: {
      ...subjectExample,
      reminder_day: 3,
      period_end: '2027-01-01 09:30:00',
      in_trial: false,
      sent_at: '2026-12-29T09:30:00+00:00',
    },
  },
  'transaction.completed': {
    when: 'A one-time payment was completed.',
    data: z.strictObject({
      transaction_id: z.int(),
      external_ref: z.string().describe('Your own id for the end user.'),
      paygate_customer_id: publicId('cus').nullable(),
      plan_ref: z.string(),
      amount: z.int().describe("In the currency's smallest unit."),
      currency: z.string(),
      status: z.literal('completed'),
      metadata: z
        .record(z.string(), z.string())
        .describe('What you gave when you opened the checkout; `{}` if nothing.'),
    }),
    example: {
      transaction_id: 3,
      external_ref: 'user-42',
      paygate_customer_id: 'cus_1',
      plan_ref: 'sticker-pack',
      amount: 20000,
      currency: 'VND',
      status: 'completed',
      metadata: { order: 'A-1042' },
    },
  },
  'transaction.refunded': {
    when: 'A refund succeeded. Only for apps that ask for it (`app update --more-events`).',
    data: z.strictObject({
      ...payment,
      amount_refunded: z.int().describe('Of this refund.'),
      amount_refunded_total: z.int().describe('Of all refunds that succeeded so far.'),
      currency: z.string(),
      status: z.enum(['pending', 'completed', 'refunded', 'void']).describe('Of the transaction, after the refund.'),
      refunded_at: timestamp,
    }),
    example: {
      ...paymentExample,
      amount_refunded: 5000,
      amount_refunded_total: 20000,
      currency: 'VND',
      status: 'refunded',
      refunded_at: '2026-12-02 10:00:00',
    },
  },
  'transaction.flagged': {
    when: 'An operator must review a transaction. Only for apps that ask for it (`app update --more-events`).',
    data: z.strictObject({
      ...payment,
      amount: z.int().describe("In the currency's smallest unit."),
      amount_received: z.int(),
      currency: z.string(),
      flag_reason: z.string().describe('As in `GET /transactions/{id}`.'),
    }),
    example: { ...paymentExample, amount: 20000, amount_received: 15000, currency: 'VND', flag_reason: 'underpaid' },
  },
  'subscription.expired': {
    when: 'A period ended and was not extended. Only for apps that ask for it (`app update --more-events`).',
    data: z.strictObject({
      ...subject,
      period_end: timestamp,
      was_trial: z.boolean().describe('Whether the period was a trial.'),
    }),
    example: { ...subjectExample, period_end: '2027-01-01 09:30:00', was_trial: false },
  },
  /** Only `webhook test` sends it; no change causes it. */
  'webhook.test': {
    when: 'An operator ran `billing-cli webhook test` to check the receiver.',
    data: z.strictObject({}),
    example: {},
  },
} as const

export type EventType = keyof typeof EVENTS
/** The `data` of each type of event. */
export type EventData = { readonly [Type in EventType]: Readonly<z.infer<(typeof EVENTS)[Type]['data']>> }

/** The fields with which every event about a subscription begins. */
export type SubscriptionSubject = Readonly<z.infer<z.ZodObject<typeof subject>>>
