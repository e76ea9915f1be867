import Router from '@koa/router'
import { openBankPage } from '#checkout/open-bank-page.ts'
import type { CheckoutView } from '#checkout/view-checkout.ts'
import type { Context } from '#context.ts'
import type { RequestState } from '#http/errors.ts'
import { pageLocale, seeOther, sendPage, setPageHeaders, type PageHttp } from '#http/html.ts'
import { bankAppLinks, type BankAppLink } from '#bank-accounts/bank-app-links.ts'
import { transferDetails, type TransferDetails } from '#bank-accounts/transfer-details.ts'
import { qrPng, qrSvg } from '#bank-accounts/qr-image.ts'
import { bankPageProvider } from '#providers/providers.ts'
import type { Locale } from '#shared/locale.ts'
import { formatMoney } from '#shared/money.ts'
import { contactLink } from '#words/seller-links.ts'
import { cancelLink, checkoutPath, progressTag, whileTransferable } from './checkout-frame.ts'
import { friendlyErrors } from './message.ts'
import { sendPaid } from './paid.ts'
import { pageTexts } from './texts.ts'
import { accountFacts, amountFact, noteFact } from './transfer-facts.ts'

/** How often a browser without scripts reloads the page to see whether the money has arrived. */
const RELOAD_SECONDS = 20

/** How long a payer waits before the page offers help. Banks report most transfers within five minutes. */
const HELP_AFTER_SECONDS = 180

/** The bank-transfer page of a checkout, the page that follows it, and the QR code alone. */
export function bankPages(ctx: Context): Router<RequestState> {
  const router = new Router<RequestState>()
  router.use(friendlyErrors(ctx))
  router.get('/checkout/:token/bank', (http) => whileTransferable(ctx, http, sendBankPage))
  router.get('/checkout/:token/paid', (http) => sendPaid(ctx, http))
  router.get('/checkout/:token/qr.svg', (http) => whileTransferable(ctx, http, sendQrCode))
  router.get('/checkout/:token/qr.png', (http) => whileTransferable(ctx, http, sendQrPicture))
  return router
}

/** Shows how to transfer. From its first opening on, the transaction takes bank transfers (R192). */
async function sendBankPage(ctx: Context, http: PageHttp, view: CheckoutView): Promise<void> {
  const { app, session, title, secondsLeft } = view
  const opened = await openBankPage(ctx, session.token)
  if (opened.state !== 'open' && !opened.takesRest) {
    // The checkout was just paid or has just expired. After a reload, the page says so.
    seeOther(http, checkoutPath(ctx, http, session.token, '/bank'))
    return
  }
  const details = await transferDetails(ctx, opened.transaction)
  const locale = pageLocale(http)
  const texts = pageTexts(locale)
  const path = (rest: string) => checkoutPath(ctx, http, session.token, rest)
  await sendPage(ctx, http, {
    template: 'bank',
    title: texts.bank.pageTitle,
    reload: { path: path('/paid'), seconds: RELOAD_SECONDS },
    values: {
      words: texts.bank,
      title,
      code: details.transferCode,
      partial: partialOf(details, locale),
      slow: helpOf(view, details, locale),
      account: accountFacts(details, locale),
      typed: [amountFact(details, locale), noteFact(details, locale)],
      bank_apps: bankAppsOf(view, details),
      qr_path: path('/qr.svg'),
      picture_path: path('/qr.png'),
      qr_alt: texts.bank.qrAlt(
        money(details.amountDue, locale),
        details.accountNumber,
        details.bankName,
        details.transferCode,
      ),
      status_path: path('/status'),
      paid_path: path('/paid'),
      other_path: hasOtherMethods(view) && !opened.takesRest ? path('') : null,
      left_to_pay: texts.checkout.leftToPay,
      amount: money(details.amountDue, locale),
      seen: progressTag(opened),
      seconds_left: secondsLeft,
      time_left: texts.duration(secondsLeft),
      is_late: opened.takesRest,
      money_back: texts.part.moneyBack(app.name),
      cancel: cancelLink(http, view),
    },
  })
}

/** The QR code alone, for the amount that is still due. */
async function sendQrCode(ctx: Context, http: PageHttp, { session }: CheckoutView): Promise<void> {
  const { transaction } = await openBankPage(ctx, session.token)
  const svg = await qrSvg((await transferDetails(ctx, transaction)).qrPayload)
  setPageHeaders(http)
  http.type = 'image/svg+xml'
  http.body = svg
}

/** The same as a PNG download, which a phone saves with one tap. */
async function sendQrPicture(ctx: Context, http: PageHttp, { session }: CheckoutView): Promise<void> {
  const { transaction } = await openBankPage(ctx, session.token)
  const { qrPayload, transferCode } = await transferDetails(ctx, transaction)
  const png = await qrPng(qrPayload)
  setPageHeaders(http)
  http.set('Content-Disposition', `attachment; filename="QR-${transferCode}.png"`)
  http.type = 'image/png'
  http.body = png
}

function money(amount: number, locale: Locale): string {
  return formatMoney(amount, 'VND', locale)
}

function hasOtherMethods({ methods }: CheckoutView): boolean {
  return methods.some((method) => method !== bankPageProvider().method)
}

/** What the page says after that wait: how long a transfer usually takes, and whom to contact with which code. */
function helpOf({ app }: CheckoutView, { transferCode }: TransferDetails, locale: Locale): object {
  const words = pageTexts(locale).bank
  const support = app.pageSettings?.support
  return {
    seconds: HELP_AFTER_SECONDS,
    state: words.slow,
    hint: words.slowHint(app.name, transferCode),
    href: support === undefined ? null : contactLink(support, transferCode),
    label: words.contact(app.name),
  }
}

/** How much has arrived; null before the first transfer. */
function partialOf(
  { amount, amountReceived }: TransferDetails,
  locale: Locale,
): { received: string; max: number; value: number } | null {
  if (amountReceived === 0) return null
  const words = pageTexts(locale).bank
  return {
    received: words.received(money(amountReceived, locale), money(amount, locale)),
    max: amount,
    value: amountReceived,
  }
}

/** Empty if the app turned them off. They return to the seller's site rather than to the page, whose address must stay secret. */
function bankAppsOf({ app, session }: CheckoutView, details: TransferDetails): BankAppLink[] {
  const isWanted = app.pageSettings?.bank_app_links ?? true
  return isWanted ? bankAppLinks(details, new URL(session.successUrl).origin) : []
}
