import type { Locale } from '#shared/locale.ts'

/** The length of the demo's history in days: the first is day 0, the last is today. */
export const DAYS = 365

/** What the demo sells. Its prices are named by `code.price`. */
export const PLANS = [
  {
    code: 'basic',
    name: 'Basic',
    prices: [
      {
        name: 'Monthly',
        amount: 59_000,
        currency: 'VND',
        interval_unit: 'month',
        interval_count: 1,
        trial: { amount: 0, interval_unit: 'day', interval_count: 7 },
      },
      { name: 'Yearly', amount: 590_000, currency: 'VND', interval_unit: 'year', interval_count: 1 },
    ],
  },
  {
    code: 'premium',
    name: 'Premium',
    prices: [
      { name: 'Monthly', amount: 99_000, currency: 'VND', interval_unit: 'month', interval_count: 1 },
      { name: 'Yearly', amount: 990_000, currency: 'VND', interval_unit: 'year', interval_count: 1 },
      { name: 'Lifetime', amount: 2_900_000, currency: 'VND', interval_unit: 'lifetime' },
    ],
  },
  {
    code: 'team',
    name: 'Team',
    prices: [{ name: 'Monthly', amount: 2_900, currency: 'USD', interval_unit: 'month', interval_count: 1 }],
  },
] as const

/** A plan's code and one of its prices. */
export type PriceName = readonly [code: (typeof PLANS)[number]['code'], price: 'Monthly' | 'Yearly' | 'Lifetime']

/** What happens to an end user on a day. */
export type Step = { readonly day: number } & (
  | {
      readonly action: 'pay'
      readonly price: PriceName
      /** Only this much of it, in the smallest unit. */
      readonly part?: number
    }
  | { readonly action: 'start trial' | 'switch plan'; readonly price: PriceName }
  | { readonly action: 'buy once'; readonly name: string; readonly amount: number }
  | { readonly action: 'refund'; readonly note: string }
)

export interface Scenario {
  readonly externalRef: string
  readonly name: string
  readonly locale: Locale
  readonly steps: readonly Step[]
}

const BASIC: PriceName = ['basic', 'Monthly']
const PREMIUM: PriceName = ['premium', 'Monthly']

/** Days by which payers are early: two months with February have only 59 days. */
const EARLY = 3

/** A payment on the first day, and then one every 30 days, always before the paid month ends. */
function monthly(price: PriceName, from: number, to: number): Step[] {
  return Array.from({ length: Math.floor((to - from) / 30) + 1 }, (_, month) =>
    pay(month === 0 ? from : from + month * 30 - EARLY, price),
  )
}

function pay(day: number, price: PriceName): Step {
  return { day, action: 'pay', price }
}

function scenario(externalRef: string, name: string, locale: Locale, ...steps: readonly Step[]): Scenario {
  return { externalRef, name, locale, steps }
}

/** Each end user's reference names its scenario. */
export const SCENARIOS: readonly Scenario[] = [
  scenario('loyal-monthly', 'Nguyễn Văn An', 'vi', ...monthly(PREMIUM, 0, 364)),
  scenario('loyal-basic', 'Trần Thị Bình', 'vi', ...monthly(BASIC, 4, 364)),
  scenario('yearly', 'Lê Minh Châu', 'vi', pay(20, ['premium', 'Yearly'])),
  scenario('yearly-renewed', 'Emma Fischer', 'en', pay(2, ['basic', 'Yearly']), pay(361, ['basic', 'Yearly'])),
  scenario('lifetime', 'Phạm Quốc Dũng', 'vi', pay(75, ['premium', 'Lifetime'])),
  scenario(
    'trial-converted',
    'Liam Murphy',
    'en',
    { day: 100, action: 'start trial', price: BASIC },
    ...monthly(BASIC, 106, 364),
  ),
  scenario('trial-lapsed', 'Hoàng Mai', 'vi', { day: 200, action: 'start trial', price: BASIC }),
  scenario('trial-running', 'Sofia Rossi', 'en', { day: 361, action: 'start trial', price: BASIC }),
  scenario('lapsed', 'Vũ Thanh Hà', 'vi', ...monthly(BASIC, 60, 300)),
  scenario('lapsed-and-returned', 'Noah Becker', 'en', ...monthly(PREMIUM, 10, 70), ...monthly(PREMIUM, 220, 364)),
  scenario(
    'switched-plan',
    'Đặng Thu Giang',
    'vi',
    ...monthly(BASIC, 15, 165),
    { day: 180, action: 'switch plan', price: PREMIUM },
    ...monthly(PREMIUM, 195, 364),
  ),
  scenario('refunded', 'Olivia Martin', 'en', pay(130, ['premium', 'Yearly']), {
    day: 133,
    action: 'refund',
    note: 'bought by mistake, asked within three days',
  }),
  scenario('flagged-underpaid', 'Bùi Đức Khang', 'vi', { day: 363, action: 'pay', price: PREMIUM, part: 90_000 }),
  scenario('one-time', 'Lucas Silva', 'en', { day: 280, action: 'buy once', name: 'E-book', amount: 149_000 }),
  scenario('team', 'Mia Johansson', 'en', ...monthly(['team', 'Monthly'], 210, 364)),
]
