import { currencyDecimals } from '#shared/money.ts'

/** One meaning that a text may have as an amount of money: a number of smallest units, in a currency with this many decimals. */
export interface MeantAmount {
  readonly amount: number
  readonly decimals: number
  /** Null if the text does not say it. */
  readonly currency: string | null
}

/** What people write beside a number, and how many decimals such money has. */
const SYMBOLS: Readonly<Record<string, number>> = { đ: 0, d: 0, '₫': 0, '¥': 0, $: 2, '€': 2, '£': 2 }
const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'))
const MULTIPLES: Readonly<Record<string, number>> = {
  k: 1000,
  nghìn: 1000,
  ngàn: 1000,
  tr: 1_000_000,
  triệu: 1_000_000,
}
const WRITTEN = /^([^\d\s.,'-]*) ?(\d[\d.,' ]*?) ?(k|nghìn|ngàn|triệu|tr)? ?([^\d\s.,'-]*)$/u
const GROUPED = /^\d{1,3}(?:([., '])\d{3})(?:\1\d{3})*$/
const DECIMAL = /^(?:\d+|\d{1,3}(?:[., ']\d{3})+)[.,](\d{1,3})$/
const MAX_DIGITS = 13

/**
 * What an amount may mean as people write it: `99.000` and `99,000` are 99000 of a currency without decimals, `99k` is 99000, `$14.99`
 * is 1499 cents; `10` is 10 dong or 1000 cents. Empty if the text is no amount.
 */
export function amountsIn(text: string): MeantAmount[] {
  const [, before = '', number = '', multiple, after = ''] =
    WRITTEN.exec(text.trim().toLowerCase().normalize('NFC')) ?? []
  const unit = agreed(unitOf(before), unitOf(after))
  if (number === '' || unit === null) return []
  return meanings(number, MULTIPLES[multiple ?? ''] ?? null)
    .filter(({ decimals }) => unit.decimals === null || decimals === unit.decimals)
    .map((meant) => ({ ...meant, currency: unit.currency }))
}

/** Whether a text can only be an amount; a plain number may be an id. */
export function isWrittenAmount(text: string): boolean {
  return !/^\d+$/.test(text.trim()) && amountsIn(text).length > 0
}

/** Whether money of this amount is meant. */
export function isMeant(
  meant: MeantAmount,
  { amount, currency }: { readonly amount: number | null; readonly currency: string | null },
): boolean {
  if (currency === null || meant.amount !== amount) return false
  if (meant.currency !== null && meant.currency !== currency) return false
  return meant.decimals === currencyDecimals(currency)
}

interface Unit {
  readonly decimals: number | null
  /** Null if the text does not say it. */
  readonly currency: string | null
}

/** The unit that the texts before and after the number agree on, as in `$14.99 USD`; null if they contradict each other. */
function agreed(before: Unit | null, after: Unit | null): Unit | null {
  if (before === null || after === null) return null
  if (before.decimals === null) return after
  if (after.decimals === null) return before
  const isSame = before.decimals === after.decimals && (before.currency === null || after.currency === null)
  return isSame ? { ...before, currency: before.currency ?? after.currency } : null
}

function unitOf(written: string): Unit | null {
  if (written === '') return { decimals: null, currency: null }
  const decimals = SYMBOLS[written]
  if (decimals !== undefined) return { decimals, currency: null }
  const currency = written.replace('đ', 'd').toUpperCase()
  return CURRENCIES.has(currency) ? { decimals: currencyDecimals(currency), currency } : null
}

function meanings(number: string, multiple: number | null): Omit<MeantAmount, 'currency'>[] {
  const digits = number.replace(/\D/g, '')
  if (digits.length > MAX_DIGITS) return []
  const fraction = DECIMAL.exec(number)?.[1]?.length ?? 0
  const isWhole = number === digits || GROUPED.test(number)
  if (multiple !== null) {
    // `1,5tr` is one and a half million, `1.500k` as much.
    const places = [...(isWhole ? [0] : []), ...(fraction > 0 ? [fraction] : [])]
    return places.map((count) => (Number(digits) * multiple) / 10 ** count).flatMap(scaled)
  }
  // Three digits behind a point may be a group, too.
  const exact =
    fraction === 0 ? [] : [{ amount: Number(digits) * (fraction === 1 ? 10 : 1), decimals: Math.max(2, fraction) }]
  return [...(isWhole ? scaled(Number(digits)) : []), ...exact]
}

/** A number of main units in currencies with no, two and three decimals. */
function scaled(units: number): Omit<MeantAmount, 'currency'>[] {
  return [0, 2, 3].map((decimals) => ({ amount: units * 10 ** decimals, decimals }))
}
