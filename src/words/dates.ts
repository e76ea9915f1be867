import type { Reader } from '#apps/page-settings.ts'
import { BoundedMap } from '#shared/bounded-map.ts'
import type { Locale } from '#shared/locale.ts'
import type { AppTime } from '#shared/time.ts'

// `31 March 2026` cannot be misread, unlike an English date in digits; Vietnamese writes 31/3/2026.
const DAY: Record<Locale, Intl.DateTimeFormatOptions> = {
  en: { dateStyle: 'long' },
  vi: { day: 'numeric', month: 'numeric', year: 'numeric' },
}
const MOMENT: Intl.DateTimeFormatOptions = {
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
  timeZoneName: 'short',
}
const TAGS: Record<Locale, string> = { en: 'en-GB', vi: 'vi-VN' }

// Kept, since creating a format takes longer than the rest of a mail.
type Formats = Readonly<Record<'day' | 'iso' | 'moment', Intl.DateTimeFormat>>
const MAX_FORMATS = 100
const formats = new BoundedMap<string, Formats>(MAX_FORMATS)

function formatsFor({ locale, timeZone }: Reader): Formats {
  return formats.getOrCreate(`${locale} ${timeZone}`, () => ({
    day: new Intl.DateTimeFormat(TAGS[locale], { ...DAY[locale], timeZone }),
    // Swedish dates are ISO 8601.
    iso: new Intl.DateTimeFormat('sv-SE', { timeZone }),
    // `17:05 GMT+7`, which `momentWords` orders for each language.
    moment: new Intl.DateTimeFormat('en-GB', { ...MOMENT, timeZone }),
  }))
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
  const timeAndZone = formatsFor(reader).moment.format(instant)
  const day = dayWords(instant, reader)
  if (reader.locale === 'en') return `${day}, ${timeAndZone}`
  const [time, zone] = timeAndZone.split(' ')
  return `${time} ngày ${day} (${zone})`
}
