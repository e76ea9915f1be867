import { apps } from '#apps/store.ts'
import { AppError } from '#shared/errors.ts'
import { aPromotion, LIFETIME, MONTHLY, PAID_TRIAL } from '../support/factories.ts'
import { changeApp, disableMethod, enableMethod } from '../support/operators.ts'
import type { Scenario } from '../support/scenario.ts'
import type { Envelope, Redirect } from '../support/answers.ts'
import { debitUnderWay, startBankScenario, transfer } from './bank-scenario.ts'

/** Does everything that leads to a page, and returns its address. */
export type Scene = (scenario: Scenario, prices: readonly string[]) => Promise<string>

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

export const SCENES = {
  'a checkout with every method': async (scenario, [monthly]) =>
    (await scenario.checkout({ price_id: monthly, skip_trial: true })).checkout_url,
  'a paid trial with one method': async (scenario, [monthly]) =>
    (await scenario.checkout({ price_id: monthly, payment_method: 'test' })).checkout_url,
  'a checkout of a lifetime subscription': async (scenario, [, lifetime]) => {
    const [first, second] = [
      await scenario.checkout({ price_id: lifetime }),
      await scenario.checkout({ price_id: lifetime }),
    ]
    await scenario.pay(first)
    return second.checkout_url
  },
  'a bank transfer': async (scenario, [monthly]) =>
    `${(await scenario.checkout({ price_id: monthly, skip_trial: true })).checkout_url}/bank`,
  'a bank transfer paid in part': async (scenario, [monthly]) => {
    const { checkout_url, transaction_id } = await scenario.checkout({ price_id: monthly, skip_trial: true })
    await scenario.service.call('GET', `${checkout_url}/bank`)
    await transfer(scenario, transaction_id, 60_000)
    return `${checkout_url}/bank`
  },
  'a checkout paid in part': async (scenario, [monthly]) => {
    const { checkout_url, transaction_id } = await scenario.checkout({ price_id: monthly, skip_trial: true })
    await transfer(scenario, transaction_id, 60_000)
    return checkout_url
  },
  'a checkout whose debit is under way': async (scenario, [monthly]) => {
    const { checkout_url, transaction_id } = await scenario.checkout({ price_id: monthly, skip_trial: true })
    await debitUnderWay(scenario, transaction_id)
    return checkout_url
  },
  'an expired link whose debit is under way': async (scenario, [monthly]) => {
    const { checkout_url, transaction_id } = await scenario.checkout({ price_id: monthly, skip_trial: true })
    await debitUnderWay(scenario, transaction_id)
    scenario.at('2026-03-01 11:00:00')
    return checkout_url
  },
  'an extension of a plan that was switched meanwhile': async (scenario, [monthly]) => {
    const owner = { price_id: monthly, external_ref: 'user-8', skip_trial: true }
    await scenario.pay(await scenario.checkout(owner))
    const { checkout_url } = await scenario.checkout(owner)
    const price = { amount: 249_000, currency: 'VND', interval_unit: 'month', interval_count: 1 }
    const gold = await scenario.seller.post('/api/v1/plans', { code: 'gold', name: 'Gold', prices: [price] })
    const { prices } = gold.body.data as { readonly prices: readonly { readonly id: string }[] }
    await scenario.seller.put('/api/v1/subscriptions/user-8/plan', { price_id: prices[0]?.id })
    return checkout_url
  },
  'an expired link': async (scenario, [monthly]) => {
    const { checkout_url } = await scenario.checkout({ price_id: monthly, skip_trial: true })
    scenario.at('2026-03-01 11:00:00')
    return checkout_url
  },
  'a link that the subscription has changed under': async (scenario, [monthly]) => {
    const trial = { price_id: monthly, external_ref: 'user-9' }
    const [first, second] = [await scenario.checkout(trial), await scenario.checkout(trial)]
    await scenario.service.call('GET', `${second.checkout_url}/bank`)
    await scenario.pay(first)
    return second.checkout_url
  },
  'a checkout with a promotion': async (scenario, [monthly]) => {
    await aPromotion(scenario.service.ctx, scenario.app, { code: 'TET2027' })
    return (await scenario.checkout({ price_id: monthly, skip_trial: true, promotion_code: 'TET2027' })).checkout_url
  },
  'a checkout that takes a promotion code': async (scenario, [monthly]) => {
    await aPromotion(scenario.service.ctx, scenario.app, { code: 'TET2027', on_page: true })
    return (await scenario.checkout({ price_id: monthly, skip_trial: true })).checkout_url
  },
  'a bank transfer with a promotion that has arrived': async (scenario, [monthly]) => {
    await aPromotion(scenario.service.ctx, scenario.app, { code: 'TET2027' })
    const body = { price_id: monthly, skip_trial: true, promotion_code: 'TET2027' }
    const { checkout_url, transaction_id } = await scenario.checkout(body)
    await scenario.service.call('GET', `${checkout_url}/bank`)
    await transfer(scenario, transaction_id, 79_200)
    return `${checkout_url}/paid`
  },
  'a renewal with a promotion': async (scenario, prices) => {
    await aPromotion(scenario.service.ctx, scenario.app, { code: 'TET2027', every_period: true })
    return renewalOf(scenario, prices, { promotion_code: 'TET2027' })
  },
  'a renewal that costs nothing': async (scenario, prices) => {
    await aPromotion(scenario.service.ctx, scenario.app, { code: 'TET2027', percent: 100, every_period: true })
    return renewalOf(scenario, prices, { promotion_code: 'TET2027' })
  },
  'an unknown link': (scenario) => Promise.resolve(`${scenario.service.url}/checkout/unknown`),
  'a checkout under the seller’s name': async (scenario, [monthly]) => {
    await changeApp(scenario.service.ctx, 'tester', scenario.app.app, BRAND)
    await changePlans(scenario, { description: 'Mọi cuốn sách nói.\nTrên mọi thiết bị.' })
    return (await scenario.checkout({ price_id: monthly, skip_trial: true })).checkout_url
  },
  'an expired link, paid in part': async (scenario, [monthly]) => {
    const { checkout_url, transaction_id } = await scenario.checkout({ price_id: monthly, skip_trial: true })
    await scenario.service.call('GET', `${checkout_url}/bank`)
    await transfer(scenario, transaction_id, 60_000)
    scenario.at('2026-03-01 11:00:00')
    return checkout_url
  },
  'a bank transfer paid in part, after its link expired': async (scenario, [monthly]) => {
    const { checkout_url, transaction_id } = await scenario.checkout({ price_id: monthly, skip_trial: true })
    await scenario.service.call('GET', `${checkout_url}/bank`)
    await transfer(scenario, transaction_id, 60_000)
    scenario.at('2026-03-01 11:00:00')
    return `${checkout_url}/bank`
  },
  'a bank transfer that has arrived': async (scenario, [monthly]) => {
    const { checkout_url, transaction_id } = await scenario.checkout({ price_id: monthly, skip_trial: true })
    await scenario.service.call('GET', `${checkout_url}/bank`)
    await transfer(scenario, transaction_id, 99_000)
    return `${checkout_url}/paid`
  },
  'a renewal before the end': (scenario, prices) => renewalOf(scenario, prices),
  'a renewal after the end': async (scenario, prices) => {
    const url = await renewalOf(scenario, prices)
    scenario.at('2026-04-03 10:00:00')
    return url
  },
  'a renewal whose payment is still open': async (scenario, prices) => {
    const url = await renewalOf(scenario, prices)
    await post(scenario, url, 'bank_transfer')
    return url
  },
  'a renewal paid in part, after its checkout expired': async (scenario, prices) => {
    const url = await renewalOf(scenario, prices)
    await scenario.service.call('GET', await post(scenario, url, 'bank_transfer'))
    const [renewal] = (await scenario.seller.get('/api/v1/transactions')).body.data
    await transfer(scenario, renewal!.transaction_id, 60_000)
    scenario.at('2026-03-31 10:00:00')
    return url
  },
  'a renewal that was just paid': async (scenario, prices) => {
    const url = await renewalOf(scenario, prices)
    await post(scenario, url, 'test')
    return url
  },
  'asking to stop reminders': async (scenario, prices) => `${await renewalOf(scenario, prices)}/opt-out`,
  'a renewal of a lifetime subscription': async (scenario, prices) => {
    const url = await renewalOf(scenario, prices)
    await scenario.pay(await scenario.checkout({ price_id: prices[1] }))
    return url
  },
  'a renewal at a seller that is disabled': async (scenario, prices) => {
    const url = await renewalOf(scenario, prices)
    await scenario.service.ctx.db.update(apps, { disabledAt: null }, { disabledAt: scenario.service.ctx.clock.now() })
    return url
  },
  'a renewal without a method': async (scenario, prices) => {
    const url = await renewalOf(scenario, prices)
    await disableMethods(scenario)
    return url
  },
  'a checkout without a method': async (scenario, [monthly]) => {
    const { checkout_url } = await scenario.checkout({ price_id: monthly })
    await disableMethods(scenario)
    return checkout_url
  },
  'a one-time purchase of a long description': async (scenario) => {
    const { prices } = await scenario.plan('book', { ...LIFETIME, amount: 50_000 })
    await changePlans(scenario, { description: 'Mọi cuốn sách nói trên mọi thiết bị. '.repeat(9) })
    return (await scenario.checkout({ price_id: prices[0] })).checkout_url
  },
  'a purchase in dollars': async (scenario) => {
    const purchase = { mode: 'payment', plan_ref: 'book', plan_name: 'The Complete Audiobook', amount: 129_999 }
    return (await scenario.checkout({ ...purchase, currency: 'USD' })).checkout_url
  },
  'a purchase in yen': async (scenario) => {
    const purchase = { mode: 'payment', plan_ref: 'book', plan_name: 'The Complete Audiobook', amount: 12_000 }
    return (await scenario.checkout({ ...purchase, currency: 'JPY' })).checkout_url
  },
  'money that could not be applied': async (scenario, [monthly]) => {
    const late = await scenario.checkout({ price_id: monthly, skip_trial: true })
    await scenario.service.call('GET', `${late.checkout_url}/bank`)
    scenario.at('2026-03-01 10:05:00')
    const gold = await scenario.plan('gold', { ...MONTHLY, amount: 50_000 })
    await scenario.pay(await scenario.checkout({ price_id: gold.prices[0] }))
    await transfer(scenario, late.transaction_id, 99_000)
    return `${late.checkout_url}/paid`
  },
  'long names, a checkout': async (scenario, [monthly]) => {
    await giveLongNames(scenario)
    return (await scenario.checkout({ price_id: monthly, skip_trial: true })).checkout_url
  },
  'long names, a bank transfer': async (scenario, [monthly]) => {
    await giveLongNames(scenario)
    return `${(await scenario.checkout({ price_id: monthly, skip_trial: true })).checkout_url}/bank`
  },
  'long names, a bank transfer that has arrived': async (scenario, [monthly]) => {
    await giveLongNames(scenario)
    const { checkout_url, transaction_id } = await scenario.checkout({ price_id: monthly, skip_trial: true })
    await scenario.service.call('GET', `${checkout_url}/bank`)
    await transfer(scenario, transaction_id, 99_000)
    return `${checkout_url}/paid`
  },
  'long names, asking to stop reminders': async (scenario, prices) => {
    await giveLongNames(scenario)
    return `${await renewalOf(scenario, prices)}/opt-out`
  },
  'a service that is too busy': (scenario, prices) =>
    brokenBy(scenario, prices, new AppError('rate_limited', 'too many requests at once')),
  'a service that fails': (scenario, prices) => brokenBy(scenario, prices, new Error('made for a picture')),
} satisfies Readonly<Record<string, Scene>>

/** Names as companies register them, and a plan that says all that it is. */
export const LONG_NAMES = {
  app: 'Công ty Trách nhiệm hữu hạn Một thành viên Xuất bản và Phát hành Sách nói Việt Nam',
  plan: 'Gói Cao cấp dành cho gia đình đông người, nghe không giới hạn trên mọi thiết bị',
}

async function giveLongNames(scenario: Scenario): Promise<void> {
  await changeApp(scenario.service.ctx, 'tester', scenario.app.app, { name: LONG_NAMES.app })
  await changePlans(scenario, { name: LONG_NAMES.plan })
}

/** The seller changes what its plans are called or include. */
export async function changePlans(
  { seller }: Scenario,
  changes: { name?: string; description?: string },
): Promise<void> {
  for (const { id } of (await seller.get('/api/v1/plans')).body.data.plans) {
    const { status, text } = await seller.patch(`/api/v1/plans/${id}`, changes)
    if (status !== 200) throw new Error(`the plan was not changed: ${text}`)
  }
}

async function disableMethods({ service: { ctx }, app }: Scenario): Promise<void> {
  for (const method of ['card', 'payos', 'bank_transfer', 'test'] as const)
    await disableMethod(ctx, 'tester', app.app, method)
}

/** A page of a service in which whatever looks at a checkout meets the error. */
async function brokenBy(scenario: Scenario, [monthly]: readonly string[], error: Error): Promise<string> {
  const { checkout_url } = await scenario.checkout({ price_id: monthly })
  Object.assign(scenario.service.ctx.clock, {
    now: () => {
      throw error
    },
  })
  return checkout_url
}

/** The renewal page of a subscription that ends on 1 April, two days before that. `body` adds to the checkout that started it. */
async function renewalOf(scenario: Scenario, [monthly]: readonly string[], body: object = {}): Promise<string> {
  const checkout = await scenario.checkout({ price_id: monthly, skip_trial: true, ...body })
  if (!checkout.activated) await scenario.pay(checkout)
  scenario.at('2026-03-30 10:00:00')
  return `${scenario.service.url}/renew/${await scenario.renewalToken()}`
}

/** Chooses a method on a renewal page; returns where that leads. */
async function post(scenario: Scenario, url: string, method: string): Promise<string> {
  const raw = JSON.stringify({ payment_method: method })
  const headers = { 'Content-Type': 'application/json' }
  const { body } = await scenario.service.call<Envelope<Redirect>>('POST', url, { headers, raw })
  return body.data.redirect_url
}

/** Runs with an app of every method, and the prices of its plan: a month with a paid trial, and lifetime. */
export async function withShop(
  name: string,
  look: (scenario: Scenario, prices: readonly string[]) => Promise<void>,
): Promise<void> {
  const scenario = await startBankScenario({ name })
  const credentials = { secretKey: 'sk_test_1', webhookSecret: 'whsec_1' }
  await enableMethod(scenario.service.ctx, 'tester', scenario.app.app, 'card', credentials)
  const plan = await scenario.plan('premium', { ...MONTHLY, name: 'Hằng tháng', trial: PAID_TRIAL }, LIFETIME)
  try {
    await look(scenario, plan.prices)
  } finally {
    await scenario.service.stop()
  }
}
