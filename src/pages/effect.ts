import { dayWords } from '#renewals/words.ts'
import type { PaymentEffect } from '#subscriptions/lifecycle.ts'
import type { PageLocale } from '#http/html.ts'
import type { AppTime } from '#shared/time.ts'

export interface PageDay {
  readonly iso: string
  readonly text: string
}

export function dayOf(instant: AppTime, locale: PageLocale): PageDay {
  return { iso: instant.toISOString().slice(0, 10), text: dayWords(instant, locale) }
}

/** What the payment will do, told before it is made: the exact new end, and where it extends from. Null where it can do nothing. */
export function effectOf(
  effect: PaymentEffect | null,
  locale: PageLocale,
): { until: PageDay | null; from: PageDay | null; starts_today: boolean } | null {
  if (!effect || effect.kind === 'refused') return null
  const { start, end } = effect.period
  return {
    until: end && dayOf(end, locale),
    from: effect.kind === 'extended' ? dayOf(start, locale) : null,
    starts_today: effect.kind === 'restarted',
  }
}
