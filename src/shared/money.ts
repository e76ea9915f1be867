import { BoundedMap } from './bounded-map.ts'
import type { Locale } from './locale.ts'

/** Amounts are integers in the currency's smallest unit everywhere; sums of them are bigints. Only this file knows how many decimals a currency has. */

const ZERO_DECIMAL = new Set([
  'BIF',
  'CLP',
  'DJF',
  'GNF',
  'ISK',
  'JPY',
  'KMF',
  'KRW',
  'MGA',
  'PYG',
  'RWF',
  'UGX',
  'VND',
  'VUV',
  'XAF',
  'XOF',
  'XPF',
])
const THREE_DECIMAL = new Set(['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'])

/** Number of decimals of the currency's usual notation: VND 0, USD 2, KWD 3 (ISO 4217). */
export function currencyDecimals(currency: string): 0 | 2 | 3 {
  if (ZERO_DECIMAL.has(currency)) return 0
  return THREE_DECIMAL.has(currency) ? 3 : 2
}

/** An amount as people write it in the language: `99.000 ₫` for 99000 VND in Vietnamese. */
export function formatMoney(amount: number | bigint, currency: string, locale: Locale): string {
  // A decimal string: a division would round large amounts.
  return formatFor(currency, locale).format(decimalString(amount, currencyDecimals(currency)) as unknown as number)
}

// Kept, since creating a formatter takes longer than formatting a thousand amounts.
const MAX_FORMATS = 100
const formats = new BoundedMap<string, Intl.NumberFormat>(MAX_FORMATS)

function formatFor(currency: string, locale: Locale): Intl.NumberFormat {
  return formats.getOrCreate(`${locale} ${currency}`, () => {
    const decimals = currencyDecimals(currency)
    return new Intl.NumberFormat(locale === 'vi' ? 'vi-VN' : 'en-US', {
      style: 'currency',
      currency,
      minimumFractionDigits: decimals,
      maximumFractionDigits: decimals,
    })
  })
}

/** `$10.50`, `₫99,000`: in the tables, timelines and messages that operators and developers read. */
export function englishMoney(amount: number | bigint, currency: string): string {
  return formatMoney(amount, currency, 'en')
}

/** `12345` with two decimals is `123.45`. */
export function decimalString(amount: number | bigint, decimals: number): string {
  if (decimals === 0) return String(amount)
  const sign = amount < 0 ? '-' : ''
  const digits = String(amount)
    .slice(sign.length)
    .padStart(decimals + 1, '0')
  return `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

/** `5000000:VND,200:USD`, in main units, as smallest units by currency; null where it is not of this form, or names a currency twice. */
export function parseAmounts(list: string): ReadonlyMap<string, number> | null {
  const amounts = new Map<string, number>()
  for (const entry of list.split(',').filter((each) => each.trim() !== '')) {
    const [, whole = '', decimals = '', currency = ''] =
      /^(\d{1,12})(?:\.(\d{1,3}))?:([A-Z]{3})$/.exec(entry.trim()) ?? []
    const places = currencyDecimals(currency)
    if (whole === '' || decimals.length > places || amounts.has(currency)) return null
    amounts.set(currency, Number(whole + decimals.padEnd(places, '0')))
  }
  return amounts
}
