import type { PayableApp } from '#apps/store.ts'
import { readerOf } from '#apps/page-settings.ts'
import type { Context } from '#context.ts'
import { linkable, pageLocale, seeOther, sendPage, type PageHttp, type PageLink } from '#http/html.ts'
import { keptOf } from '#payments/balance.ts'
import type { Locale } from '#shared/locale.ts'
import { momentWords } from '#words/dates.ts'
import { discountFact } from '#words/discounts.ts'
import { intervalWords } from '#words/plans.ts'
import { findPlan } from '#plans/store.ts'
import { providerOfCode } from '#providers/providers.ts'
import { formatMoney } from '#shared/money.ts'
import { findLineOfTransaction, type LedgerLine } from '#subscriptions/store.ts'
import { referenceOf } from '#transactions/reference.ts'
import type { PayableTransaction } from '#transactions/store.ts'
import { checkoutPath, openView, tokenOf, type TokenHttp } from './checkout-frame.ts'
import { dayOf, type PageDay } from './effect.ts'
import { pageTexts } from './texts.ts'

/** Long enough to read the page. */
const REDIRECT_SECONDS = 6

interface PaidFact {
  readonly label: string
  readonly value: string
  /** Beside a value that a seller wrote, which may run from right to left. */
  readonly interval: string | null
  readonly day: PageDay | null
}

/** What a payer sees of a payment that is complete. */
export interface PaidView {
  readonly words: object
  readonly amount: string
  readonly facts: readonly PaidFact[]
  /** What happens with the money where it could not be applied; null otherwise. */
  readonly review: string | null
}

interface PaidPayment {
  readonly app: PayableApp
  /** The plan that it gave, or the one-time purchase. */
  readonly title: string
  readonly transaction: PayableTransaction
  /** What it did to the subscription; null for a one-time purchase, and where it could not be applied. */
  readonly line: LedgerLine | null
}

/** What was paid, what it bought and until when, and the reference to quote. */
export function paidViewOf({ app, title, transaction, line }: PaidPayment, locale: Locale): PaidView {
  const words = pageTexts(locale).paid
  const fact = (label: string, value: string, more: Partial<PaidFact> = {}): PaidFact => {
    return { label, value, interval: null, day: null, ...more }
  }
  const interval = line && { unit: line.intervalUnit, count: line.intervalCount }
  const bought = interval && interval.unit !== 'lifetime' ? { interval: intervalWords(interval, locale) } : {}
  const discount = discountFact(transaction, locale)
  const end = line?.endAfter ?? null
  const until = end
    ? fact(words.until, '', { day: dayOf(end, readerOf(app, locale)) })
    : fact(words.access, words.lifetime)
  return {
    words,
    amount: formatMoney(keptOf(transaction), transaction.currency, locale),
    facts: [
      fact(words.bought, title, bought),
      ...(discount === '' ? [] : [fact(words.discount, discount)]),
      ...(line ? [until] : []),
      ...paymentFacts(app, transaction, locale).map(([label, value]) => fact(label, value)),
    ],
    review: transaction.mode === 'subscription' && !line ? words.review(app.name) : null,
  }
}

/** When and how it was paid, and the reference that every page and mail of it has. */
function paymentFacts(
  app: PayableApp,
  transaction: PayableTransaction,
  locale: Locale,
): [label: string, value: string][] {
  const { completedAt, providerCode } = transaction
  const words = pageTexts(locale).paid
  const method = providerCode === null ? null : providerOfCode(providerCode)
  return [
    ...(completedAt ? [[words.paidAt, momentWords(completedAt, readerOf(app, locale))] as [string, string]] : []),
    ...(method ? [[words.method, method.texts[locale].name] as [string, string]] : []),
    [words.reference, referenceOf(transaction)],
  ]
}

/**
 * `GET /checkout/{token}/paid`: the bank page redirects here once the money has arrived. The page redirects to `success_url` after a few
 * seconds. A renewal redirects at once to its own page, which shows the same.
 */
export async function sendPaid(ctx: Context, http: TokenHttp): Promise<void> {
  const view = await openView(ctx, http, tokenOf(http))
  const { app, session, transaction, title } = view
  if (view.state !== 'completed') {
    seeOther(http, checkoutPath(ctx, http, session.token, '/bank'))
    return
  }
  // After a refund of the whole payment there is nothing left to show.
  if (session.origin === 'renewal' || keptOf(transaction) === 0) {
    seeOther(http, session.successUrl)
    return
  }
  const locale = pageLocale(http)
  const line = await findLineOfTransaction(ctx.db, transaction.id)
  const plan = line && (await findPlan(ctx.db, app.id, line.planId))
  const paid = paidViewOf({ app, title: plan?.name ?? title, transaction, line }, locale)
  await sendPage(ctx, http, {
    template: 'paid',
    title: pageTexts(locale).paid.heading,
    // A warning stays on the screen until the payer has read it.
    ...(paid.review ? {} : { leadsTo: { url: session.successUrl, seconds: REDIRECT_SECONDS } }),
    values: {
      paid,
      way_back: returnLink(http, session.successUrl, app),
      leads_on: paid.review ? null : pageTexts(locale).paid.leadsOn,
    },
  })
}

/** The link back to the app where there is nothing left to do; null without a web address. */
export function returnLink(http: PageHttp, url: string | undefined, app: Pick<PayableApp, 'name'>): PageLink | null {
  const href = linkable(url)
  return href === null ? null : { href, label: pageTexts(pageLocale(http)).backTo(app.name) }
}
