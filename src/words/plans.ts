import type { Interval, IntervalUnit } from '#shared/interval.ts'
import type { Locale } from '#shared/locale.ts'

const UNIT_WORDS: Record<Locale, Record<IntervalUnit, readonly [one: string, many: string]>> = {
  en: {
    day: ['day', 'days'],
    week: ['week', 'weeks'],
    month: ['month', 'months'],
    year: ['year', 'years'],
    lifetime: ['lifetime', 'lifetime'],
  },
  vi: {
    day: ['ngày', 'ngày'],
    week: ['tuần', 'tuần'],
    month: ['tháng', 'tháng'],
    year: ['năm', 'năm'],
    lifetime: ['trọn đời', 'trọn đời'],
  },
}

/** `3 months`, `1 tuần`, `lifetime`. */
export function intervalWords({ unit, count }: Interval, locale: Locale): string {
  const [one, many] = UNIT_WORDS[locale][unit]
  return unit === 'lifetime' ? one : `${count} ${count === 1 ? one : many}`
}

/** The plan's name within a sentence. Vietnamese puts `Gói` in front, unless the name begins with it. */
export function planTitle(name: string, locale: Locale): string {
  return locale === 'vi' && !/^gói\s/iu.test(name.normalize('NFC')) ? `Gói ${name}` : name
}

/** What a payment was for, within a sentence: `gói Premium`, or `Gói Gia đình` if the plan is called so. */
export function paidForWords(title: string, isPlan: boolean, locale: Locale): string {
  if (!isPlan) return title
  const words = planTitle(title, locale)
  return words === title ? title : words.charAt(0).toLowerCase() + words.slice(1)
}
