import type { Middleware } from 'koa'
import type { Context } from '#context.ts'
import { asAppError, placeOf } from '#http/errors.ts'
import { keptLanguage, linkable, pageLocale, pathBase, sendPage, type PageHttp, type PageLink } from '#http/html.ts'
import { formatMoney } from '#shared/money.ts'
import type { AppError } from '#shared/errors.ts'
import type { PayerHttp, PayerLink, PayerState } from './payer-link.ts'
import { restWords } from './received.ts'
import { pageTexts, type Notice, type PageTexts } from './texts.ts'
import { accountFacts, amountFact, noteFact, type TransferFacts } from './transfer-facts.ts'

/** A page with one message: what went wrong, or what was done. */
export interface Message {
  readonly status: number
  readonly tone: 'good' | 'late' | 'bad'
  readonly heading: string
  readonly lines: readonly string[]
  /** How to transfer what is missing. */
  readonly transfer?: TransferFacts | null
  readonly actions?: readonly PageLink[]
  /** Shown so that the payer can quote it. */
  readonly requestId?: string
}

export async function sendMessage(ctx: Context, http: PageHttp, message: Message): Promise<void> {
  const { status, tone, heading, lines, transfer, actions = [], requestId } = message
  const locale = pageLocale(http)
  const texts = pageTexts(locale)
  const reference = requestId ? { label: texts.reference, id: requestId } : null
  await sendPage(ctx, http, {
    template: 'message',
    title: heading,
    status,
    values: {
      tone,
      heading,
      lines,
      facts: transfer
        ? [...accountFacts(transfer, locale), amountFact(transfer, locale), noteFact(transfer, locale)]
        : [],
      words: texts.bank,
      actions,
      reference,
    },
  })
}

/** Turns errors of a page's route into a page of the same status. Callers that ask for JSON get the API's error body. */
export function friendlyErrors(ctx: Context): Middleware<PayerState> {
  return async (http, next) => {
    try {
      await next()
    } catch (thrown) {
      if (speaksJson(http)) throw thrown
      await sendError(ctx, http, asAppError(ctx, thrown, http.state.requestId, placeOf(http)))
    }
  }
}

async function sendError(ctx: Context, http: PayerHttp, error: AppError): Promise<void> {
  const texts = pageTexts(pageLocale(http))
  const isLate = error.code === 'checkout_expired'
  const notice = (isLate ? noticeOfChange(texts, http) : null) ?? noticeOf(texts, error)
  http.set(error.headers)
  await sendMessage(ctx, http, {
    status: error.status,
    tone: isLate ? 'late' : 'bad',
    heading: notice.heading,
    lines: (isLate ? linesAboutMoney(texts, http) : null) ?? notice.lines,
    transfer: isLate ? transferOfRest(http) : null,
    actions: exitLinks(ctx, http, error),
    ...(error.status === 500 ? { requestId: http.state.requestId } : {}),
  })
}

function noticeOf({ errors }: PageTexts, { code, status }: AppError): Notice {
  return errors[code] ?? errors[status < 500 ? 'invalid_request' : 'internal_error']
}

/** Why nothing can be paid by a link, if not because it has expired. */
function noticeOfChange({ overtaken, checkout }: PageTexts, { state: { link } }: PayerHttp): Notice | null {
  if (link?.isOvertaken) return overtaken
  return link?.isProcessing ? { heading: checkout.processing, lines: [checkout.processingHint] } : null
}

/** For a link where nothing can be paid any more: what happens with money that has arrived or is under way; null without any. */
function linesAboutMoney(texts: PageTexts, http: PayerHttp): readonly string[] | null {
  const { owner, link } = http.state
  if (!owner || !link) return null
  const { appName } = owner
  const { part, isOvertaken, isProcessing, takesTransfers } = link
  if (isProcessing) return isOvertaken ? [texts.overtakenWhileProcessing(appName)] : null
  if (!part) return takesTransfers ? linesAfterTransfer(texts, appName, link) : null
  const money = (amount: number) => formatMoney(amount, part.currency, pageLocale(http))
  const [arrived, asked] = [money(part.received), money(part.asked)]
  // Nothing is left to pay, because the payment would not be applied.
  if (isOvertaken)
    return [texts.afterTransfer.noMore, texts.checkout.received(arrived, asked), texts.part.decide(appName)]
  const received = texts.part.received(arrived, asked, money(part.due))
  const transfer = transferOfRest(http)
  if (!transfer) return [received, texts.part.completeOrBack(appName)]
  return restWords(part, { transferCode: transfer.transferCode, appName }, pageLocale(http))
}

/** For a payer who may have transferred the money already. */
function linesAfterTransfer(
  { afterTransfer }: PageTexts,
  appName: string,
  { isOvertaken, isRefused }: PayerLink,
): string[] {
  const { noMore, isChecked, counts, newLink } = afterTransfer
  if (isOvertaken) return [noMore, isChecked(appName)]
  return [isRefused ? isChecked(appName) : counts, newLink]
}

/** How the rest of a part payment can still be transferred; null if it cannot. */
function transferOfRest({ state: { link } }: PayerHttp): TransferFacts | null {
  return link?.isOvertaken ? null : (link?.restTransfer ?? null)
}

/** Statuses of temporary errors, for which the page offers to try again. */
const TEMPORARY_STATUSES = [429, 500, 503]

function exitLinks(ctx: Context, http: PayerHttp, error: AppError): PageLink[] {
  const { owner, link } = http.state
  const texts = pageTexts(pageLocale(http))
  const exit = linkable(link?.exit)
  const canStartAgain = link && error.status !== 410 && error.status !== 404
  const startAgain = canStartAgain ? { path: link.path, label: texts.startAgain } : null
  // Before the page's owner is known, the only link is the address itself, which also answers GET.
  const canTryAgain = !owner && TEMPORARY_STATUSES.includes(error.status)
  const tryAgain = canTryAgain ? { path: http.path, label: texts.tryAgain } : null
  return [
    ...(error.code === 'checkout_expired' ? payRestLink(ctx, http) : []),
    ...[startAgain ?? tryAgain].flatMap((again) =>
      again ? [{ href: pathBase(ctx) + again.path + keptLanguage(http), label: again.label }] : [],
    ),
    ...(owner && exit ? [{ href: exit, label: texts.backTo(owner.appName) }] : []),
  ]
}

/** To the bank page, which still has the QR code for the rest. */
function payRestLink(ctx: Context, http: PayerHttp): PageLink[] {
  const { link } = http.state
  const transfer = transferOfRest(http)
  if (!transfer || !link) return []
  const locale = pageLocale(http)
  const label = pageTexts(locale).part.payRest(formatMoney(transfer.amountDue, 'VND', locale))
  return [{ href: `${pathBase(ctx)}${link.path}/bank${keptLanguage(http)}`, label }]
}

export function speaksJson(http: PageHttp): boolean {
  if (http.is('json') === 'json') return true
  return http.accepts('html', 'json') === 'json'
}
