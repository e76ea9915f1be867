import type { Reader } from '#apps/page-settings.ts'
import type { MailLocale } from '#mail/render.ts'
import type { DiscountedAmount } from '#promotions/discount.ts'
import type { Interval, IntervalUnit } from '#shared/interval.ts'
import { formatMoney } from '#shared/money.ts'
import type { AppTime } from '#shared/time.ts'

// `31 March 2026` cannot be misread, unlike an English date in digits; Vietnamese writes 31/3/2026.
const DAY: Record<MailLocale, Intl.DateTimeFormatOptions> = {
  en: { dateStyle: 'long' },
  vi: { day: 'numeric', month: 'numeric', year: 'numeric' },
}
const MOMENT: Intl.DateTimeFormatOptions = {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
}
const TAGS: Record<MailLocale, string> = { en: 'en-GB', vi: 'vi-VN' }

// Cached: creating a format takes longer than the rest of a mail. The number of zones bounds the cache.
type Formats = Readonly<Record<'day' | 'iso' | 'moment', Intl.DateTimeFormat>>
const formats = new Map<string, Formats>()

function formatsFor({ locale, timeZone }: Reader): Formats {
  const name = `${locale} ${timeZone}`
  const known = formats.get(name)
  if (known) return known
  const made = {
    day: new Intl.DateTimeFormat(TAGS[locale], { ...DAY[locale], timeZone }),
    // Swedish dates are ISO 8601.
    iso: new Intl.DateTimeFormat('sv-SE', { timeZone }),
    // Only its parts are used; `momentWords` orders them for each language.
    moment: new Intl.DateTimeFormat('en-GB', { ...MOMENT, timeZone }),
  }
  formats.set(name, made)
  return made
}

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

const OFF: Record<MailLocale, (off: string, code: string) => string> = {
  en: (off, code) => `${off} off with the code ${code}`,
  vi: (off, code) => `đã giảm ${off} nhờ mã ${code}`,
}

/** `₫79,200 (₫19,800 off with the code TET)`; without a promotion the amount alone. */
export function discountedWords(due: DiscountedAmount, currency: string, locale: MailLocale): string {
  const amount = formatMoney(due.amount, currency, locale)
  if (due.promotionCode === null) return amount
  return `${amount} (${OFF[locale](formatMoney(due.discountAmount, currency, locale), due.promotionCode)})`
}

/** `₫19,800 (TET)`: what a promotion took off a payment; empty without one. */
export function discountFact(due: DiscountedAmount & { readonly currency: string }, locale: MailLocale): string {
  if (due.promotionCode === null) return ''
  return `${formatMoney(due.discountAmount, due.currency, locale)} (${due.promotionCode})`
}

/** `3 months`, `1 tuần`, `lifetime`. */
export function intervalWords({ unit, count }: Interval, locale: MailLocale): string {
  const [one, many] = UNIT_WORDS[locale][unit]
  return unit === 'lifetime' ? one : `${count} ${count === 1 ? one : many}`
}

/** The plan's name within a sentence. Vietnamese puts `Gói` in front, unless the name begins with it. */
export function planTitle(name: string, locale: MailLocale): string {
  return locale === 'vi' && !/^gói\s/iu.test(name.normalize('NFC')) ? `Gói ${name}` : name
}

/** What a payment was for, within a sentence: `gói Premium`, or `Gói Gia đình` if the plan is called so. */
export function paidForWords(title: string, isPlan: boolean, locale: MailLocale): string {
  if (!isPlan) return title
  const words = planTitle(title, locale)
  return words === title ? title : words.charAt(0).toLowerCase() + words.slice(1)
}

/** `2026-03-31`: the day in a zone, as machines read it. */
export function isoDay(instant: AppTime, timeZone: string): string {
  return formatsFor({ locale: 'en', timeZone }).iso.format(instant)
}

/** `31 March 2026`, `31/3/2026`: the day in the reader's zone. */
export function dayWords(instant: AppTime, reader: Reader): string {
  return formatsFor(reader).day.format(instant)
}

/** `31 March 2026, 17:05 GMT+7`, `17:05 ngày 31/3/2026 (GMT+7)`. */
export function momentWords(instant: AppTime, reader: Reader): string {
  const parts = formatsFor(reader).moment.formatToParts(instant)
  const [hour, minute, zone] = ['hour', 'minute', 'timeZoneName'].map(
    (type) => parts.find((part) => part.type === type)?.value ?? '',
  )
  const time = `${hour}:${minute}`
  const day = dayWords(instant, reader)
  return reader.locale === 'vi' ? `${time} ngày ${day} (${zone})` : `${day}, ${time} ${zone}`
}
