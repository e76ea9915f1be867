import { AppError } from '#shared/errors.ts'
import { providerSessions } from '#providers/store.ts'
import { getSubscription } from '#subscriptions/store.ts'
import { LIFETIME, MONTHLY, PAID_TRIAL } from '../support/factories.ts'
import { changeApp, disableMethod, enableMethod } from '../support/operators.ts'
import type { Story } from '../support/story.ts'
import { startBankStory, transfer } from './bank-story.ts'

/** Does everything that leads to a page, and returns its address. */
export type Scene = (story: Story, prices: readonly string[]) => Promise<string>

/** Everything that a seller may set of its pages' and mails' looks. */
export const BRAND = {
  logo: Buffer.from(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 30 20"><path d="M2 2h12v16H2zM16 2h12v16H16z" fill="#0b6b3a"/></svg>',
  ),
  accent: '#0b6b3a',
  support: 'help@shop.example',
  terms_url: 'https://shop.example/terms',
  privacy_url: 'https://shop.example/privacy',
  statement_name: 'SACH NOI HAY',
}

export const SCENES: Readonly<Record<string, Scene>> = {
  'a checkout with every method': async (story, [monthly]) =>
    (await story.checkout({ price_id: monthly, skip_trial: true })).checkout_url,
  'a paid trial with one method': async (story, [monthly]) =>
    (await story.checkout({ price_id: monthly, payment_method: 'test' })).checkout_url,
  'a checkout of what is owned already': async (story, [, lifetime]) => {
    const [first, second] = [await story.checkout({ price_id: lifetime }), await story.checkout({ price_id: lifetime })]
    await story.pay(first)
    return second.checkout_url
  },
  'a bank transfer': async (story, [monthly]) =>
    `${(await story.checkout({ price_id: monthly, skip_trial: true })).checkout_url}/bank`,
  'a bank transfer paid in part': async (story, [monthly]) => {
    const { checkout_url, transaction_id } = await story.checkout({ price_id: monthly, skip_trial: true })
    await story.service.call('GET', `${checkout_url}/bank`)
    await transfer(story, transaction_id, 60_000)
    return `${checkout_url}/bank`
  },
  'a checkout paid in part': async (story, [monthly]) => {
    const { checkout_url, transaction_id } = await story.checkout({ price_id: monthly, skip_trial: true })
    await transfer(story, transaction_id, 60_000)
    return checkout_url
  },
  'a checkout whose debit is under way': async (story, [monthly]) => {
    const { checkout_url, transaction_id } = await story.checkout({ price_id: monthly, skip_trial: true })
    const { db, clock } = story.service.ctx
    await db.insert(providerSessions, {
      appId: story.app.app.id,
      transactionId: transaction_id,
      provider: 'stripe',
      providerAccountId: 1,
      reference: 'cs_under_way',
      url: null,
      amount: 99_000,
      currency: 'VND',
      status: 'processing',
      expiresAt: clock.now(),
      lookups: 0,
      failures: 0,
      nextLookupAt: null,
      createdAt: clock.now(),
      updatedAt: clock.now(),
    })
    return checkout_url
  },
  'an expired link': async (story, [monthly]) => {
    const { checkout_url } = await story.checkout({ price_id: monthly, skip_trial: true })
    story.at('2026-03-01 11:00:00')
    return checkout_url
  },
  'a link that the subscription has changed under': async (story, [monthly]) => {
    const trial = { price_id: monthly, external_ref: 'user-9' }
    const [first, second] = [await story.checkout(trial), await story.checkout(trial)]
    await story.service.call('GET', `${second.checkout_url}/bank`)
    await story.pay(first)
    return second.checkout_url
  },
  'an unknown link': (story) => Promise.resolve(`${story.service.url}/checkout/unknown`),
  'a checkout under the seller’s name': async (story, [monthly]) => {
    await changeApp(story.service.ctx, 'tester', story.app.app, BRAND)
    await story.service.ctx.db.query('UPDATE plans SET description = ?', ['Mọi cuốn sách nói.\nTrên mọi thiết bị.'])
    return (await story.checkout({ price_id: monthly, skip_trial: true })).checkout_url
  },
  'an expired link, paid in part': async (story, [monthly]) => {
    const { checkout_url, transaction_id } = await story.checkout({ price_id: monthly, skip_trial: true })
    await story.service.call('GET', `${checkout_url}/bank`)
    await transfer(story, transaction_id, 60_000)
    story.at('2026-03-01 11:00:00')
    return checkout_url
  },
  'a bank transfer that has arrived': async (story, [monthly]) => {
    const { checkout_url, transaction_id } = await story.checkout({ price_id: monthly, skip_trial: true })
    await story.service.call('GET', `${checkout_url}/bank`)
    await transfer(story, transaction_id, 99_000)
    return `${checkout_url}/paid`
  },
  'a renewal before the end': (story, prices) => renewalOf(story, prices),
  'a renewal after the end': async (story, prices) => {
    const url = await renewalOf(story, prices)
    story.at('2026-04-03 10:00:00')
    return url
  },
  'a renewal whose payment is still open': async (story, prices) => {
    const url = await renewalOf(story, prices)
    await post(story, url, 'bank_transfer')
    return url
  },
  'a renewal that was just paid': async (story, prices) => {
    const url = await renewalOf(story, prices)
    await post(story, url, 'test')
    return url
  },
  'asking to stop reminders': async (story, prices) => `${await renewalOf(story, prices)}/opt-out`,
  'a renewal of what is owned for life': async (story, prices) => {
    const url = await renewalOf(story, prices)
    await story.pay(await story.checkout({ price_id: prices[1] }))
    return url
  },
  'a renewal at a seller that is disabled': async (story, prices) => {
    const url = await renewalOf(story, prices)
    await story.service.ctx.db.query('UPDATE apps SET disabled_at = updated_at')
    return url
  },
  'a checkout without a method': async (story, [monthly]) => {
    const { checkout_url } = await story.checkout({ price_id: monthly })
    for (const method of ['card', 'payos', 'bank_transfer', 'test'] as const)
      await disableMethod(story.service.ctx, 'tester', story.app.app, method)
    return checkout_url
  },
  'a one-time purchase of a long description': async (story) => {
    const { prices } = await story.plan('book', { ...LIFETIME, amount: 50_000 })
    await story.service.ctx.db.query('UPDATE plans SET description = ?', [
      'Mọi cuốn sách nói trên mọi thiết bị. '.repeat(9),
    ])
    return (await story.checkout({ price_id: prices[0] })).checkout_url
  },
  'a purchase in dollars': async (story) => {
    const purchase = { mode: 'payment', plan_ref: 'book', plan_name: 'The Complete Audiobook', amount: 129_999 }
    return (await story.checkout({ ...purchase, currency: 'USD' })).checkout_url
  },
  'a purchase in yen': async (story) => {
    const purchase = { mode: 'payment', plan_ref: 'book', plan_name: 'The Complete Audiobook', amount: 12_000 }
    return (await story.checkout({ ...purchase, currency: 'JPY' })).checkout_url
  },
  'money that could not be applied': async (story, [monthly]) => {
    const late = await story.checkout({ price_id: monthly, skip_trial: true })
    await story.service.call('GET', `${late.checkout_url}/bank`)
    story.at('2026-03-01 10:05:00')
    const gold = await story.plan('gold', { ...MONTHLY, amount: 50_000 })
    await story.pay(await story.checkout({ price_id: gold.prices[0] }))
    await transfer(story, late.transaction_id, 99_000)
    return `${late.checkout_url}/paid`
  },
  'long names, a checkout': async (story, [monthly]) => {
    await giveLongNames(story)
    return (await story.checkout({ price_id: monthly, skip_trial: true })).checkout_url
  },
  'long names, a bank transfer': async (story, [monthly]) => {
    await giveLongNames(story)
    return `${(await story.checkout({ price_id: monthly, skip_trial: true })).checkout_url}/bank`
  },
  'long names, a bank transfer that has arrived': async (story, [monthly]) => {
    await giveLongNames(story)
    const { checkout_url, transaction_id } = await story.checkout({ price_id: monthly, skip_trial: true })
    await story.service.call('GET', `${checkout_url}/bank`)
    await transfer(story, transaction_id, 99_000)
    return `${checkout_url}/paid`
  },
  'long names, asking to stop reminders': async (story, prices) => {
    await giveLongNames(story)
    return `${await renewalOf(story, prices)}/opt-out`
  },
  'a service that is too busy': (story, prices) =>
    brokenBy(story, prices, new AppError('rate_limited', 'too many requests at once')),
  'a service that fails': (story, prices) => brokenBy(story, prices, new Error('made for a picture')),
}

/** Names as companies register them, and a plan that says all that it is. */
export const LONG_NAMES = {
  app: 'Công ty Trách nhiệm hữu hạn Một thành viên Xuất bản và Phát hành Sách nói Việt Nam',
  plan: 'Gói Cao cấp dành cho gia đình đông người, nghe không giới hạn trên mọi thiết bị',
}

async function giveLongNames({ service: { ctx }, app }: Story): Promise<void> {
  await changeApp(ctx, 'tester', app.app, { name: LONG_NAMES.app })
  await ctx.db.query('UPDATE plans SET name = ?', [LONG_NAMES.plan])
}

/** A page of a service in which whatever looks at a checkout meets the error. */
async function brokenBy(story: Story, [monthly]: readonly string[], error: Error): Promise<string> {
  const { checkout_url } = await story.checkout({ price_id: monthly })
  Object.assign(story.service.ctx.clock, {
    now: () => {
      throw error
    },
  })
  return checkout_url
}

/** The renewal page of a subscription that ends on 1 April, two days before that. */
async function renewalOf(story: Story, [monthly]: readonly string[]): Promise<string> {
  await story.pay(await story.checkout({ price_id: monthly, skip_trial: true }))
  const { renewalToken } = await getSubscription(story.service.ctx.db, story.app.app.id, 'user-1')
  story.at('2026-03-30 10:00:00')
  return `${story.service.url}/renew/${renewalToken}`
}

async function post(story: Story, url: string, method: string): Promise<void> {
  const raw = JSON.stringify({ payment_method: method })
  await story.service.call('POST', url, { headers: { 'Content-Type': 'application/json' }, raw })
}

/** Runs with an app of every method, and the prices of its plan: a month with a paid trial, and lifetime. */
export async function withShop(
  name: string,
  look: (story: Story, prices: readonly string[]) => Promise<void>,
): Promise<void> {
  const story = await startBankStory({ name })
  const credentials = { secretKey: 'sk_test_1', webhookSecret: 'whsec_1' }
  await enableMethod(story.service.ctx, 'tester', story.app.app, 'card', credentials)
  const plan = await story.plan('premium', { ...MONTHLY, name: 'Hằng tháng', trial: PAID_TRIAL }, LIFETIME)
  try {
    await look(story, plan.prices)
  } finally {
    await story.service.stop()
  }
}
