import { dayWords, isoDay } from '#renewals/words.ts'
import type { PaymentEffect } from '#subscriptions/lifecycle.ts'
import type { Reader } from '#apps/page-settings.ts'
import type { AppTime } from '#shared/time.ts'

export interface PageDay {
  readonly iso: string
  readonly text: string
}

/** `iso` is the same day, `2026-03-31`. */
export function dayOf(instant: AppTime, reader: Reader): PageDay {
  return { iso: isoDay(instant, reader.timeZone), text: dayWords(instant, reader) }
}

/** What the payment will do, told before it is made: the exact new end, and where it extends from. Null where it can do nothing. */
export function effectOf(
  effect: PaymentEffect | null,
  reader: Reader,
): { until: PageDay | null; from: PageDay | null; starts_today: boolean } | null {
  if (!effect || effect.kind === 'refused') return null
  const { start, end } = effect.period
  return {
    until: end && dayOf(end, reader),
    from: effect.kind === 'extended' ? dayOf(start, reader) : null,
    starts_today: effect.kind === 'restarted',
  }
}
