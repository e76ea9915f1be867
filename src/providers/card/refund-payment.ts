import type Stripe from 'stripe'
import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { listRefundedShares, updatePayment, type Payment, type Refund } from '#payments/store.ts'
import { callProvider } from '#providers/call-provider.ts'
import type { ProviderRefunds, RefundCall } from '#providers/provider.ts'
import { englishMoney } from '#shared/money.ts'
import type { RefundAnswer } from '#transactions/record-refund-answer.ts'
import { cardAccounts } from './accounts.ts'
import { toStripeAmount } from './amount.ts'
import { isUndecided, stripeApi, stripeClient, stripeFailureOf } from './client.ts'
import { intentOf } from './session-facts.ts'

const NO_CREDENTIALS = 'the app no longer has card credentials'
const MAYBE_MADE = `${NO_CREDENTIALS}, and an earlier request may have made it: look for it at Stripe before you refund it again`

/**
 * Refunds of card payments through Stripe, in part or in whole. The idempotency key is made from the id of the refund row, which is also in
 * the metadata. If an answer was lost, the refund is looked up by that id before another request, because Stripe forgets keys after a day.
 */
export const cardRefunds: ProviderRefunds = {
  describe: (money) => `Stripe refunds ${money} to the card`,

  async make(ctx, payment, refund, { isRepeated }) {
    const stripe = await clientOf(ctx, payment)
    if (!stripe) return refused(isRepeated ? MAYBE_MADE : NO_CREDENTIALS)
    // An earlier request may have made the refund. If Stripe refuses the look-up, that does not prove the opposite.
    const made = isRepeated ? await outcomeOf(() => findMade(ctx, stripe, payment, refund), { isLookup: true }) : null
    return made ?? outcomeOf(() => create(ctx, stripe, payment, refund), { isLookup: false })
  },

  pollStatus: (ctx, payment, { reference }) =>
    outcomeOf(
      async () => {
        const stripe = await clientOf(ctx, payment)
        if (!stripe || reference === null) return unknown(NO_CREDENTIALS)
        const call = () => stripe.refunds.retrieve(reference)
        return refundAnswerOf(await callProvider(ctx, stripeApi, 'refunds.retrieve', call))
      },
      { isLookup: true },
    ),
}

/** The client of the account that was paid. */
async function clientOf(ctx: Context, { providerAccountId }: Payment): Promise<Stripe | null> {
  const account = providerAccountId === null ? null : await cardAccounts.find(ctx, providerAccountId)
  return account && stripeClient(ctx.config, account.credentials.secretKey)
}

/** Translates an error of the SDK into the outcome of the call. The refusal of a look-up says nothing about the refund. */
async function outcomeOf<T extends RefundCall | null>(
  work: () => Promise<T>,
  { isLookup }: { readonly isLookup: boolean },
): Promise<T | RefundCall> {
  try {
    return await work()
  } catch (thrown) {
    const failure = stripeFailureOf(thrown)
    const { kind, httpStatus, code, type } = failure
    if (type === 'unknown') throw thrown
    if (kind === 'unreachable') return unknown('Stripe cannot be reached')
    if (httpStatus !== null && httpStatus >= 500) return unknown('Stripe failed to answer', { isAnswered: true })
    if (isLookup || isUndecided(failure)) return unknown(`Stripe did not report the outcome (${code ?? type})`)
    return refused(code ?? type)
  }
}

function refused(failure: string): RefundAnswer {
  return { status: 'failed', reference: null, failure }
}

function unknown(message: string, { isAnswered } = { isAnswered: false }): RefundCall {
  return { status: 'unknown', isAnswered, message }
}

/** Translates the status of a refund. One that needs the payer's bank details is pending. */
export function refundAnswerOf({
  id,
  status,
  failure_reason: reason,
}: Pick<Stripe.Refund, 'id' | 'status' | 'failure_reason'>): RefundAnswer {
  if (status === 'failed' || status === 'canceled')
    return { status: 'failed', reference: id, failure: reason ?? status }
  return { status: status === 'succeeded' ? 'succeeded' : 'pending', reference: id, failure: null }
}

/** The payment intent of a payment; read from Stripe once, then stored. */
export async function intentOfPayment(ctx: Context, stripe: Stripe, payment: Payment): Promise<string | null> {
  if (payment.chargeReference !== null) return payment.chargeReference
  const session = await callProvider(ctx, stripeApi, 'checkout.sessions.retrieve', () =>
    stripe.checkout.sessions.retrieve(payment.reference),
  )
  const chargeReference = intentOf(session)
  if (chargeReference !== null) await inTransaction(ctx, (tx) => updatePayment(tx, payment.id, { chargeReference }))
  return chargeReference
}

/** Our refund, if an earlier request made it; null if Stripe has none. */
async function findMade(ctx: Context, stripe: Stripe, payment: Payment, { id }: Refund): Promise<RefundAnswer | null> {
  const intent = await intentOfPayment(ctx, stripe, payment)
  if (intent === null) return null
  return callProvider(ctx, stripeApi, 'refunds.list', async () => {
    for await (const refund of stripe.refunds.list({ payment_intent: intent, limit: 100 }))
      if (refund.metadata?.['refund_id'] === String(id)) return refundAnswerOf(refund)
    return null
  })
}

async function create(
  ctx: Context,
  stripe: Stripe,
  payment: Payment,
  { id, amount, attempts }: Refund,
): Promise<RefundAnswer> {
  const intent = await intentOfPayment(ctx, stripe, payment)
  if (intent === null) return refused('Stripe names no payment of this Checkout Session')
  const stripeAmount = toStripeAmount(amount, payment.currency)
  if (stripeAmount === null)
    throw new Error(`${englishMoney(amount, payment.currency)} is not a valid amount at Stripe`)
  const [taken] = await listRefundedShares(ctx.db, id)
  const metadata = {
    refund_id: String(id),
    app_id: String(payment.appId),
    ...(taken ? { transaction_id: String(taken.transactionId) } : {}),
  }
  const params = { payment_intent: intent, amount: stripeAmount, metadata }
  // Under the same key Stripe repeats its own failures for a day.
  const idempotencyKey = `paygate-refund-${id}${attempts === 0 ? '' : `-${attempts}`}`
  return refundAnswerOf(
    await callProvider(ctx, stripeApi, 'refunds.create', () => stripe.refunds.create(params, { idempotencyKey })),
  )
}
