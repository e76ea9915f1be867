import type { MailLocale } from '#mail/render.ts'
import type { Interval, IntervalUnit } from '#shared/interval.ts'
import type { AppTime } from '#shared/time.ts'

// Made once: making one takes longer than making the rest of a mail. British English writes the day first and the month in letters,
// which nobody reads wrongly.
const DAY: Record<MailLocale, Intl.DateTimeFormat> = {
  en: new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeZone: 'UTC' }),
  vi: new Intl.DateTimeFormat('vi-VN', { dateStyle: 'long', timeZone: 'UTC' }),
}
const TIME = new Intl.DateTimeFormat('en-GB', { timeStyle: 'short', timeZone: 'UTC' })

const UNIT_WORDS: Record<MailLocale, Record<IntervalUnit, readonly [one: string, many: string]>> = {
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
export function intervalWords({ unit, count }: Interval, locale: MailLocale): string {
  const [one, many] = UNIT_WORDS[locale][unit]
  return unit === 'lifetime' ? one : `${count} ${count === 1 ? one : many}`
}

/** What a plan is called within a sentence: Vietnamese puts `Gói` in front of a name that does not begin with it. */
export function planTitle(name: string, locale: MailLocale): string {
  return locale === 'vi' && !/^gói\s/iu.test(name.normalize('NFC')) ? `Gói ${name}` : name
}

/** `31 March 2026`, `31 tháng 3, 2026`; the day is UTC's. */
export function dayWords(instant: AppTime, locale: MailLocale): string {
  return DAY[locale].format(instant)
}

/** `31 March 2026, 10:05 UTC`. */
export function momentWords(instant: AppTime, locale: MailLocale): string {
  return `${dayWords(instant, locale)}, ${TIME.format(instant)} UTC`
}
