import { z } from 'zod'
import { appNow, toRealTime } from '#apps/app-time.ts'
import type { Context } from '#context.ts'
import { payer } from '#commands/caller.ts'
import { command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { requireAmong } from '#providers/available-methods.ts'
import type { PaymentRequest } from '#providers/provider.ts'
import { isMethod, METHODS, providerOf } from '#providers/providers.ts'
import { isStillProcessing } from '#providers/engine/reconcile-payments.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import type { Locale } from '#shared/locale.ts'
import { updateTransactionIn } from '#transactions/store.ts'
import { checkoutUrl, viewCheckout, type CheckoutView } from './view-checkout.ts'

export interface Choosing {
  /** The checkout, if the request has read it already. */
  readonly seen?: CheckoutView
  /** The language that the payer asks for; null or absent for the customer's. */
  readonly locale?: Locale | null
}

/**
 * The payer chooses a payment method. Returns where to redirect: the provider's page, the bank page, or, once it is paid, `success_url`.
 * Throws `not_found`, `invalid_request`, `checkout_expired`, `payment_method_unavailable`, `provider_error`.
 */
export async function chooseMethod(
  ctx: Context,
  token: string,
  method: unknown,
  { seen, locale = null }: Choosing = {},
): Promise<{ redirectUrl: string }> {
  if (!isMethod(method)) throw invalidField('payment_method', `must be one of ${METHODS.join(', ')}`)
  const view = await viewToPay(ctx, token, seen)
  if (view.state === 'completed') return { redirectUrl: view.session.successUrl }
  requireOpen(view)
  requireAmong(view.methods, method)
  if (view.isProcessing) return { redirectUrl: checkoutUrl(ctx.config.baseUrl, token) }
  const provider = providerOf(method)
  if (!provider.paysAtOnce) await perform(ctx, payer, rememberChoice, { payment_method: method }, view)
  return provider.open(ctx, requestOf(ctx, view, locale))
}

/** The current checkout. If a payment is being processed, the provider is asked for its outcome first. */
async function viewToPay(ctx: Context, token: string, seen: CheckoutView | undefined): Promise<CheckoutView> {
  const view = seen ?? (await viewCheckout(ctx, token))
  if (!view.isProcessing || (await isStillProcessing(ctx, view.transaction.id))) return view
  return viewCheckout(ctx, token)
}

/** Throws `checkout_expired` (410) if nothing can be paid by the link any more. */
export function requireOpen({ state, hasLostPromotion }: CheckoutView): void {
  if (state === 'expired') throw new AppError('checkout_expired', 'this checkout link has expired')
  if (hasLostPromotion)
    throw new AppError('checkout_expired', 'a newer checkout has taken over the promotion of this one')
  if (state === 'overtaken')
    throw new AppError('checkout_expired', 'the subscription has changed since this checkout link was made')
}

const rememberChoice = command({
  name: 'checkout.choose-method',
  input: z.strictObject({ payment_method: z.enum(METHODS) }),
  isRepeatable: true,
  async run(tx, { payment_method: method }, { app, transaction }: Pick<CheckoutView, 'app' | 'transaction'>) {
    await updateTransactionIn(tx, transaction.id, 'pending', {
      providerCode: providerOf(method).code,
      updatedAt: appNow(app, tx.now),
    })
  },
})

/** The request that a provider's `open` gets. */
export function requestOf(ctx: Context, view: CheckoutView, locale: Locale | null = null): PaymentRequest {
  const { app, session, transaction, title, customer } = view
  const pageUrl = checkoutUrl(ctx.config.baseUrl, session.token)
  return {
    app,
    transaction,
    title,
    returnUrl: session.successUrl,
    cancelUrl: session.cancelUrl,
    checkoutUrl: pageUrl,
    bankPageUrl: `${pageUrl}/bank`,
    expiresAt: toRealTime(app, session.expiresAt),
    customerEmail: customer?.email ?? null,
    locale: locale ?? customer?.locale ?? 'en',
  }
}
