import { currencyDecimals } from '#shared/money.ts'

/** Stripe's zero-decimal currencies (docs.stripe.com/currencies). For ISK and UGX Stripe uses two decimals. */
const WITHOUT_DECIMALS = new Set([
  'BIF',
  'CLP',
  'DJF',
  'GNF',
  'JPY',
  'KMF',
  'KRW',
  'MGA',
  'PYG',
  'RWF',
  'VND',
  'VUV',
  'XAF',
  'XOF',
  'XPF',
])
const WITH_THREE_DECIMALS = new Set(['BHD', 'JOD', 'KWD', 'OMR', 'TND'])

/** Stripe's minimum charges, in its own units. For other currencies the minimum depends on the seller's bank account. */
const MINIMUM: Readonly<Record<string, number>> = {
  AED: 200,
  AUD: 50,
  BGN: 100,
  BRL: 50,
  CAD: 50,
  CHF: 50,
  CZK: 1500,
  DKK: 250,
  EUR: 50,
  GBP: 30,
  HKD: 400,
  HUF: 17_500,
  INR: 50,
  JPY: 50,
  MXN: 1000,
  MYR: 200,
  NOK: 300,
  NZD: 50,
  PLN: 200,
  RON: 200,
  SEK: 300,
  SGD: 50,
  THB: 1000,
  USD: 50,
}

/** The most digits of a charge, in Stripe's units, and the currencies that may have more. */
const MAX_DIGITS = 8
const MORE_DIGITS: Readonly<Record<string, number>> = { IDR: 12, INR: 9, COP: 10, HUF: 10, JPY: 10 }

/** Our amount (smallest unit of the currency) in Stripe's units; null if it is not a safe integer there. */
export function toStripeAmount(amount: number, currency: string): number | null {
  const shift = stripeDecimals(currency) - currencyDecimals(currency)
  const converted = shift >= 0 ? amount * 10 ** shift : amount / 10 ** -shift
  return Number.isSafeInteger(converted) ? converted : null
}

/** The inverse of `toStripeAmount`; null for an amount that our smallest unit cannot express. */
export function fromStripeAmount(stripeAmount: number, currency: string): number | null {
  const shift = stripeDecimals(currency) - currencyDecimals(currency)
  const converted = shift >= 0 ? stripeAmount / 10 ** shift : stripeAmount * 10 ** -shift
  return Number.isSafeInteger(converted) ? converted : null
}

/** Whether Stripe takes the amount: enough, not too many digits, and for three-decimal currencies a last digit of 0 (R63). */
export function isChargeable(amount: number, currency: string): boolean {
  const stripeAmount = toStripeAmount(amount, currency)
  if (stripeAmount === null || stripeAmount < (MINIMUM[currency] ?? 1)) return false
  if (stripeAmount >= 10 ** (MORE_DIGITS[currency] ?? MAX_DIGITS)) return false
  return currencyDecimals(currency) !== 3 || (WITH_THREE_DECIMALS.has(currency) && stripeAmount % 10 === 0)
}

function stripeDecimals(currency: string): 0 | 2 | 3 {
  if (WITHOUT_DECIMALS.has(currency)) return 0
  return WITH_THREE_DECIMALS.has(currency) ? 3 : 2
}
