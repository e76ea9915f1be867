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
export type Sold = readonly [code: (typeof PLANS)[number]['code'], price: 'Monthly' | 'Yearly' | 'Lifetime']

/** What happens to an end user on a day. */
export type Act = { readonly day: number } & (
  | {
      readonly does: 'pay'
      readonly sold: Sold
      /** Only this much of it, in the smallest unit. */ readonly part?: number
    }
  | { readonly does: 'try' | 'switch'; readonly sold: Sold }
  | { readonly does: 'buy once'; readonly name: string; readonly amount: number }
  | { readonly does: 'get all back'; readonly note: string }
)

export interface Story {
  readonly externalRef: string
  readonly name: string
  readonly locale: 'en' | 'vi'
  readonly acts: readonly Act[]
}

const BASIC: Sold = ['basic', 'Monthly']
const PREMIUM: Sold = ['premium', 'Monthly']

/** A payment every 30 days, always before the month that was paid ends. */
function monthly(sold: Sold, from: number, to: number): Act[] {
  return Array.from({ length: Math.floor((to - from) / 30) + 1 }, (_, month) => pay(from + month * 30, sold))
}

function pay(day: number, sold: Sold): Act {
  return { day, does: 'pay', sold }
}

function story(externalRef: string, name: string, locale: Story['locale'], ...acts: readonly Act[]): Story {
  return { externalRef, name, locale, acts }
}

/** Each end user's reference describes the story. */
export const STORIES: readonly Story[] = [
  story('loyal-monthly', 'Nguyễn Văn An', 'vi', ...monthly(PREMIUM, 0, 364)),
  story('loyal-basic', 'Trần Thị Bình', 'vi', ...monthly(BASIC, 4, 364)),
  story('yearly', 'Lê Minh Châu', 'vi', pay(20, ['premium', 'Yearly'])),
  story('yearly-renewed', 'Emma Fischer', 'en', pay(2, ['basic', 'Yearly']), pay(361, ['basic', 'Yearly'])),
  story('lifetime', 'Phạm Quốc Dũng', 'vi', pay(75, ['premium', 'Lifetime'])),
  story('trial-converted', 'Liam Murphy', 'en', { day: 100, does: 'try', sold: BASIC }, ...monthly(BASIC, 106, 364)),
  story('trial-lapsed', 'Hoàng Mai', 'vi', { day: 200, does: 'try', sold: BASIC }),
  story('trial-running', 'Sofia Rossi', 'en', { day: 361, does: 'try', sold: BASIC }),
  story('lapsed', 'Vũ Thanh Hà', 'vi', ...monthly(BASIC, 60, 300)),
  story('lapsed-and-returned', 'Noah Becker', 'en', ...monthly(PREMIUM, 10, 70), ...monthly(PREMIUM, 220, 364)),
  story(
    'switched-plan',
    'Đặng Thu Giang',
    'vi',
    ...monthly(BASIC, 15, 165),
    { day: 180, does: 'switch', sold: PREMIUM },
    ...monthly(PREMIUM, 195, 364),
  ),
  story('refunded', 'Olivia Martin', 'en', pay(130, ['premium', 'Yearly']), {
    day: 133,
    does: 'get all back',
    note: 'bought by mistake, asked within three days',
  }),
  story('flagged-underpaid', 'Bùi Đức Khang', 'vi', { day: 363, does: 'pay', sold: PREMIUM, part: 90_000 }),
  story('one-time', 'Lucas Silva', 'en', { day: 280, does: 'buy once', name: 'E-book', amount: 149_000 }),
  story('team', 'Mia Johansson', 'en', ...monthly(['team', 'Monthly'], 210, 364)),
]
