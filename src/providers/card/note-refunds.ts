import type Stripe from 'stripe'
import { z } from 'zod'
import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { callProvider, providerError } from '#providers/call-provider.ts'
import { noteEvent } from '#providers/note-event.ts'
import type { NoteRefundsOptions } from '#providers/provider.ts'
import { parseNumericId } from '#shared/ids.ts'
import { englishMoney } from '#shared/money.ts'
import { shuffled } from '#shared/shuffled.ts'
import {
  findPaymentOfCharge,
  findRefund,
  findRefundOf,
  listPaymentsOf,
  type Payment,
  type Refund,
} from '#payments/store.ts'
import { isUnanswered } from '#payments/refund-state.ts'
import { REFUND_MAY_FAIL_MS, type ProviderAccount } from '#providers/accounts.ts'
import { addMs, unixSeconds } from '#shared/time.ts'
import { recordForeignRefund } from '#transactions/record-foreign-refund.ts'
import { recordRefundAnswer, type RefundAnswer } from '#transactions/record-refund-answer.ts'
import { cardAccounts, type CardCredentials } from './accounts.ts'
import { fromStripeAmount } from './amount.ts'
import { stripeApi, stripeClient, stripeFailureOf } from './client.ts'
import { refundAnswerOf, intentOfPayment } from './refund-payment.ts'
import { intentOf } from './session-facts.ts'

/** An event about refunds: a charge, or one refund of it. */
const RefundEvent = z.looseObject({
  id: z.string().min(1).max(100),
  object: z.enum(['charge', 'refund']),
  metadata: z.looseObject({ app_id: z.string().optional() }).nullish(),
  payment_intent: z.string().max(191).nullish(),
})
type RefundEvent = z.infer<typeof RefundEvent>

/** Events about refunds. The object of the first is the charge; the object of the others is one refund. */
export const REFUND_EVENTS: ReadonlySet<string> = new Set([
  'charge.refunded',
  'charge.refund.updated',
  'refund.created',
  'refund.updated',
  'refund.failed',
])

/**
 * Takes an event about refunds and asks Stripe for them, since events come late and out of order. Finishes our own refunds, and records
 * those made in Stripe's dashboard: operators see them, and the period stays (R133). `ignored`: nothing was new, or the charge is
 * not ours. Throws `provider_error` if Stripe cannot be asked.
 */
export async function receiveRefundEvent(
  ctx: Context,
  signers: readonly ProviderAccount<CardCredentials>[],
  object: unknown,
): Promise<'noted' | 'ignored'> {
  const event = RefundEvent.safeParse(object)
  const account = event.success ? await signerOfCharge(ctx, signers, event.data) : undefined
  if (!event.success || !account) return 'ignored'
  const { appId, credentials } = account
  const stripe = await stripeClient(ctx.config, credentials.secretKey)
  const refunds = await fetchRefunds(ctx, stripe, event.data)
  return (await noteAll(ctx, stripe, appId, refunds)) > 0 ? 'noted' : 'ignored'
}

/** The account of the charge among those whose secret signed the event; undefined if there is none. */
async function signerOfCharge(
  ctx: Context,
  signers: readonly ProviderAccount<CardCredentials>[],
  { metadata, payment_intent: intent }: RefundEvent,
): Promise<ProviderAccount<CardCredentials> | undefined> {
  const named = parseNumericId(metadata?.app_id ?? '')
  const payment = named === null && intent ? await findPaymentOfCharge(ctx.db, 'stripe', intent) : null
  const ownerId = named ?? payment?.appId
  return signers.find(({ appId }) => appId === ownerId)
}

/** The refunds that an event is about, as they are at Stripe now. */
async function fetchRefunds(ctx: Context, stripe: Stripe, { id, object }: RefundEvent): Promise<Stripe.Refund[]> {
  try {
    if (object === 'charge') return await listRefunds(ctx, stripe, { charge: id })
    return [
      await callProvider(ctx, stripeApi, 'refunds.retrieve', () => stripe.refunds.retrieve(id, { expand: ['charge'] })),
    ]
  } catch (thrown) {
    const failure = stripeFailureOf(thrown)
    if (failure.code === 'resource_missing') return []
    throw providerError(stripeApi, thrown)
  }
}

/** The oldest first: the money of one that failed may have been refunded again, which can be recorded only afterwards. */
async function listRefunds(
  ctx: Context,
  stripe: Stripe,
  filter: Pick<Stripe.RefundListParams, 'charge' | 'created'>,
): Promise<Stripe.Refund[]> {
  return callProvider(ctx, stripeApi, 'refunds.list', async () => {
    const found: Stripe.Refund[] = []
    const refunds = stripe.refunds.list({ ...filter, limit: 100, expand: ['data.charge'] })
    for await (const refund of refunds) found.push(refund)
    return found.reverse()
  })
}

/** Records the state of refunds at Stripe. Returns for how many of them operators see something new. */
async function noteAll(
  ctx: Context,
  stripe: Stripe,
  appId: number,
  refunds: readonly Stripe.Refund[],
): Promise<number> {
  let noted = 0
  for (const refund of refunds) if (await noteRefund(ctx, stripe, appId, refund)) noted += 1
  return noted
}

/** Returns whether operators see something new. */
async function noteRefund(ctx: Context, stripe: Stripe, appId: number, refund: Stripe.Refund): Promise<boolean> {
  const payment = await paymentOf(ctx, stripe, appId, refund)
  if (!payment) return false
  const known = (await findRefundOf(ctx.db, payment.id, refund.id)) ?? (await ourRefund(ctx, payment, refund))
  return known ? noteOutcome(ctx, known, refundAnswerOf(refund)) : noteForeign(ctx, payment, refund)
}

/** Records the outcome of a refund that we know. */
async function noteOutcome(ctx: Context, known: Refund, answer: RefundAnswer): Promise<boolean> {
  // Most listed refunds have not changed, so they need no lock.
  if (known.status === answer.status && known.reference === answer.reference) return false
  const recorded = await inTransaction(ctx, (tx) => recordRefundAnswer(tx, known.id, answer))
  return recorded.status === 'failed' && known.status !== 'failed'
}

/** Records a refund that was made in Stripe's dashboard, unless it failed. */
async function noteForeign(ctx: Context, payment: Payment, refund: Stripe.Refund): Promise<boolean> {
  const { status } = refundAnswerOf(refund)
  const amount = fromStripeAmount(refund.amount, payment.currency)
  if (status === 'failed' || amount === null || amount === 0) return false
  const verb = status === 'pending' ? 'is being' : 'was'
  // Written before the refund: a recorded refund counts as known, so a failed note would never be retried.
  const isNew = await noteEvent(ctx, {
    provider: 'stripe',
    eventId: `refunded:${refund.id}`,
    eventType: 'charge.refunded',
    appId: payment.appId,
    transactionId: parseNumericId(metadataOf(refund)['transaction_id'] ?? ''),
    outcome: 'noted',
    note: `${englishMoney(amount, payment.currency)} of the card payment ${verb} refunded at Stripe; the period stays`,
  })
  const foreign = { reference: refund.id, amount, status }
  const recorded = await inTransaction(ctx, (tx) => recordForeignRefund(tx, payment.id, foreign))
  return isNew || recorded !== null
}

/**
 * Our refund that Stripe's metadata names, if its outcome is not known yet. Null for a refund that we gave up: its money belongs to the
 * transaction again, so a refund that Stripe made counts as one from the dashboard.
 */
async function ourRefund(ctx: Context, payment: Payment, refund: Stripe.Refund): Promise<Refund | null> {
  const refundId = parseNumericId(refund.metadata?.['refund_id'] ?? '')
  const ours = refundId === null ? null : await findRefund(ctx.db, refundId)
  return ours?.paymentId === payment.id && isUnanswered(ours) ? ours : null
}

/** The metadata of the charge, which it shares with its Checkout Session. */
function metadataOf({ charge }: Stripe.Refund): Stripe.Metadata {
  return charge && typeof charge === 'object' ? charge.metadata : {}
}

/** The payment of a refund; null if it is not the app's. */
async function paymentOf(ctx: Context, stripe: Stripe, appId: number, refund: Stripe.Refund): Promise<Payment | null> {
  const intent = intentOf(refund)
  if (intent === null) return null
  const found = await findPaymentOfCharge(ctx.db, 'stripe', intent)
  if (found) return found.appId === appId ? found : null
  // Payments from versions that did not store the charge.
  const transactionId = parseNumericId(metadataOf(refund)['transaction_id'] ?? '')
  const ofTransaction = transactionId === null ? [] : await listPaymentsOf(ctx.db, transactionId)
  for (const payment of ofTransaction) {
    const isUnknown = payment.provider === 'stripe' && payment.chargeReference === null && payment.appId === appId
    if (isUnknown && (await intentOfPayment(ctx, stripe, payment)) === intent) return payment
  }
  return null
}

/** Lists the refunds of the last weeks at Stripe, app by app, and records those that were made there. Returns how many are new. */
export async function noteRefunds(ctx: Context, options: NoteRefundsOptions = {}): Promise<number> {
  let noted = 0
  // Shuffled, so that an app whose listing never ends does not always block the same other apps.
  for (const { appId, credentials } of shuffled(await cardAccounts.inUse(ctx, options.appId ?? null))) {
    if (options.signal?.aborted) break
    try {
      noted += await noteRefundsOfAccount(ctx, appId, credentials)
    } catch (error) {
      const failure = stripeFailureOf(error)
      // Stripe's own messages can quote keys.
      const detail = failure.type === 'unknown' ? { error } : failure
      ctx.log.warn({ appId, ...detail }, 'the refunds of an app could not be listed')
      if (failure.type === 'StripeConnectionError') break
    }
  }
  return noted
}

async function noteRefundsOfAccount(ctx: Context, appId: number, credentials: CardCredentials): Promise<number> {
  const stripe = await stripeClient(ctx.config, credentials.secretKey)
  const since = unixSeconds(addMs(ctx.clock.now(), -REFUND_MAY_FAIL_MS))
  return noteAll(ctx, stripe, appId, await listRefunds(ctx, stripe, { created: { gte: since } }))
}
