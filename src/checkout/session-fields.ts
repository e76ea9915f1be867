import { z } from 'zod'
import { DiscountOutput } from '#promotions/present.ts'
import { METHODS } from '#providers/providers.ts'
import { currencyCode, externalRef, integer, name, publicId, timestamp, webAddress } from '#shared/validate.ts'
import { metadataInput } from '#transactions/metadata.ts'

const either = {
  external_ref: externalRef.describe('Your own id for the end user who pays. It must not be `.` or `..`.'),
  customer_id: z
    .string()
    .optional()
    .describe(
      'The customer who gets the mails, `cus_1`. In mode `subscription` attached to the subscription when the payment is applied.',
    ),
  success_url: webAddress.describe(
    'Where the payer goes after paying. A visit proves nothing: rely on the webhook, or ask the API.',
  ),
  cancel_url: webAddress.describe('Where the payer goes after cancelling.'),
  payment_method: z
    .enum(METHODS, `must be one of ${METHODS.join(', ')}`)
    .optional()
    .describe('Fixes the payment method; otherwise the payer chooses on the page.'),
  metadata: metadataInput
    .optional()
    .describe(
      'Your own names and texts, such as an order number: at most 20 keys of 1 to 40 characters of `A-Z a-z 0-9 _ . -`, with texts of at most 500 characters. Kept on the transaction and never shown to the payer.',
    ),
  expires_in: integer(1800, 86_400).optional().describe('Seconds until the link expires, at most one day.'),
}

const SubscriptionCheckout = z.strictObject({
  ...either,
  mode: z.literal('subscription'),
  price_id: z.string().describe('A price on sale, `price_1`.'),
  skip_trial: z.boolean().optional().describe('True to pay the full price at once.'),
  // Any text: one that cannot be a code is as unknown as any other.
  promotion_code: z
    .string()
    .optional()
    .describe('The code of a promotion, in upper or lower case: takes its discount off this payment.'),
})

const PaymentCheckout = z.strictObject({
  ...either,
  mode: z.literal('payment'),
  plan_ref: z
    .string()
    .regex(/^[a-z0-9_-]{1,64}$/, 'must be 1 to 64 characters of a-z, 0-9, _ and -')
    .describe(
      'Your name for the item: 1 to 64 characters of `a-z 0-9 _ -`. It does not have to be the code of a plan.',
    ),
  plan_name: name(191).optional().describe('Shown to the payer instead of `plan_ref`.'),
  amount: integer(1).describe("In the currency's smallest unit."),
  currency: currencyCode.describe('ISO 4217, in upper or lower case.'),
})

/** The body of `POST /api/v1/checkout-sessions` (R60). */
export const CreateSessionInput = z
  .discriminatedUnion('mode', [SubscriptionCheckout, PaymentCheckout], 'must be subscription or payment')
  .meta({
    examples: [
      {
        mode: 'subscription',
        external_ref: 'user-42',
        price_id: 'price_1',
        customer_id: 'cus_1',
        success_url: 'https://shop.example.com/paid',
        cancel_url: 'https://shop.example.com/pricing',
      },
      {
        mode: 'payment',
        external_ref: 'user-42',
        plan_ref: 'sticker-pack',
        amount: 20000,
        currency: 'VND',
        metadata: { order: 'A-1042' },
        success_url: 'https://shop.example.com/paid',
        cancel_url: 'https://shop.example.com/pricing',
      },
    ],
  })
export type SubscriptionInput = z.infer<typeof SubscriptionCheckout>
export type PaymentInput = z.infer<typeof PaymentCheckout>

/** The answer of `POST /api/v1/checkout-sessions`. */
export const CreatedSessionOutput = z
  .strictObject({
    id: publicId('cs'),
    checkout_url: z.string().describe('Redirect the payer there. Equals `success_url` if `activated`.'),
    activated: z
      .boolean()
      .describe('True if there is nothing to pay: a free trial started at once, or a promotion takes everything off.'),
    discount: DiscountOutput,
    trial: z
      .strictObject({
        amount: z.int(),
        interval_unit: z.string(),
        interval_count: z.int(),
        ends_at: timestamp.describe('When the trial ends; for a paid trial, when it would end if paid now.'),
      })
      .nullable()
      .describe('The trial that this checkout grants, or null.'),
    transaction_id: z
      .int()
      .nullable()
      .describe('The transaction: pending, or completed if a promotion takes everything off; null for a free trial.'),
    expires_at: timestamp,
  })
  .meta({
    id: 'CheckoutSession',
    description: 'A hosted page where a payer pays once.',
    examples: [
      {
        id: 'cs_1',
        checkout_url: `https://billing.example.com/checkout/${'4f'.repeat(32)}`,
        activated: false,
        discount: null,
        trial: null,
        transaction_id: 1,
        expires_at: '2026-12-01 10:30:00',
      },
    ],
  })
export type CreatedSession = z.infer<typeof CreatedSessionOutput>
