import { dayWords, isoDay } from '#words/dates.ts'
import { intervalWords } from '#words/plans.ts'
import type { PaymentEffect } from '#subscriptions/lifecycle.ts'
import type { Reader } from '#apps/page-settings.ts'
import type { Interval } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'
import { pageTexts } from './texts.ts'

export interface PageDay {
  readonly iso: string
  readonly text: string
}

/** The day of an instant, as text and as `2026-03-31`. */
export function dayOf(instant: AppTime, reader: Reader): PageDay {
  return { iso: isoDay(instant, reader.timeZone), text: dayWords(instant, reader) }
}

/**
 * What a page says about a payment before it is made: `until` is the new end (null for lifetime access), `how` says how it comes about.
 * Null if the payment would not be applied.
 */
export function effectOf(
  effect: PaymentEffect | null,
  interval: Interval | null,
  reader: Reader,
): { until: PageDay | null; how: string | null } | null {
  if (!effect || effect.kind === 'refused') return null
  const { end } = effect.period
  if (!end) return { until: null, how: null }
  const words = pageTexts(reader.locale).checkout
  const explanations = {
    extended: interval && words.adds(intervalWords(interval, reader.locale)),
    restarted: words.startsToday,
    started: null,
  }
  return { until: dayOf(end, reader), how: explanations[effect.kind] }
}
