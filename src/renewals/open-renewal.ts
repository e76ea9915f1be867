import { z } from 'zod'
import { appNow } from '#apps/app-time.ts'
import type { App } from '#apps/store.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { completeUnpaid } from '#checkout/promote.ts'
import { hasSession, insertCheckoutSession } from '#checkout/store.ts'
import { checkoutUrl } from '#checkout/view-checkout.ts'
import type { Context } from '#context.ts'
import { payer } from '#commands/caller.ts'
import { command, nothing, type CommandTx } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { requireAmong } from '#providers/available-methods.ts'
import { isStillProcessing } from '#providers/engine/reconcile-payments.ts'
import { METHODS, type Method } from '#providers/providers.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import type { Locale } from '#shared/locale.ts'
import { SECOND_MS, addMs, formatTimestamp, wholeSeconds } from '#shared/time.ts'
import { validate } from '#shared/validate.ts'
import { quotePayment } from '#subscriptions/decide-payment.ts'
import { lockExistingEndUser, type Subscription } from '#subscriptions/store.ts'
import { openTransaction, type NewTransaction } from '#transactions/open-transaction.ts'
import { getRenewable } from './get-renewable.ts'
import { renewalLink } from '#mails/reminders/renewal-link.ts'
import { discounted } from '#promotions/discount.ts'
import {
  findOpenPayment,
  priceOf,
  promotionOf,
  viewRenewal,
  type OpenPayment,
  type RenewalView,
} from './view-renewal.ts'

/**
 * The body of `POST /renew/{token}`. `payment_method` may be omitted if a discount leaves nothing to pay. `period_end` is the end that the
 * page showed: if it has changed, the period has been paid in the meantime, and the payer is asked again.
 */
const OpenRenewalInput = z.strictObject({
  payment_method: z.enum(METHODS, `must be one of ${METHODS.join(', ')}`).optional(),
  period_end: z.string().optional(),
})

export type OpenedRenewal =
  | { readonly kind: 'go_on'; readonly redirectUrl: string }
  /** The period was renewed after the payer opened the page. No payment was opened. */
  | { readonly kind: 'renewed_meanwhile'; readonly view: RenewalView }

/**
 * Opens a checkout for the subscription's current price, less the discount of a promotion for every period. Reuses the checkout that this
 * link opened, if it can still be paid, and leads to its page while it is being processed, and to the bank page for the rest of a part
 * payment whose checkout has expired. Otherwise chooses the method. A renewal with nothing to pay completes at once. `asksAgain`: a payer
 * reads the answer, so a body without `period_end` asks again before it pays for a period that is already renewed. `locale` is the language
 * that the payer asks for. Throws `not_found`, `checkout_expired`, `app_disabled`, `invalid_request`, `payment_method_unavailable`,
 * `provider_error`.
 */
export async function openRenewal(
  ctx: Context,
  renewalToken: string,
  body: unknown,
  options: { readonly asksAgain: boolean; readonly locale?: Locale | null } = { asksAgain: false },
): Promise<OpenedRenewal> {
  const view = await viewRenewal(ctx, renewalToken)
  const input = validate(OpenRenewalInput, body)
  const hasSeenEnd = input.period_end === formatTimestamp(view.subscription.currentPeriodEnd)
  const isUnaware = input.period_end === undefined ? options.asksAgain && view.isRenewedAlready : !hasSeenEnd
  if (isUnaware) return { kind: 'renewed_meanwhile', view }
  const { payment_method: method } = input
  // The outcome of a debit may have come without a notification. What is opened is decided on what the provider says.
  if (view.open?.isProcessing) await isStillProcessing(ctx, view.open.transaction.id)
  const asksIfRenewed = options.asksAgain || input.period_end !== undefined
  const opened = await openChecked(ctx, { renewalToken, view, method, asksIfRenewed })
  if (opened.kind === 'renewed_meanwhile') return { kind: opened.kind, view: await viewRenewal(ctx, renewalToken) }
  if (opened.kind === 'renewed') return { kind: 'go_on', redirectUrl: renewalLink(ctx.config.baseUrl, renewalToken) }
  const page = checkoutUrl(ctx.config.baseUrl, opened.token)
  if (opened.isProcessing) return { kind: 'go_on', redirectUrl: page }
  if (opened.takesRest) return { kind: 'go_on', redirectUrl: `${page}/bank` }
  const { redirectUrl } = await chooseMethod(ctx, opened.token, method, { locale: options.locale ?? null })
  return { kind: 'go_on', redirectUrl }
}

/** The checkout with which the payer goes on. */
type OpenedCheckout = Pick<OpenPayment, 'token' | 'takesRest' | 'isProcessing'>

interface OpenScope {
  readonly renewalToken: string
  readonly view: RenewalView
  /** Whether the payer is asked again if the period is renewed after the view was read, rather than led to the link's page. */
  readonly asksIfRenewed: boolean
}

/** `renewed` if there is nothing to pay. */
type Opened =
  ({ readonly kind: 'to_pay' } & OpenedCheckout) | { readonly kind: 'renewed' } | { readonly kind: 'renewed_meanwhile' }

async function openChecked(
  ctx: Context,
  { method, ...scope }: OpenScope & { readonly method: Method | undefined },
): Promise<Opened> {
  requireExtendable(scope.view)
  if (scope.view.due.amount === 0) requireUnpaid(scope.view)
  else requireMethod(scope.view, method)
  return perform(ctx, payer, openPayment, undefined, scope)
}

function requireExtendable(view: RenewalView): void {
  if (!view.open) requireEnabled(view.app)
  if (view.effect.kind === 'refused')
    throw new AppError('invalid_request', 'this subscription cannot be extended further')
}

/** A disabled app completes what was opened before, and opens nothing new (R68). */
function requireEnabled({ disabledAt }: App): void {
  if (disabledAt) throw new AppError('app_disabled', 'this app is disabled')
}

/** Free periods cannot be collected in advance: the next one becomes available with its first mail (R358). */
function requireUnpaid({ isRenewedAlready }: RenewalView): void {
  if (isRenewedAlready) throw new AppError('invalid_request', 'this period is renewed already')
}

function requireMethod({ methods }: RenewalView, method: Method | undefined): void {
  if (method === undefined) throw invalidField('payment_method', 'is required')
  requireAmong(methods, method)
}

/**
 * The checkout that the payer continues with. Two concurrent calls share one checkout, because the end user's lock admits one at a time;
 * once it is paid, the second call is for a period that was renewed meanwhile.
 */
const openPayment = command({
  name: 'renewal.open',
  input: nothing,
  // The token is the checkout's own. A run that opens none can be repeated.
  findToken: hasSession,
  async run(tx, _input, { renewalToken, view, asksIfRenewed }: OpenScope): Promise<Opened> {
    const { app } = view
    await lockExistingEndUser(tx, app.id, view.subscription.externalRef)
    const subscription = await getRenewable(tx, renewalToken)
    const now = appNow(app, tx.now)
    const isSeen = subscription.currentPeriodEnd.getTime() === view.subscription.currentPeriodEnd.getTime()
    const { plan, price } = await priceOf(tx, subscription)
    const due = discounted(await promotionOf(tx, subscription), price)
    // Another call has renewed it meanwhile, and nobody has asked for the next period yet (R177).
    if (!isSeen) return { kind: asksIfRenewed && due.amount > 0 ? 'renewed_meanwhile' : 'renewed' }
    const payable = await findOpenPayment(tx, app, subscription, { due, now })
    if (payable) return { kind: 'to_pay', ...payable }
    const purchase = {
      mode: 'subscription',
      planRef: plan.code,
      planName: null,
      planId: plan.id,
      priceId: price.id,
      ...quotePayment(subscription, plan.id, { isTrial: false, isByRenewalLink: true }, wholeSeconds(now)),
      ...due,
      currency: price.currency,
      metadata: null,
    } as const
    const transactionId = await openCheckout(tx, app, subscription, purchase)
    if (due.amount > 0) return { kind: 'to_pay', token: tx.token, takesRest: false, isProcessing: false }
    await completeUnpaid(tx, transactionId)
    return { kind: 'renewed' }
  },
})

/** Opens a payment and its checkout, both of the renewal link; returns the transaction's id. */
async function openCheckout(
  tx: CommandTx,
  app: App,
  { id: subscriptionId, endUserId, externalRef, customerId, renewalToken }: Subscription,
  purchase: Omit<NewTransaction, 'endUserId' | 'externalRef' | 'customerId'>,
): Promise<number> {
  // What the view showed as open may have failed meanwhile.
  requireEnabled(app)
  // The customer is shown to the seller. One who is attached before the payment stays attached.
  const transactionId = await openTransaction(tx, app, { endUserId, externalRef, customerId, ...purchase })
  const now = appNow(app, tx.now)
  const link = renewalLink(tx.ctx.config.baseUrl, renewalToken)
  await insertCheckoutSession(tx, {
    appId: app.id,
    endUserId,
    token: tx.token,
    origin: 'renewal',
    subscriptionId,
    transactionId,
    customerId,
    paymentMethod: null,
    successUrl: link,
    cancelUrl: link,
    expiresAt: wholeSeconds(addMs(now, tx.ctx.config.checkoutTtlSeconds * SECOND_MS)),
    createdAt: now,
  })
  return transactionId
}
