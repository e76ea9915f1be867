import { formRedirect, providerSources } from './form-redirect.ts'
import Router from '@koa/router'
import { z } from 'zod'
import { readerOf } from '#apps/page-settings.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { admitToCheckout, type CheckoutView } from '#checkout/view-checkout.ts'
import type { Context } from '#context.ts'
import { isPageToken } from '#http/admission.ts'
import { sendAsset } from '#http/assets.ts'
import { pageBody } from '#http/body.ts'
import type { RequestState } from '#http/errors.ts'
import { askedLocale, formSource, pageLocale, seeOther, sendPage, setPageHeaders, type PageHttp } from '#http/html.ts'
import { methodNotAllowed } from '#http/router.ts'
import { discounted } from '#promotions/discount.ts'
import { providerOf } from '#providers/providers.ts'
import { intervalWords } from '#words/plans.ts'
import { dueOf, keptOf } from '#payments/balance.ts'
import { notFound } from '#shared/errors.ts'
import type { Locale } from '#shared/locale.ts'
import { formatMoney } from '#shared/money.ts'
import { validate } from '#shared/validate.ts'
import { intervalOf } from '#subscriptions/decide-payment.ts'
import {
  cancelLink,
  checkoutPath,
  isCheckoutOver,
  openView,
  progressTag,
  tokenOf,
  whileOpen,
  type TokenHttp,
} from './checkout-frame.ts'
import { descriptionOf, sendLogo } from './brand.ts'
import { effectOf } from './effect.ts'
import { friendlyErrors } from './message.ts'
import { applyTypedCode, codeForm, discountWords } from './promotion.ts'
import { receivedOf } from './received.ts'
import { pageTexts } from './texts.ts'

const ResolveInput = z.strictObject({ payment_method: z.unknown() })

/** The hosted checkout: its page, the choice of a method, the status that pages poll, and the files that all pages share. */
export function checkoutPages(ctx: Context): Router<RequestState> {
  const router = new Router<RequestState>()
  // Registered before `friendlyErrors`, because programs call them: their errors stay JSON.
  router.get('/checkout/:token/status', (http) => sendStatus(ctx, http))
  for (const form of ['resolve', 'promotion']) router.get(`/checkout/:token/${form}`, (http) => leaveForm(ctx, http))
  router.use(friendlyErrors(ctx))
  router.get('/assets/:file', sendAsset)
  router.get('/logo/:digest', (http) => sendLogo(ctx, http, http.params['digest'] ?? ''))
  router.get('/checkout/:token', (http) => whileOpen(ctx, http, sendCheckout))
  router.post('/checkout/:token/promotion', pageBody, (http) =>
    applyTypedCode(ctx, http, (view, refused) => sendCheckout(ctx, http, view, refused)),
  )
  router.post('/checkout/:token/resolve', pageBody, (http) => resolve(ctx, http))
  return router
}

/** Leads a browser that opens a form's address by GET, as a phone does when it restores a tab, to the page. Refuses other callers. */
function leaveForm(ctx: Context, http: TokenHttp): void {
  if (!http.get('Accept').includes('text/html')) throw methodNotAllowed(http.method, ['POST'])
  const token = tokenOf(http)
  // Nothing was looked up, and a header cannot carry every text of a path.
  if (!isPageToken(token)) throw notFound('checkout')
  seeOther(http, checkoutPath(ctx, http, token))
}

async function resolve(ctx: Context, http: TokenHttp): Promise<void> {
  const view = await openView(ctx, http, tokenOf(http))
  const { payment_method } = validate(ResolveInput, http.request.body)
  const isForm = Boolean(http.is('urlencoded'))
  // The language of another caller, a seller's server, is not the payer's.
  const locale = isForm ? askedLocale(http) : null
  const { redirectUrl } = await chooseMethod(ctx, view.session.token, payment_method, { seen: view, locale })
  if (isForm) {
    seeOther(http, formRedirect(ctx, http, redirectUrl))
    return
  }
  setPageHeaders(http)
  http.body = { success: true, data: { redirect_url: redirectUrl } }
}

async function sendStatus(ctx: Context, http: TokenHttp): Promise<void> {
  const view = await admitToCheckout(ctx, tokenOf(http))
  const { state, session } = view
  const isCompleted = state === 'completed'
  setPageHeaders(http)
  // Clients know the body. By the tag, the page notices that a part of the money has arrived.
  http.etag = progressTag(view)
  http.body = {
    status: isCompleted ? 'completed' : 'pending',
    expired: state === 'expired' || state === 'overtaken',
    redirect_url: isCompleted ? session.successUrl : null,
  }
}

/** `refusedCode` is the code of a promotion that the payer has just typed and that cannot be used. */
async function sendCheckout(
  ctx: Context,
  http: PageHttp,
  view: CheckoutView,
  refusedCode: string | null = null,
): Promise<void> {
  const { app, session, transaction, title, price, secondsLeft } = view
  const locale = pageLocale(http)
  const texts = pageTexts(locale)
  await sendPage(ctx, http, {
    template: 'checkout',
    title: texts.checkout.pageTitle(title),
    status: refusedCode === null ? 200 : 400,
    // The form redirects to the seller once paid, or to a provider's page.
    formSources: [formSource(session.successUrl), ...providerSources(ctx, view.methods)],
    values: {
      words: texts.checkout,
      title,
      price_name: price?.name ?? null,
      description: descriptionOf(view.description),
      amount: formatMoney(dueOf(transaction), transaction.currency, locale),
      left: keptOf(transaction) > 0,
      terms: termsOf(view, locale),
      discount: discountWords(transaction, transaction.currency, locale),
      code: await codeForm(ctx, http, view, refusedCode),
      afterwards: afterwards(view, locale),
      effect: effectOf(view.preview, price && intervalOf(price, transaction.isTrial), readerOf(app, locale)),
      refusal: refusalOf(view, locale),
      received: receivedOf(transaction, locale),
      processing: view.isProcessing,
      seen: progressTag(view),
      status_path: checkoutPath(ctx, http, session.token, '/status'),
      paid: texts.bank.paid,
      methods: view.methods.map((method) => ({ method, ...providerOf(method).texts[locale] })),
      statement: app.pageSettings?.statement_name ? texts.checkout.statement(app.pageSettings.statement_name) : null,
      no_methods: texts.checkout.noMethods(app.name),
      seconds_left: secondsLeft,
      time_left: texts.duration(secondsLeft),
      resolve_path: checkoutPath(ctx, http, session.token, '/resolve'),
      cancel: cancelLink(http, view),
      goes_back: isCheckoutOver(view),
    },
  })
}

function termsOf({ price, transaction }: CheckoutView, locale: Locale): string {
  const words = pageTexts(locale).checkout
  if (!price) return words.oneTime
  const interval = intervalOf(price, transaction.isTrial)
  if (interval.unit === 'lifetime') return words.lifetime
  return transaction.isTrial
    ? words.trial(intervalWords(interval, locale))
    : words.forInterval(intervalWords(interval, locale))
}

/** What the next period costs, after a trial or a discounted period. */
function afterwards({ renewals, transaction }: CheckoutView, locale: Locale): string | null {
  const { price, promotion } = renewals
  const isCheaper = transaction.isTrial || transaction.promotionCode !== null
  if (!price || price.intervalUnit === 'lifetime' || !isCheaper) return null
  const due = discounted(promotion, price)
  const amount = formatMoney(due.amount, price.currency, locale)
  return pageTexts(locale).checkout.afterwards(amount, intervalWords(intervalOf(price, false), locale))
}

function refusalOf({ app, preview }: CheckoutView, locale: Locale): string | null {
  if (preview?.kind !== 'refused') return null
  const words = pageTexts(locale).checkout
  return preview.reason === 'already_lifetime' ? words.refusedLifetime : words.refusedPeriod(app.name)
}
