import { formRedirect, providerSources } from './form-redirect.ts'
import Router from '@koa/router'
import { readerOf } from '#apps/page-settings.ts'
import { getApp, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { findCustomer } from '#customers/store.ts'
import { pageBody } from '#http/body.ts'
import type { RequestState } from '#http/errors.ts'
import {
  askedLocale,
  keptLanguage,
  pageLocale,
  pathBase,
  seeOther,
  sendPage,
  setPageHeaders,
  type PageHttp,
  type PageLink,
} from '#http/html.ts'
import { payer } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { openRenewal } from '#renewals/open-renewal.ts'
import { optOut } from '#renewals/opt-out.ts'
import { admitToRenewal, findSellerUrl, type OpenPayment, type RenewalView } from '#renewals/view-renewal.ts'
import { providerOf } from '#providers/providers.ts'
import { intervalWords } from '#words/plans.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { dueOf, keptOf } from '#payments/balance.ts'
import type { Locale } from '#shared/locale.ts'
import { formatMoney } from '#shared/money.ts'
import { formatTimestamp } from '#shared/time.ts'
import { effectiveStatus } from '#subscriptions/lifecycle.ts'
import { subscriptionsByRenewalToken, type Subscription } from '#subscriptions/store.ts'
import { checkoutPath, ownerOf, tokenOf, type TokenHttp } from './checkout-frame.ts'
import { descriptionOf } from './brand.ts'
import { dayOf, effectOf } from './effect.ts'
import { friendlyErrors, sendMessage, speaksJson } from './message.ts'
import { paidViewOf, returnLink } from './paid.ts'
import type { PayerHttp } from './payer-link.ts'
import { discountWords } from './promotion.ts'
import { promotionTexts } from './promotion-texts.ts'
import { partPaidOf, receivedOf, restWords } from './received.ts'
import { renewTexts } from './renew-texts.ts'
import { pageTexts } from './texts.ts'

/** The renewal page and the opt-out page, with their forms (R176 to R178). */
export function renewPages(ctx: Context): Router<RequestState> {
  const router = new Router<RequestState>()
  router.use(friendlyErrors(ctx))
  router.get('/renew/:token', (http) => whileRenewable(ctx, http, (view) => sendRenewal(ctx, http, view)))
  router.post('/renew/:token', pageBody, (http) => whileRenewable(ctx, http, () => renew(ctx, http)))
  router.get('/renew/:token/opt-out', (http) => whileRenewable(ctx, http, (view) => askOptOut(ctx, http, view)))
  router.post('/renew/:token/opt-out', (http) => whileRenewable(ctx, http, (view) => stopReminders(ctx, http, view)))
  return router
}

/** Sends a page of the renewal behind the token. A lifetime subscription gets a page of its own, 410. */
async function whileRenewable(
  ctx: Context,
  http: TokenHttp,
  send: (view: RenewalView) => Promise<void>,
): Promise<void> {
  const view = await viewOrNull(ctx, http)
  if (!view) {
    await sendLifetime(ctx, http)
    return
  }
  await setOwner(ctx, http, view)
  await send(view)
}

/** Null for a lifetime subscription; a caller that asks for JSON gets the error instead. */
async function viewOrNull(ctx: Context, http: TokenHttp): Promise<RenewalView | null> {
  try {
    return await admitToRenewal(ctx, tokenOf(http))
  } catch (error) {
    const isLifetime = error instanceof AppError && error.code === 'checkout_expired'
    if (!isLifetime || speaksJson(http)) throw error
    return null
  }
}

async function sendLifetime(ctx: Context, http: TokenHttp): Promise<void> {
  const subscription = await subscriptionsByRenewalToken.find(ctx.db, tokenOf(http))
  if (subscription) {
    const { appId, customerId } = subscription
    const customer = customerId === null ? null : await findCustomer(ctx.db, appId, customerId)
    await setOwner(ctx, http, { app: await getApp(ctx.db, appId), customer, subscription })
  }
  const { lifetimeHeading: heading, lifetimeLines: lines } = renewTexts(pageLocale(http))
  const back = sellerLink(http)
  await sendMessage(ctx, http, { status: 410, tone: 'good', heading, lines, actions: back ? [back] : [] })
}

/** The link back to the seller; null if no checkout of the subscription says where that is. */
function sellerLink(http: PayerHttp): PageLink | null {
  const { owner, link } = http.state
  return owner ? returnLink(http, link?.exit, { name: owner.appName }) : null
}

interface Renewing extends Pick<RenewalView, 'app' | 'customer'> {
  readonly subscription: Subscription
}

async function setOwner(ctx: Context, http: PayerHttp, { app, customer, subscription }: Renewing): Promise<void> {
  const exit = await findSellerUrl(ctx.db, subscription)
  http.state.owner = ownerOf(app, customer)
  http.state.link = { path: `/renew/${subscription.renewalToken}`, ...(exit === undefined ? {} : { exit }) }
}

async function renew(ctx: Context, http: TokenHttp): Promise<void> {
  const isForm = Boolean(http.is('urlencoded'))
  const asked = { asksAgain: isForm, locale: isForm ? askedLocale(http) : null }
  const outcome = await openRenewal(ctx, tokenOf(http), http.request.body, asked)
  if (outcome.kind === 'renewed_meanwhile') {
    if (!isForm) throw invalidField('period_end', 'is no longer the end of this subscription')
    await sendRenewal(ctx, http, outcome.view, 409)
    return
  }
  if (isForm) {
    seeOther(http, formRedirect(ctx, http, outcome.redirectUrl))
    return
  }
  setPageHeaders(http)
  http.body = { success: true, data: { redirect_url: outcome.redirectUrl } }
}

function renewPath(ctx: Context, http: TokenHttp, rest = ''): string {
  return `${pathBase(ctx)}/renew/${tokenOf(http)}${rest}${keptLanguage(http)}`
}

async function sendRenewal(ctx: Context, http: TokenHttp, view: RenewalView, status = 200): Promise<void> {
  const { app, subscription, plan, price, due, open, paid } = view
  const locale = pageLocale(http)
  const reader = readerOf(app, locale)
  const words = { ...pageTexts(locale).checkout, ...renewTexts(locale) }
  const end = dayOf(subscription.currentPeriodEnd, reader)
  const isOver = effectiveStatus(subscription, view.now) === 'expired'
  const refusal = refusalOf(view, locale)
  await sendPage(ctx, http, {
    template: 'renew',
    title: paid ? pageTexts(locale).paid.heading : words.pageTitle(plan.name),
    status,
    formSources: providerSources(ctx, view.methods),
    values: {
      words,
      title: words.pageTitle(plan.name),
      price_name: price.name,
      description: descriptionOf(plan.description),
      left: isPartPaid(open),
      amount: formatMoney(open ? dueOf(open.transaction) : due.amount, price.currency, locale),
      discount: discountWords(open?.transaction ?? due, price.currency, locale),
      terms:
        price.intervalUnit === 'lifetime'
          ? words.lifetime
          : words.forInterval(intervalWords({ unit: price.intervalUnit, count: price.intervalCount }, locale)),
      standing: { label: isOver ? words.endedOn : words.validNow, day: end },
      effect: effectOf(view.effect, { unit: price.intervalUnit, count: price.intervalCount }, reader),
      notice: noticeOf(ctx, http, view, { isRenewedMeanwhile: status === 409, end: end.text }),
      is_renewed: view.isRenewedAlready,
      paid: paid && paidViewOf({ app, ...paid }, locale),
      way_back: refusal !== null || isRenewalOver(view) ? sellerLink(http) : null,
      is_refused: refusal !== null,
      unpaid: refusal === null && isUnpaid(view) ? promotionTexts(locale) : null,
      methods: takesNoMethod(open)
        ? []
        : view.methods.map((method) => ({ method, ...providerOf(method).texts[locale] })),
      statement: app.pageSettings?.statement_name ? words.statement(app.pageSettings.statement_name) : null,
      period_end: formatTimestamp(subscription.currentPeriodEnd),
      renew_path: renewPath(ctx, http),
      opt_out_path: subscription.remindersStoppedAt ? null : renewPath(ctx, http, '/opt-out'),
    },
  })
}

/** Whether no method can be chosen: the payment is being processed, or only its rest can be transferred. */
function takesNoMethod(open: OpenPayment | null): boolean {
  return open !== null && (open.isProcessing || open.takesRest)
}

/** Whether the payer has nothing left to do here: the period is paid, is being paid, or cannot be paid. */
function isRenewalOver(view: RenewalView): boolean {
  const { paid, open, isRenewedAlready } = view
  return paid !== null || (open === null ? isRenewedAlready || isUnpayable(view) : open.isProcessing)
}

/** Whether a click renews, since a discount leaves nothing to pay. */
function isUnpaid({ due, open, isRenewedAlready }: RenewalView): boolean {
  return due.amount === 0 && open === null && !isRenewedAlready
}

function isUnpayable({ due, methods }: RenewalView): boolean {
  return due.amount > 0 && methods.length === 0
}

function refusalOf({ app, effect, open }: RenewalView, locale: Locale): string | null {
  const texts = renewTexts(locale)
  if (app.disabledAt && !open) return texts.disabled(app.name)
  return effect.kind === 'refused' ? texts.cannotExtend(app.name) : null
}

/** The one box of the page, which says what is special about this renewal. */
interface Notice {
  /** The state comes first, then what it means. */
  readonly sentences: readonly string[]
  readonly isUrgent: boolean
  readonly action: PageLink | null
  /** Where the page sees that the open payment was made, and what it says then; null without one. */
  readonly status_path: string | null
  readonly paid: string
}

/** What else there is to know before paying; null if nothing. Where several things are true, the first one is the box's head. */
function noticeOf(
  ctx: Context,
  http: TokenHttp,
  view: RenewalView,
  { isRenewedMeanwhile, end }: { readonly isRenewedMeanwhile: boolean; readonly end: string },
): Notice | null {
  const { app, open, paid, isRenewedAlready } = view
  const locale = pageLocale(http)
  const texts = renewTexts(locale)
  const refusal = refusalOf(view, locale)
  const urgent = [
    ...(isRenewedMeanwhile ? [texts.renewedMeanwhile] : []),
    ...(refusal === null ? [] : [refusal]),
    ...(open ? openWords(open, app, locale) : []),
  ]
  const sentences = [
    ...urgent,
    ...(isRenewedAlready && !paid ? [texts.renewedAlready(end)] : []),
    ...(refusal === null && isUnpayable(view) && !isRenewedAlready
      ? [pageTexts(locale).checkout.noMethods(app.name)]
      : []),
  ]
  return sentences.length === 0
    ? null
    : {
        sentences,
        isUrgent: urgent.length > 0,
        action: open && continueLink(ctx, http, open),
        status_path: open && checkoutPath(ctx, http, open.token, '/status'),
        paid: pageTexts(locale).bank.paid,
      }
}

/** To the payment that is open; to its bank page if only the rest can be transferred. Null while it is being processed. */
function continueLink(ctx: Context, http: PageHttp, open: OpenPayment): PageLink | null {
  const { token, transaction, takesRest, isProcessing } = open
  if (isProcessing) return null
  const locale = pageLocale(http)
  const due = formatMoney(dueOf(transaction), transaction.currency, locale)
  return {
    href: checkoutPath(ctx, http, token, takesRest ? '/bank' : ''),
    label: takesRest ? pageTexts(locale).part.payRest(due) : renewTexts(locale).continuePayment,
  }
}

function openWords(open: OpenPayment, { name }: App, locale: Locale): string[] {
  const { transaction, takesRest, isProcessing } = open
  const { checkout } = pageTexts(locale)
  if (isProcessing) return [checkout.processing, checkout.processingHint]
  if (takesRest) {
    const named = { transferCode: transaction.transferCode ?? '', appName: name }
    return restWords(partPaidOf(transaction), named, locale)
  }
  const received = receivedOf(transaction, locale)
  const { stillOpen, stillOpenHint } = renewTexts(locale)
  return received === null ? [stillOpen, stillOpenHint] : [received, checkout.restOnly]
}

function isPartPaid(open: OpenPayment | null): boolean {
  return open !== null && keptOf(open.transaction) > 0
}

async function askOptOut(ctx: Context, http: TokenHttp, view: RenewalView): Promise<void> {
  if (view.subscription.remindersStoppedAt) {
    await sendStopped(ctx, http, view)
    return
  }
  const words = renewTexts(pageLocale(http)).optOut
  await sendPage(ctx, http, {
    template: 'opt-out',
    title: words.title,
    values: {
      words,
      question: words.question(view.plan.name),
      opt_out_path: renewPath(ctx, http, '/opt-out'),
      renew_path: renewPath(ctx, http),
    },
  })
}

/** Mail programs post here (RFC 8058), with any body: it is not read, because the address says everything. */
async function stopReminders(ctx: Context, http: TokenHttp, view: RenewalView): Promise<void> {
  await perform(ctx, payer, optOut, undefined, { renewalToken: tokenOf(http) })
  await sendStopped(ctx, http, view)
}

async function sendStopped(ctx: Context, http: TokenHttp, { plan }: RenewalView): Promise<void> {
  if (http.accepts('html', 'json') === 'json') {
    setPageHeaders(http)
    http.body = { success: true, data: { reminders: 'stopped' } }
    return
  }
  const words = renewTexts(pageLocale(http)).optOut
  const back = sellerLink(http)
  await sendMessage(ctx, http, {
    status: 200,
    tone: 'good',
    heading: words.doneHeading,
    lines: words.doneLines(plan.name),
    actions: [...(back ? [back] : []), { href: renewPath(ctx, http), label: words.renew }],
  })
}
