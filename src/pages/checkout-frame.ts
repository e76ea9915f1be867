import type { RouterContext } from '@koa/router'
import { findTransferDetails } from '#bank-accounts/transfer-details.ts'
import { requireOpen } from '#checkout/choose-method.ts'
import { admitToCheckout, type CheckoutView } from '#checkout/view-checkout.ts'
import type { Context } from '#context.ts'
import {
  keptLanguage,
  linkable,
  pageLocale,
  pathBase,
  seeOther,
  type PageHttp,
  type PageLink,
  type PageOwner,
} from '#http/html.ts'
import type { PayableApp } from '#apps/store.ts'
import type { Customer } from '#customers/store.ts'
import type { PayableTransaction } from '#transactions/store.ts'
import { brandOf } from './brand.ts'
import { dueOf, keptOf } from '#payments/balance.ts'
import type { PayerHttp, PayerLink, PayerState } from './payer-link.ts'
import { partPaidOf } from './received.ts'
import { pageTexts } from './texts.ts'

/** A request whose path holds a `:token`. */
export type TokenHttp = RouterContext<PayerState>

export function tokenOf(http: TokenHttp): string {
  return http.params['token'] ?? ''
}

/** The owner of a page of the app, for a customer if it is known. */
export function ownerOf(app: PayableApp, customer: Pick<Customer, 'locale'> | null): PageOwner {
  return {
    appName: app.name,
    isTest: app.isSandbox,
    customerLocale: customer?.locale ?? null,
    brand: (locale) => brandOf(app, locale),
  }
}

/** The checkout behind a token. Makes its app the owner of the page, and the checkout its link. Throws `not_found` and `rate_limited`. */
export async function openView(ctx: Context, http: PayerHttp, token: string): Promise<CheckoutView> {
  const view = await admitToCheckout(ctx, token)
  const { app, session, transaction, customer, state, hasLostPromotion, isProcessing, preview } = view
  const received = await receivedPartOf(ctx, view)
  http.state.owner = ownerOf(app, customer)
  http.state.link = {
    path: `/checkout/${session.token}`,
    exit: session.cancelUrl,
    // A lost promotion makes only the link void: the subscription has not changed.
    isOvertaken: state === 'overtaken' && !hasLostPromotion,
    isRefused: preview?.kind === 'refused',
    isProcessing,
    takesTransfers: takesTransfers(transaction),
    ...received,
  }
  return view
}

function takesTransfers({ bankPageOpenedAt, status }: PayableTransaction): boolean {
  return bankPageOpenedAt !== null && status === 'pending'
}

async function receivedPartOf(
  ctx: Context,
  { transaction, takesRest }: CheckoutView,
): Promise<Pick<PayerLink, 'part' | 'restTransfer'>> {
  if (transaction.status !== 'pending' || keptOf(transaction) === 0) return {}
  const restTransfer = takesRest ? await findTransferDetails(ctx, transaction) : null
  return { part: partPaidOf(transaction), restTransfer }
}

type SendPage = (ctx: Context, http: PageHttp, view: CheckoutView) => Promise<void>

/** Sends a page of an open checkout. A completed one redirects to the seller, also after its expiry; an expired or overtaken one is 410. */
export async function whileOpen(ctx: Context, http: TokenHttp, send: SendPage): Promise<void> {
  await unlessCompleted(ctx, http, (view) => {
    requireOpen(view)
    return send(ctx, http, view)
  })
}

/**
 * As `whileOpen`, and sends the page of an expired checkout, too, if the rest of a part payment can still be transferred. While the payment
 * is being processed, leads to the page that says so (R217).
 */
export async function whileTransferable(ctx: Context, http: TokenHttp, send: SendPage): Promise<void> {
  await unlessCompleted(ctx, http, async (view) => {
    if (!http.state.link?.restTransfer) requireOpen(view)
    if (view.isProcessing) seeOther(http, checkoutPath(ctx, http, view.session.token))
    else await send(ctx, http, view)
  })
}

async function unlessCompleted(
  ctx: Context,
  http: TokenHttp,
  send: (view: CheckoutView) => Promise<void>,
): Promise<void> {
  const view = await openView(ctx, http, tokenOf(http))
  if (view.state === 'completed') seeOther(http, view.session.successUrl)
  else await send(view)
}

/** `/checkout/{token}` plus `rest`, in the language that the payer picked. */
export function checkoutPath(ctx: Context, http: PageHttp, token: string, rest = ''): string {
  return `${pathBase(ctx)}/checkout/${token}${rest}${keptLanguage(http)}`
}

/** The link back to the seller. It says "cancel" where there is a payment to cancel. Null without a web address. */
export function cancelLink(http: PageHttp, view: CheckoutView): PageLink | null {
  const href = linkable(view.session.cancelUrl)
  const { backTo, checkout } = pageTexts(pageLocale(http))
  return href === null
    ? null
    : { href, label: (isCheckoutOver(view) || view.takesRest ? backTo : checkout.cancel)(view.app.name) }
}

/** Whether the payer has nothing left to do here: the payment is being processed, would buy nothing, or cannot be made. */
export function isCheckoutOver({ isProcessing, preview, methods }: CheckoutView): boolean {
  return isProcessing || preview?.kind === 'refused' || methods.length === 0
}

/** An etag that changes whenever a page would show other progress of the payment, or ask for another amount. */
export function progressTag({ transaction, isProcessing, takesRest }: CheckoutView): string {
  const money = `${transaction.status}-${keptOf(transaction)}-${dueOf(transaction)}`
  return `"${money}${isProcessing ? '-processing' : ''}${takesRest ? '-rest' : ''}"`
}
