import { appNow } from '#apps/app-time.ts'
import type { PayableApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Customer } from '#customers/store.ts'
import { admitByToken, isPageToken } from '#http/admission.ts'
import { findPrice } from '#plans/store.ts'
import { findPromotion, type Promotion } from '#promotions/store.ts'
import { availableMethods } from '#providers/available-methods.ts'
import type { Method } from '#providers/providers.ts'
import { notFound } from '#shared/errors.ts'
import { SECOND_MS, wholeSeconds, type AppTime } from '#shared/time.ts'
import { lastingDiscount } from '#subscriptions/apply-payment.ts'
import { decideOn } from '#subscriptions/decide-payment.ts'
import type { PaymentEffect } from '#subscriptions/lifecycle.ts'
import { dueOf, keptOf } from '#payments/balance.ts'
import { quoteOf, type PayableTransaction } from '#transactions/store.ts'
import { checkoutsByToken, type CheckoutRows, type CheckoutSession } from './store.ts'

/**
 * `overtaken`: the link has not expired, but a payment would not be applied, because the subscription has changed or the trial was used in
 * the meantime (R65), or a newer checkout has taken over the promotion (R354). Nothing can be paid there.
 */
export type CheckoutState = 'open' | 'overtaken' | 'expired' | 'completed'

/** A checkout in any state, with everything that its page shows. */
export interface CheckoutView {
  readonly app: PayableApp
  readonly session: CheckoutRows['session']
  readonly transaction: PayableTransaction
  readonly state: CheckoutState
  /** Whether it is `overtaken` by a newer checkout that has its promotion. */
  readonly hasLostPromotion: boolean
  /** Seconds until the link expires, in the app's own time; 0 once it has. */
  readonly secondsLeft: number
  /** The name of the plan that the payment gives, or the `plan_name` or `plan_ref` of a one-time purchase. */
  readonly title: string
  /** The description of that plan. */
  readonly description: string | null
  /** What is sold; null for a one-time purchase. */
  readonly price: CheckoutRows['price']
  readonly plan: CheckoutRows['plan']
  /** The price of the renewals after the payment, and the promotion that takes a discount off them. */
  readonly renewals: Omit<Given, 'plan'>
  /** Whether a promotion may still be applied, if the app has one whose code payers type. */
  readonly takesPromotion: boolean
  readonly customer: Pick<Customer, 'email' | 'locale'> | null
  /** What the payer can choose: at most one if the method was chosen up front. */
  readonly methods: readonly Method[]
  /** Whether a payment is being processed, such as a debit that its bank has not confirmed: the payer must not pay again. */
  readonly isProcessing: boolean
  /** What the payment would do to the subscription now; null for a one-time purchase. */
  readonly preview: PaymentEffect | null
  /**
   * Whether the rest of a part payment may still be transferred although the link has expired: money with the same code counts, however
   * late it comes. The bank page then still asks for it, unless it is being processed.
   */
  readonly takesRest: boolean
}

/** The checkout behind a public token; throws `not_found` for unknown tokens. */
export async function viewCheckout(ctx: Context, token: string): Promise<CheckoutView> {
  return viewFound(ctx, isPageToken(token) ? await checkoutsByToken.find(ctx.db, token) : null)
}

/** `viewCheckout` as the first read of a request: also throws `rate_limited`, see `admit`. */
export async function admitToCheckout(ctx: Context, token: string): Promise<CheckoutView> {
  return viewFound(ctx, await admitByToken(ctx, token, checkoutsByToken))
}

async function viewFound(ctx: Context, found: CheckoutRows | null): Promise<CheckoutView> {
  if (!found) throw notFound('checkout')
  const { app, session, transaction, price, plan, customer, isProcessing } = found
  const now = appNow(app, ctx.clock.now())
  const preview = await previewOf(ctx, found, wholeSeconds(now))
  const { plan: givenPlan, ...renewals } = await givenBy(ctx, found, preview)
  const timed = stateOf(session, transaction, now)
  const hasLostPromotion = timed === 'open' && isPromotionTaken(found)
  const state = timed === 'open' && (hasLostPromotion || isOvertaken(preview)) ? 'overtaken' : timed
  return {
    app,
    session,
    transaction,
    state,
    hasLostPromotion,
    secondsLeft: Math.max(0, Math.ceil((session.expiresAt.getTime() - now.getTime()) / SECOND_MS)),
    title: givenPlan?.name ?? transaction.planName ?? transaction.planRef,
    description: givenPlan?.description ?? null,
    price,
    plan,
    renewals,
    takesPromotion: state === 'open' && preview?.kind !== 'refused' && takesPromotion(found),
    customer,
    methods: await payableMethods(ctx, found),
    isProcessing,
    preview,
    takesRest: state === 'expired' && !isProcessing && takesTransferOfRest(transaction) && preview?.kind !== 'refused',
  }
}

/** Whether the rest of its amount counts however late it is transferred, since its bank page was opened and a part has arrived (R124). */
export function takesTransferOfRest(transaction: PayableTransaction): boolean {
  const { status, bankPageOpenedAt } = transaction
  return status === 'pending' && bankPageOpenedAt !== null && keptOf(transaction) > 0
}

async function previewOf(
  ctx: Context,
  { transaction, price, plan, current }: CheckoutRows,
  now: AppTime,
): Promise<PaymentEffect | null> {
  const quote = quoteOf(transaction)
  if (!quote || !price || !plan) return null
  return decideOn(ctx.db, { price, plan, current, endUserId: transaction.endUserId }, quote, now)
}

/** The plan and the price that a payment gives, and the promotion that stays. */
interface Given extends Pick<CheckoutRows, 'plan' | 'price'> {
  readonly promotion: Promotion | null
}

/** What the subscription has once the payment is made. What was sold if the payment is refused, or is a one-time purchase. */
async function givenBy(ctx: Context, found: CheckoutRows, preview: PaymentEffect | null): Promise<Given> {
  const { app, transaction, price, plan, promotion, current } = found
  const quote = quoteOf(transaction)
  if (!quote || !price || !plan || !preview || preview.kind === 'refused') return { plan, price, promotion: null }
  // A payment that was opened to extend keeps a plan and a price that were chosen meanwhile (R98, R104).
  const given = preview.priceId === price.id ? { plan, price } : await findPrice(ctx.db, app.id, preview.priceId)
  const code = lastingDiscount({ plan, current, promotion, quote }, preview)
  return { plan, price, ...given, promotion: code === null ? null : await findPromotion(ctx.db, app.id, code) }
}

/** `completed` takes precedence over the expiry. A transaction whose part payment was refunded is `expired`. */
export function stateOf(
  session: Pick<CheckoutSession, 'expiresAt'>,
  transaction: PayableTransaction,
  now: AppTime,
): Exclude<CheckoutState, 'overtaken'> {
  if (transaction.completedAt !== null) return 'completed'
  if (transaction.status !== 'pending') return 'expired'
  return now < session.expiresAt ? 'open' : 'expired'
}

async function payableMethods(
  ctx: Context,
  { app, session, transaction, enabledMethods }: CheckoutRows,
): Promise<Method[]> {
  const enabled = new Set(enabledMethods.split(','))
  const methods = await availableMethods(ctx.db, app, dueOf(transaction), transaction.currency, enabled)
  return session.paymentMethod === null ? methods : methods.filter((method) => method === session.paymentMethod)
}

function isOvertaken(preview: PaymentEffect | null): boolean {
  return preview?.kind === 'refused' && (preview.reason === 'superseded' || preview.reason === 'trial_already_used')
}

/** Whether a newer checkout has taken over the use of the promotion. A renewal needs none. */
function isPromotionTaken({ transaction, hasPromotionUse }: CheckoutRows): boolean {
  return transaction.promotionCode !== null && !transaction.isByRenewalLink && !hasPromotionUse
}

/** Renewals have the discount of their subscription; once money has come or is under way, the amount stays. */
function takesPromotion({ transaction, isProcessing }: CheckoutRows): boolean {
  const { mode, isByRenewalLink, promotionCode } = transaction
  if (mode !== 'subscription' || isByRenewalLink || promotionCode !== null || isProcessing) return false
  return keptOf(transaction) === 0
}

/** The address of the hosted page. */
export function checkoutUrl(baseUrl: string, token: string): string {
  return `${baseUrl}/checkout/${token}`
}
