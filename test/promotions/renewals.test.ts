import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Transaction } from '../../client/src/types.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { getPromotion } from '#promotions/store.ts'
import { updatePromotion } from '#promotions/update-promotion.ts'
import { endUsers } from '#subscriptions/store.ts'
import { startBankScenario } from '../pages/bank-scenario.ts'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { countWaiting, testDatabase } from '../support/database.ts'
import { expectError } from '../support/expect-error.ts'
import { aPromotion, FREE_TRIAL, MONTHLY, YEARLY } from '../support/factories.ts'
import { startRival } from '../support/held-connections.ts'
import type { Scenario } from '../support/scenario.ts'
import { until } from '../support/until.ts'

describe('the renewals of a subscription that a promotion started', () => {
  let scenario: Scenario
  let price: string
  let other: string
  beforeEach(async () => {
    scenario = await startBankScenario()
    price = (await scenario.plan('pro', MONTHLY, YEARLY)).prices[0]!
    other = (await scenario.plan('gold', { ...MONTHLY, amount: 199_000 })).prices[0]!
  })
  afterEach(() => stopWithCleanLedger(scenario.service))

  const promotion = (changes: object = {}) =>
    aPromotion(scenario.service.ctx, scenario.app, { every_period: true, ...changes })
  const buy = async (body: object = {}) => {
    const checkout = await scenario.checkout({ price_id: price, promotion_code: 'TET', ...body })
    if (!checkout.activated) await scenario.pay(checkout)
    return checkout
  }
  const link = async () => {
    return `/renew/${await scenario.renewalToken()}`
  }
  const post = async (body: object) =>
    scenario.service.call('POST', await link(), {
      headers: { 'Content-Type': 'application/json' },
      raw: JSON.stringify(body),
    })
  const newest = async (): Promise<Transaction> =>
    (await scenario.seller.get('/api/v1/transactions?external_ref=user-1')).body.data[0]!
  const renew = async (): Promise<Transaction> => {
    const answer = await post({ payment_method: 'test' })
    expect(answer.status, answer.text).to.equal(200)
    return newest()
  }
  const usesOf = async ({ id }: { id: number }) =>
    (await getPromotion(scenario.service.ctx.db, scenario.app.app.id, id)).uses
  const page = async (language = 'en') =>
    (
      await scenario.service.call('GET', await link(), {
        headers: { Accept: 'text/html', 'Accept-Language': language },
      })
    ).text.replaceAll('\u00a0', ' ')

  const DISCOUNTED = { amount: 79_200, discount: { code: 'TET', amount: 19_800 }, status: 'completed' }
  const REGULAR = { amount: 99_000, discount: null, status: 'completed' }

  it('cost the regular amount', async () => {
    await promotion({ every_period: false })
    await buy()
    expect(await renew()).to.deep.include(REGULAR)
  })

  it('keep the discount where it is for every period, count no further use, and outlive the promotion', async () => {
    const made = await promotion({ max_uses: 1 })
    await buy()
    const scope = { app: scenario.app.app, promotionId: made.id }
    const over = { status: 'archived', valid_until: '2026-03-01 10:00:00' }
    await perform(scenario.service.ctx, operator('tester'), updatePromotion, over, scope)
    await scenario.newEvents()
    expect(await renew()).to.deep.include(DISCOUNTED)
    const [renewed] = await scenario.newEvents()
    expect(renewed?.data).to.include({ amount: 79_200 })
    scenario.at('2026-08-01 10:00:00')
    expect(await renew(), 'after the end').to.deep.include(DISCOUNTED)
    expect(await usesOf(made)).to.equal(1)
  })

  it('lose the discount with a switch to another plan, and keep it on another price of the plan', async () => {
    await promotion()
    await buy()
    const switchTo = (price_id: string) => scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id })
    const { prices } = (await scenario.seller.get('/api/v1/plans')).body.data.plans.find(({ code }) => code === 'pro')!
    await switchTo(prices.find(({ interval_unit }) => interval_unit === 'year')!.id)
    expect(await renew()).to.deep.include({ amount: 792_000, discount: { code: 'TET', amount: 198_000 } })
    await switchTo(other)
    expect(await renew()).to.deep.include({ amount: 199_000, discount: null })
    await switchTo(price)
    expect(await renew()).to.deep.include(REGULAR)
  })

  it('lose the discount with a purchase of another plan', async () => {
    await promotion()
    await buy()
    await buy({ price_id: other, promotion_code: undefined })
    expect(await renew()).to.deep.include({ amount: 199_000, discount: null })
  })

  it('keep the discount when a checkout without a code extends, and get that of a newer code', async () => {
    await promotion()
    await promotion({ code: 'HALF', percent: 50 })
    await promotion({ code: 'ONCE', percent: 90, every_period: false })
    await buy()
    expect(await scenario.transaction((await buy({ promotion_code: undefined })).transaction_id)).to.deep.include(
      REGULAR,
    )
    await buy({ promotion_code: 'ONCE' })
    expect(await renew()).to.deep.include(DISCOUNTED)
    await buy({ promotion_code: 'HALF' })
    expect(await renew()).to.deep.include({ amount: 49_500, discount: { code: 'HALF', amount: 49_500 } })
  })

  it('lose the discount when a checkout without a code starts the subscription anew', async () => {
    await promotion()
    await buy()
    scenario.at('2026-06-01 10:00:00')
    await buy({ promotion_code: undefined })
    expect(await renew()).to.deep.include(REGULAR)
  })

  it('get the discount after a free trial, too', async () => {
    await promotion()
    const trial = (await scenario.plan('trial', { ...MONTHLY, trial: FREE_TRIAL })).prices[0]!
    await buy({ price_id: trial })
    expect(await renew()).to.deep.include(DISCOUNTED)
  })

  it('are not reused at another amount: a renewal that is open while the discount ends is quoted anew', async () => {
    await promotion()
    await buy()
    await post({ payment_method: 'bank_transfer' })
    const open = await newest()
    expect(open).to.deep.include({ ...DISCOUNTED, status: 'pending' })
    await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: other })
    await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: price })
    expect(await renew()).to.deep.include(REGULAR)
    await scenario.reportTransfer(open)
    expect(await scenario.transaction(open.transaction_id), 'money on its way').to.deep.include(DISCOUNTED)
    expect(await renew(), 'the discount stays ended').to.deep.include(REGULAR)
  })

  it('lead back to the open payment where the price is in a currency that the promotion does not fit', async () => {
    await promotion({ amount: 200, currency: 'USD' })
    const { prices } = await scenario.plan('world', { ...MONTHLY, amount: 500, currency: 'USD' }, MONTHLY)
    await buy({ price_id: prices[0] })
    await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: prices[1] })
    await post({ payment_method: 'bank_transfer' })
    const open = await newest()
    expect(open).to.deep.include({ ...REGULAR, status: 'pending' })
    await post({ payment_method: 'bank_transfer' })
    expect(await newest()).to.deep.include({ transaction_id: open.transaction_id })
  })

  it('show what is to be paid on the page, in both languages', async () => {
    await promotion()
    await buy()
    scenario.at('2026-03-30 10:00:00')
    const [english, vietnamese] = [await page('en'), await page('vi')]
    expect(english).to.contain('79,200').and.to.contain('19,800').and.to.contain('TET')
    expect(vietnamese).to.contain('79.200').and.to.contain('19.800').and.to.contain('TET')
  })

  describe('that cost nothing', () => {
    beforeEach(async () => {
      await promotion({ percent: 100 })
      await buy()
      scenario.at('2026-03-30 10:00:00')
    })

    it('are renewed at once, without a payment method, once per period', async () => {
      const body = { period_end: '2026-04-01 10:00:00' }
      const answers = await Promise.all([post(body), post(body), post(body)])
      expect(answers.map(({ status }) => status)).to.include(200)
      expect(await newest()).to.deep.include({
        amount: 0,
        discount: { code: 'TET', amount: 99_000 },
        provider_code: 'promotion',
        status: 'completed',
      })
      expect((await scenario.subscription()).current_period_end).to.equal('2026-05-01 10:00:00')
      expectError(await post({}), 400, 'invalid_request')
    })

    it('are renewed once by two calls at once that name no period', async () => {
      const holder = await startRival(testDatabase().db)
      await holder.bump(endUsers, 'version', { externalRef: 'user-1' })
      const calls = [post({}), post({})]
      await until(async () => (await countWaiting()) === 2)
      await holder.rollback()
      expect((await Promise.all(calls)).map(({ status }) => status)).to.deep.equal([200, 200])
      expect((await scenario.subscription()).current_period_end).to.equal('2026-05-01 10:00:00')
    })

    it('have a page with one button, which renews', async () => {
      const shown = await page()
      expect(shown).to.contain('name="period_end"').and.not.to.contain('name="payment_method"')
      const answer = await scenario.service.call('POST', await link(), {
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        raw: new URLSearchParams({ period_end: '2026-04-01 10:00:00' }).toString(),
      })
      expect(answer.status, answer.text).to.equal(303)
      expect(await page()).not.to.contain('name="period_end"')
    })
  })
})
