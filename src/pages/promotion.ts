import { formRedirect } from './form-redirect.ts'
import { appNow } from '#apps/app-time.ts'
import { applyPromotion } from '#checkout/apply-promotion.ts'
import type { CheckoutView } from '#checkout/view-checkout.ts'
import type { Context } from '#context.ts'
import { pageLocale, seeOther, setPageHeaders, type PageHttp } from '#http/html.ts'
import type { DiscountedAmount } from '#promotions/discount.ts'
import { hasCodeToType } from '#promotions/store.ts'
import { AppError } from '#shared/errors.ts'
import type { Locale } from '#shared/locale.ts'
import { formatMoney } from '#shared/money.ts'
import { checkoutPath, openView, tokenOf, type TokenHttp } from './checkout-frame.ts'
import { speaksJson } from './message.ts'
import { promotionTexts, type PromotionTexts } from './promotion-texts.ts'

/** What the page says about a discount; null without one. */
export function discountWords(due: DiscountedAmount, currency: string, locale: Locale): string | null {
  if (due.promotionCode === null) return null
  const money = (amount: number) => formatMoney(amount, currency, locale)
  const regular = money(due.amount + due.discountAmount)
  return promotionTexts(locale).discount(due.promotionCode, money(due.discountAmount), regular)
}

/** Where the payer may type a code; `refused` is the code that was just refused. Null where no code can be used. */
export async function codeForm(
  ctx: Context,
  http: PageHttp,
  { app, session, takesPromotion }: CheckoutView,
  refused: string | null,
): Promise<{ words: PromotionTexts; path: string; refused: string | null } | null> {
  if (!takesPromotion || !(await hasCodeToType(ctx.db, app.id, appNow(app, ctx.clock.now())))) return null
  const path = checkoutPath(ctx, http, session.token, '/promotion')
  return { words: promotionTexts(pageLocale(http)), path, refused }
}

/** Sends the checkout page with a code that it refuses. */
type SendRefusal = (view: CheckoutView, refused: string) => Promise<void>

/** Takes the code of a form, or of the same call as JSON. */
export async function applyTypedCode(ctx: Context, http: TokenHttp, sendRefusal: SendRefusal): Promise<void> {
  const view = await openView(ctx, http, tokenOf(http))
  const isApplied = await applyPromotion(ctx, view, http.request.body)
  const path = checkoutPath(ctx, http, view.session.token)
  if (isApplied && http.is('urlencoded')) seeOther(http, formRedirect(ctx, http, path))
  else if (isApplied) {
    setPageHeaders(http)
    http.body = { success: true, data: { redirect_url: path } }
  } else if (speaksJson(http)) throw refusal()
  else await sendRefusal(view, String((http.request.body as { promotion_code?: unknown }).promotion_code))
}

function refusal(): AppError {
  return new AppError('promotion_not_valid', 'promotion_code: cannot be used for this payment', {
    field: 'promotion_code',
  })
}
