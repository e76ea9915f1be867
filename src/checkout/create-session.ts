import { appNow } from '#apps/app-time.ts'
import { checkRealtimeKey } from '#realtime/realtime-key.ts'
import type { App } from '#apps/store.ts'
import { command, type CommandTx } from '#commands/command.ts'
import { requireCustomer, requireUsable } from '#customers/require-customer.ts'
import type { Tx } from '#commands/transaction.ts'
import { notOnSale, requireOnSale } from '#plans/find-price-on-sale.ts'
import type { OfferedPrice } from '#plans/store.ts'
import { discounted, discountOf, NO_DISCOUNT } from '#promotions/discount.ts'
import type { Promotion } from '#promotions/store.ts'
import { availableMethods } from '#providers/available-methods.ts'
import type { Method } from '#providers/providers.ts'
import { AppError } from '#shared/errors.ts'
import { formatId, parseId } from '#shared/ids.ts'
import { englishMoney } from '#shared/money.ts'
import { addMs, formatTimestamp, SECOND_MS, wholeSeconds, type AppTime } from '#shared/time.ts'
import { quotePayment } from '#subscriptions/decide-payment.ts'
import { isLifetime } from '#subscriptions/lifecycle.ts'
import { startFreeTrial, trialOnOffer, type TrialOffer } from '#subscriptions/start-trial.ts'
import { lockEndUser, type DecidedSubscription } from '#subscriptions/store.ts'
import type { Metadata } from '#transactions/metadata.ts'
import { openTransaction, type NewTransaction } from '#transactions/open-transaction.ts'
import { limitOpenCheckouts } from './limit-open-checkouts.ts'
import { refuseClientChoices } from './refuse-client-choices.ts'
import { completeUnpaid, findPromotionFor, type UsablePromotion } from './promote.ts'
import { CreateSessionInput, type CreatedSession, type PaymentInput, type SubscriptionInput } from './session-fields.ts'
import { findOffer, hasSession, insertCheckoutSession, type CheckoutSession } from './store.ts'
import { checkoutUrl } from './view-checkout.ts'

interface Scope {
  readonly app: App
  /** The `sub` of the end user whose client calls; null for a seller's server. */
  readonly endUser: string | null
}

/**
 * Opens a checkout. A free trial is activated at once; a payment that a promotion covers completely is
 * completed at once; anything else is a pending transaction with a hosted page. Throws `forbidden`, `price_not_found`, `already_lifetime`,
 * `promotion_not_valid`, `payment_method_unavailable`, `rate_limited`.
 */
export const createCheckoutSession = command({
  name: 'checkout.create',
  input: CreateSessionInput,
  // The token is the checkout's own.
  findToken: hasSession,
  async run(tx, input, { app, endUser }: Scope): Promise<CreatedSession> {
    if (endUser !== null) refuseClientChoices(app, input)
    checkRealtimeKey(app, input.external_ref)
    return input.mode === 'subscription'
      ? openSubscriptionCheckout(tx, app, input, endUser)
      : openPaymentCheckout(tx, app, input, endUser)
  },
})

/** The amounts that may be due: the price's, and its trial's if the checkout grants one that costs something. */
function amountsOf({ price: { amount } }: OfferedPrice, trial: TrialOffer | null): number[] {
  return trial && trial.amount > 0 ? [amount, trial.amount] : [amount]
}

/** Throws `payment_method_unavailable` if the method that was chosen up front cannot take one of the amounts that may be due. */
async function requireAvailable(
  tx: Tx,
  app: App,
  method: Method | undefined,
  amounts: readonly number[],
  currency: string,
): Promise<void> {
  if (method === undefined) return
  for (const amount of amounts) {
    if (!(await availableMethods(tx, app, amount, currency)).includes(method)) {
      throw new AppError(
        'payment_method_unavailable',
        `payment_method: ${method} is not enabled or cannot take ${englishMoney(amount, currency)}`,
        {
          field: 'payment_method',
        },
      )
    }
  }
}

async function openSubscriptionCheckout(
  tx: CommandTx,
  app: App,
  input: SubscriptionInput,
  endUser: string | null,
): Promise<CreatedSession> {
  const offer = await offerOf(tx, app, input, endUser)
  const { endUserId, found, current, trial, now } = offer
  if (isLifetime(current)) throw new AppError('already_lifetime', 'this end user owns a lifetime subscription')
  const usable = await findPromotionFor(tx, input.promotion_code, { app, isClient: endUser !== null, ...offer })
  if (usable) await requireAvailableFor(tx, app, input, offer, usable.promotion)
  if (trial?.amount === 0) return openFreeTrial(tx, app, input, { offer, trial, usable })
  if (endUser !== null) await limitOpenCheckouts(tx, endUserId, now)
  return openPayable(tx, app, input, purchaseOf(input, offer, trial, usable), {
    trial: trial && presentTrial(found, trial),
    usable,
  })
}

/** If the promotion leaves nothing to pay, the method that was chosen up front must still be one that the app has enabled. */
async function requireAvailableFor(
  tx: Tx,
  app: App,
  input: SubscriptionInput,
  { found, trial }: Offer,
  promotion: Promotion,
): Promise<void> {
  const { currency } = found.price
  const left = amountsOf(found, trial).map((amount) => discounted(promotion, { amount, currency }).amount || amount)
  await requireAvailable(tx, app, input.payment_method, left, currency)
}

/** Starts a free trial. There is nothing to pay, so a promotion counts only if it is for every period. */
async function openFreeTrial(
  tx: CommandTx,
  app: App,
  input: SubscriptionInput,
  {
    offer,
    trial,
    usable,
  }: { readonly offer: Offer; readonly trial: TrialOffer; readonly usable: UsablePromotion | null },
): Promise<CreatedSession> {
  const { endUserId, customerId, found, now } = offer
  const lasting = usable?.promotion.everyPeriod ? usable : null
  const promotionCode = lasting?.promotion.code ?? null
  await startFreeTrial(tx, app, trial, { ...offer, externalRef: input.external_ref, promotionCode })
  await lasting?.take({ transactionId: null, status: 'used', reservedUntil: now })
  const session = { ...sessionOf(tx, app, input, { endUserId, customerId }), transactionId: null }
  const id = await insertCheckoutSession(tx, session)
  const discount = discountOf({ promotionCode, discountAmount: 0 })
  return presentSession(tx, session, { id, discount, activated: true, trial: presentTrial(found, trial) })
}

/** The transaction of a checkout that costs something, less its discount. */
function purchaseOf(
  { external_ref: externalRef, metadata }: SubscriptionInput,
  { endUserId, customerId, found: { price, plan }, current, now }: Offer,
  trial: TrialOffer | null,
  usable: UsablePromotion | null,
): NewTransaction {
  const asked = { amount: trial === null ? price.amount : trial.amount, currency: price.currency }
  return {
    endUserId,
    externalRef,
    customerId,
    ...quotePayment(current, plan.id, { isTrial: trial !== null, isByRenewalLink: false }, now),
    mode: 'subscription',
    planRef: plan.code,
    planName: null,
    planId: plan.id,
    priceId: price.id,
    ...discounted(usable?.promotion ?? null, asked),
    currency: price.currency,
    metadata: keptMetadata(metadata),
  }
}

async function openPaymentCheckout(
  tx: CommandTx,
  app: App,
  input: PaymentInput,
  endUser: string | null,
): Promise<CreatedSession> {
  await requireAvailable(tx, app, input.payment_method, [input.amount], input.currency)
  const { customer_id } = input
  const customerId = customer_id === undefined ? null : (await requireCustomer(tx, app.id, customer_id, endUser)).id
  const endUserId = await lockEndUser(tx, app.id, input.external_ref)
  if (endUser !== null) await limitOpenCheckouts(tx, endUserId, appNow(app, tx.now))
  const purchase = {
    endUserId,
    externalRef: input.external_ref,
    mode: 'payment',
    planRef: input.plan_ref,
    planName: input.plan_name ?? null,
    planId: null,
    priceId: null,
    customerId,
    purpose: 'purchase',
    isTrial: false,
    isByRenewalLink: false,
    renewsEnd: null,
    amount: input.amount,
    ...NO_DISCOUNT,
    currency: input.currency,
    metadata: keptMetadata(input.metadata),
  } as const
  return openPayable(tx, app, input, purchase, { trial: null, usable: null })
}

/** What a checkout sells, and to which end user. */
interface Offer {
  readonly endUserId: number
  readonly found: OfferedPrice
  readonly customerId: number | null
  readonly current: DecidedSubscription | null
  /** The trial that the checkout grants. */
  readonly trial: TrialOffer | null
  /** The app's own time. */
  readonly now: AppTime
}

/**
 * Locks the end user; returns the price and the customer that the input names, the end user's subscription, and the trial. Throws
 * `price_not_found`, `payment_method_unavailable`, `invalid_request`.
 */
async function offerOf(tx: Tx, app: App, input: SubscriptionInput, endUser: string | null): Promise<Offer> {
  const { external_ref: externalRef } = input
  const customerId = input.customer_id === undefined ? null : parseId('cus', input.customer_id)
  const priceId = parseId('price', input.price_id)
  if (priceId === null) throw notOnSale()
  const endUserId = await lockEndUser(tx, app.id, externalRef)
  const found = requireOnSale(await findOffer(tx, app.id, { priceId, customerId, externalRef }))
  const { current } = found
  const now = wholeSeconds(appNow(app, tx.now))
  const trial = input.skip_trial === true ? null : await trialOnOffer(tx, found, endUserId, current, now)
  // The amount after a promotion is not known yet.
  if (input.promotion_code === undefined)
    await requireAvailable(tx, app, input.payment_method, amountsOf(found, trial), found.price.currency)
  if (input.customer_id !== undefined) requireUsable(found.customer, endUser)
  return { endUserId, found, customerId, current, trial, now }
}

function keptMetadata(given: Metadata | undefined): Metadata | null {
  return given === undefined || Object.keys(given).length === 0 ? null : given
}

/** Opens a transaction with its hosted page, and reserves the use of its promotion. One with nothing to pay is completed at once. */
async function openPayable(
  tx: CommandTx,
  app: App,
  input: SubscriptionInput | PaymentInput,
  transaction: NewTransaction,
  { trial, usable }: { readonly trial: CreatedSession['trial']; readonly usable: UsablePromotion | null },
): Promise<CreatedSession> {
  const transactionId = await openTransaction(tx, app, transaction)
  const session = { ...sessionOf(tx, app, input, transaction), transactionId }
  const id = await insertCheckoutSession(tx, session)
  await usable?.take({ transactionId, status: 'reserved', reservedUntil: session.expiresAt })
  if (transaction.amount === 0) await completeUnpaid(tx, transactionId)
  return presentSession(tx, session, {
    id,
    discount: discountOf(transaction),
    activated: transaction.amount === 0,
    trial,
  })
}

function sessionOf(
  tx: CommandTx,
  app: App,
  input: SubscriptionInput | PaymentInput,
  { endUserId, customerId }: Pick<CheckoutSession, 'endUserId' | 'customerId'>,
): Omit<CheckoutSession, 'id' | 'transactionId'> {
  return {
    endUserId,
    customerId,
    appId: app.id,
    token: tx.token,
    origin: 'checkout',
    subscriptionId: null,
    paymentMethod: input.payment_method ?? null,
    successUrl: input.success_url,
    cancelUrl: input.cancel_url,
    expiresAt: expiryOf(tx, app, input),
    createdAt: appNow(app, tx.now),
  }
}

function expiryOf(tx: CommandTx, app: App, { expires_in }: SubscriptionInput | PaymentInput): AppTime {
  const seconds = expires_in ?? tx.ctx.config.checkoutTtlSeconds
  return wholeSeconds(addMs(appNow(app, tx.now), seconds * SECOND_MS))
}

function presentSession(
  tx: CommandTx,
  { token, successUrl, transactionId, expiresAt }: Omit<CheckoutSession, 'id'>,
  { id, activated, ...shown }: Pick<CreatedSession, 'discount' | 'activated' | 'trial'> & { readonly id: number },
): CreatedSession {
  return {
    id: formatId('cs', id),
    checkout_url: activated ? successUrl : checkoutUrl(tx.ctx.config.baseUrl, token),
    activated,
    ...shown,
    transaction_id: transactionId,
    expires_at: formatTimestamp(expiresAt),
  }
}

function presentTrial(
  { price }: OfferedPrice,
  { amount, endsAt }: { amount: number; endsAt: AppTime },
): CreatedSession['trial'] {
  if (price.trialIntervalUnit === null || price.trialIntervalCount === null) return null
  return {
    amount,
    interval_unit: price.trialIntervalUnit,
    interval_count: price.trialIntervalCount,
    ends_at: formatTimestamp(endsAt),
  }
}
