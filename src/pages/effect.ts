import { dayWords, isoDay } from '#mails/words.ts'
import type { PaymentEffect } from '#subscriptions/lifecycle.ts'
import type { Reader } from '#apps/page-settings.ts'
import type { AppTime } from '#shared/time.ts'

export interface PageDay {
  readonly iso: string
  readonly text: string
}

/** The day of an instant, as text and as `2026-03-31`. */
export function dayOf(instant: AppTime, reader: Reader): PageDay {
  return { iso: isoDay(instant, reader.timeZone), text: dayWords(instant, reader) }
}

/** What a page says about a payment before it is made: the exact new end, and where it extends from. Null if it would not be applied. */
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
