import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { FREE_TRIAL, LIFETIME, MONTHLY, PAID_TRIAL, YEARLY } from '../support/factories.ts'
import { startScenario, newEventTypes, type Scenario } from '../support/scenario.ts'
import { expectError } from '../support/expect-error.ts'

const UPDATED = ['subscription.updated']
const RENEWED = ['subscription.renewed', 'subscription.updated']

describe('subscription status: every change of it', () => {
  let scenario: Scenario
  beforeEach(async () => {
    scenario = await startScenario()
  })
  afterEach(() => stopWithCleanLedger(scenario.service))

  const buy = async (price: string | undefined, body: object = {}) => {
    const checkout = await scenario.checkout({ price_id: price, ...body })
    await scenario.pay(checkout)
    return checkout
  }

  it('none → active: a price without trial is paid; the period is payment time and interval; subscription.updated', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    scenario.at('2026-01-31 08:00:00')
    const checkout = await scenario.checkout({ price_id: plan.prices[0] })
    expect(checkout.activated).to.equal(false)
    expect(checkout.trial).to.equal(null)
    expectError(await scenario.seller.get('/api/v1/subscriptions/user-1'), 404, 'not_found')
    scenario.at('2026-01-31 08:30:00')
    await scenario.pay(checkout)
    expect(await scenario.subscription()).to.deep.equal({
      plan_ref: 'pro',
      plan_id: plan.id,
      price_id: plan.prices[0],
      customer_id: null,
      status: 'active',
      current_period_end: '2026-02-28 08:30:00',
      in_trial: false,
      trial_ends_at: null,
    })
    expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
  })

  it('none → active: skip_trial charges the regular price at once and leaves the trial for later', async () => {
    const plan = await scenario.plan('pro', { ...MONTHLY, trial: FREE_TRIAL })
    const checkout = await buy(plan.prices[0], { skip_trial: true })
    expect((await scenario.transaction(checkout.transaction_id)).amount).to.equal(MONTHLY.amount)
    expect((await scenario.subscription()).in_trial).to.equal(false)
    expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
    scenario.at('2026-05-01 00:00:00')
    expect((await scenario.checkout({ price_id: plan.prices[0] })).activated).to.equal(true)
  })

  it('none → active: a free trial activates during the checkout call, without any payment method', async () => {
    const plan = await scenario.plan('pro', { ...MONTHLY, trial: FREE_TRIAL })
    const checkout = await scenario.checkout({ price_id: plan.prices[0] })
    expect(checkout).to.include({ activated: true, checkout_url: 'https://shop.example/ok', transaction_id: null })
    expect(checkout.trial).to.deep.equal({
      amount: 0,
      interval_unit: 'day',
      interval_count: 7,
      ends_at: '2026-03-08 10:00:00',
    })
    expect(await scenario.subscription()).to.include({
      status: 'active',
      in_trial: true,
      current_period_end: '2026-03-08 10:00:00',
      trial_ends_at: '2026-03-08 10:00:00',
    })
    expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
  })

  it('none → active: a paid trial is paid with the trial amount and lasts the trial interval', async () => {
    const plan = await scenario.plan('pro', { ...MONTHLY, trial: PAID_TRIAL })
    const checkout = await scenario.checkout({ price_id: plan.prices[0] })
    expect(checkout).to.include({ activated: false })
    expect(checkout.trial).to.include({ amount: 10_000, ends_at: '2026-03-08 10:00:00' })
    await scenario.pay(checkout)
    expect((await scenario.transaction(checkout.transaction_id)).amount).to.equal(10_000)
    expect(await scenario.subscription()).to.include({ in_trial: true, current_period_end: '2026-03-08 10:00:00' })
    expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
  })

  it('none → active: a lifetime price is paid and never expires', async () => {
    const plan = await scenario.plan('pro', LIFETIME)
    await buy(plan.prices[0])
    scenario.at('2099-01-01 00:00:00')
    expect(await scenario.subscription()).to.include({ status: 'active', current_period_end: null })
    expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
  })

  it('active → expired: reported as soon as the moment passes, also for a trial; no charge, no webhook', async () => {
    const plan = await scenario.plan('pro', { ...MONTHLY, trial: FREE_TRIAL })
    await scenario.checkout({ price_id: plan.prices[0] })
    await scenario.newEvents()
    scenario.at('2026-03-08 09:59:59')
    expect((await scenario.subscription()).status).to.equal('active')
    scenario.at('2026-03-08 10:00:00')
    expect(await scenario.subscription()).to.include({
      status: 'expired',
      in_trial: true,
      trial_ends_at: '2026-03-08 10:00:00',
    })
    expect(await newEventTypes(scenario)).to.deep.equal([])
  })

  it('active → active: a payment while valid extends from the current end; subscription.renewed and subscription.updated', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    await buy(plan.prices[0])
    await scenario.newEvents()
    scenario.at('2026-03-20 00:00:00')
    const checkout = await buy(plan.prices[0])
    expect((await scenario.subscription()).current_period_end).to.equal('2026-05-01 10:00:00')
    const events = await scenario.newEvents()
    expect(events.map(({ type }) => type)).to.deep.equal(RENEWED)
    expect(events[0]?.data).to.deep.equal({
      external_ref: 'user-1',
      paygate_customer_id: null,
      merchant_customer_id: null,
      plan_id: plan.id,
      price_id: plan.prices[0],
      plan_ref: 'pro',
      provider_code: 'test',
      transaction_id: checkout.transaction_id,
      amount: 99_000,
      currency: 'VND',
      previous_period_end: '2026-04-01 10:00:00',
      current_period_end: '2026-05-01 10:00:00',
      was_trial: false,
    })
  })

  it('expired → active: a payment within the grace window starts at payment time', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    await buy(plan.prices[0])
    await scenario.newEvents()
    scenario.at('2026-04-03 12:00:00')
    await buy(plan.prices[0])
    expect(await scenario.subscription()).to.include({ status: 'active', current_period_end: '2026-05-03 12:00:00' })
    expect(await newEventTypes(scenario)).to.deep.equal(RENEWED)
  })

  it('expired → active: a payment after the grace window starts at payment time', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    await buy(plan.prices[0])
    await scenario.newEvents()
    scenario.at('2026-09-30 12:00:00')
    await buy(plan.prices[0])
    expect((await scenario.subscription()).current_period_end).to.equal('2026-10-30 12:00:00')
    expect(await newEventTypes(scenario)).to.deep.equal(RENEWED)
  })

  it('active, lifetime scheduled → active: the switch changes nothing until paid, then the end is null', async () => {
    const plan = await scenario.plan('pro', MONTHLY, LIFETIME)
    await buy(plan.prices[0])
    await scenario.newEvents()
    const answer = await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: plan.prices[1] })
    expect(answer.status).to.equal(200)
    expect(answer.body.data).to.include({ price_id: plan.prices[1], current_period_end: '2026-04-01 10:00:00' })
    expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
    await buy(plan.prices[1])
    expect((await scenario.subscription()).current_period_end).to.equal(null)
    expect(await newEventTypes(scenario)).to.deep.equal(RENEWED)
  })

  it('active → active: a plan switch reports the new price at once and leaves the period; subscription.updated', async () => {
    const pro = await scenario.plan('pro', MONTHLY)
    const max = await scenario.plan('max', YEARLY)
    await buy(pro.prices[0])
    await scenario.newEvents()
    const answer = await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: max.prices[0] })
    expect(answer.body.data).to.deep.equal({
      plan_ref: 'max',
      plan_id: max.id,
      price_id: max.prices[0],
      customer_id: null,
      status: 'active',
      current_period_end: '2026-04-01 10:00:00',
      in_trial: false,
      trial_ends_at: null,
    })
    expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
    scenario.at('2026-03-15 00:00:00')
    await buy(max.prices[0])
    expect((await scenario.subscription()).current_period_end, 'the switched plan extends').to.equal(
      '2027-04-01 10:00:00',
    )
  })

  it('lifetime owner: a payment that completes for another checkout is not applied and is flagged already_lifetime', async () => {
    const plan = await scenario.plan('pro', MONTHLY, LIFETIME)
    const earlier = await scenario.checkout({ price_id: plan.prices[0] })
    await buy(plan.prices[1])
    await scenario.newEvents()
    await scenario.pay(earlier)
    expect(await scenario.subscription()).to.include({ current_period_end: null, price_id: plan.prices[1] })
    expect(await scenario.transaction(earlier.transaction_id)).to.include({
      status: 'completed',
      flagged: true,
      flag_reason: 'already_lifetime',
      amount_received: 99_000,
    })
    expect(await newEventTypes(scenario)).to.deep.equal([])
  })

  describe('rules', () => {
    it('1: renewals are charged at the regular amount; was_trial shows that a trial converted', async () => {
      const plan = await scenario.plan('pro', { ...MONTHLY, trial: FREE_TRIAL })
      await scenario.checkout({ price_id: plan.prices[0] })
      await scenario.newEvents()
      scenario.at('2026-03-05 00:00:00')
      const checkout = await scenario.checkout({ price_id: plan.prices[0] })
      expect(checkout.trial).to.equal(null)
      await scenario.pay(checkout)
      expect((await scenario.transaction(checkout.transaction_id)).amount).to.equal(99_000)
      expect(await scenario.subscription()).to.include({
        in_trial: false,
        trial_ends_at: null,
        current_period_end: '2026-04-08 10:00:00',
      })
      expect((await scenario.newEvents())[0])
        .to.deep.include({ type: 'subscription.renewed' })
        .and.to.have.nested.property('data.was_trial', true)
    })

    it('2: the grace window gives no access', async () => {
      const plan = await scenario.plan('pro', MONTHLY)
      await buy(plan.prices[0])
      scenario.at('2026-04-01 10:00:00')
      expect((await scenario.subscription()).status).to.equal('expired')
    })

    it('3: a trial is granted once per end user and plan, across all prices of the plan', async () => {
      const plan = await scenario.plan('pro', { ...MONTHLY, trial: FREE_TRIAL }, { ...YEARLY, trial: PAID_TRIAL })
      const other = await scenario.plan('max', { ...MONTHLY, trial: FREE_TRIAL })
      await scenario.checkout({ price_id: plan.prices[0] })
      scenario.at('2026-06-01 00:00:00')
      expect(await scenario.checkout({ price_id: plan.prices[1] })).to.include({ activated: false, trial: null })
      expect(await scenario.checkout({ price_id: other.prices[0] })).to.include({ activated: true })
      expect(await scenario.checkout({ price_id: plan.prices[0], external_ref: 'user-2' })).to.include({
        activated: true,
      })
    })

    it('4: another price of the same plan while valid extends; a price of a different plan starts a new period without proration', async () => {
      const pro = await scenario.plan('pro', MONTHLY, YEARLY)
      const max = await scenario.plan('max', MONTHLY)
      await buy(pro.prices[0])
      await buy(pro.prices[1])
      expect((await scenario.subscription()).current_period_end).to.equal('2027-04-01 10:00:00')
      scenario.at('2026-03-10 00:00:00')
      await buy(max.prices[0])
      expect(await scenario.subscription()).to.include({ plan_ref: 'max', current_period_end: '2026-04-10 00:00:00' })
    })

    it('5: a second payment opened to renew the same period extends without subscription.renewed', async () => {
      const plan = await scenario.plan('pro', MONTHLY)
      await buy(plan.prices[0])
      const first = await scenario.checkout({ price_id: plan.prices[0] })
      const second = await scenario.checkout({ price_id: plan.prices[0] })
      await scenario.newEvents()
      await scenario.pay(first)
      expect(await newEventTypes(scenario)).to.deep.equal(RENEWED)
      await scenario.pay(second)
      expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
      expect((await scenario.subscription()).current_period_end).to.equal('2026-06-01 10:00:00')
    })

    it('5: a change of plan that keeps the end, such as one in the second of the first purchase, does not renew that end: the renewal sends subscription.renewed', async () => {
      const [basic, gold] = [await scenario.plan('basic', MONTHLY), await scenario.plan('gold', MONTHLY)]
      await buy(basic.prices[0])
      await buy(gold.prices[0])
      expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
      const [renewal, second] = [
        await scenario.checkout({ price_id: gold.prices[0] }),
        await scenario.checkout({ price_id: gold.prices[0] }),
      ]
      await scenario.newEvents()
      await scenario.pay(renewal)
      expect(await newEventTypes(scenario)).to.deep.equal(RENEWED)
      await scenario.pay(second)
      expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
    })
  })

  it('a paid-trial payment that arrives after the trial was used is completed, not applied, and flagged trial_already_used', async () => {
    const plan = await scenario.plan('pro', { ...MONTHLY, trial: PAID_TRIAL })
    const [first, second] = [
      await scenario.checkout({ price_id: plan.prices[0] }),
      await scenario.checkout({ price_id: plan.prices[0] }),
    ]
    await scenario.pay(first)
    await scenario.newEvents()
    await scenario.reportTransfer(second)
    expect(await scenario.transaction(second.transaction_id)).to.include({
      status: 'completed',
      flag_reason: 'trial_already_used',
    })
    expect((await scenario.subscription()).current_period_end).to.equal('2026-03-08 10:00:00')
    expect(await newEventTypes(scenario)).to.deep.equal([])
  })

  it('no trial is offered to an end user with a valid subscription', async () => {
    const pro = await scenario.plan('pro', MONTHLY)
    const max = await scenario.plan('max', { ...MONTHLY, trial: FREE_TRIAL })
    await buy(pro.prices[0])
    expect(await scenario.checkout({ price_id: max.prices[0] })).to.include({ activated: false, trial: null })
  })

  it("a checkout's customer becomes the subscription's when it is applied; a checkout without one changes nothing", async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const customer = (
      await scenario.seller.post('/api/v1/customers', {
        name: 'An',
        email: 'an@example.com',
        merchant_customer_id: 'm-1',
      })
    ).body.data
    await buy(plan.prices[0], { customer_id: customer.id })
    expect((await scenario.subscription()).customer_id).to.equal(customer.id)
    expect((await scenario.newEvents())[0]?.data).to.include({
      paygate_customer_id: customer.id,
      merchant_customer_id: 'm-1',
    })
    await buy(plan.prices[0])
    expect((await scenario.subscription()).customer_id).to.equal(customer.id)
  })

  it('attaching a customer sends subscription.updated', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const customer = await scenario.customer()
    await buy(plan.prices[0])
    await scenario.newEvents()
    const answer = await scenario.seller.put('/api/v1/subscriptions/user-1/customer', { customer_id: customer })
    expect(answer.body.data.customer_id).to.equal(customer)
    expect(await newEventTypes(scenario)).to.deep.equal(UPDATED)
    const refused = await scenario.seller.put('/api/v1/subscriptions/user-1/customer', { customer_id: 'cus_999999' })
    expect(refused.body.error).to.include({ code: 'invalid_request', field: 'customer_id' })
  })

  it('a one-time purchase completes with transaction.completed and touches no subscription, even for a lifetime owner', async () => {
    const plan = await scenario.plan('pro', LIFETIME)
    await buy(plan.prices[0])
    await scenario.newEvents()
    const checkout = await scenario.checkout({
      mode: 'payment',
      price_id: undefined,
      plan_ref: 'gift-box',
      amount: 5000,
      currency: 'usd',
    })
    await scenario.pay(checkout)
    expect(await scenario.newEvents()).to.deep.equal([
      {
        type: 'transaction.completed',
        data: {
          transaction_id: checkout.transaction_id,
          external_ref: 'user-1',
          paygate_customer_id: null,
          plan_ref: 'gift-box',
          amount: 5000,
          currency: 'USD',
          status: 'completed',
          metadata: {},
        },
      },
    ])
  })

  it('already_lifetime: a lifetime owner cannot start another subscription checkout, nor switch', async () => {
    const plan = await scenario.plan('pro', MONTHLY, LIFETIME)
    await buy(plan.prices[1])
    const body = {
      external_ref: 'user-1',
      mode: 'subscription',
      price_id: plan.prices[0],
      success_url: 'https://a.example',
      cancel_url: 'https://a.example',
    }
    const checkout = await scenario.seller.post('/api/v1/checkout-sessions', body)
    expect([checkout.status, checkout.body.error.code]).to.deep.equal([409, 'already_lifetime'])
    const change = await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: plan.prices[0] })
    expect([change.status, change.body.error.code]).to.deep.equal([409, 'already_lifetime'])
  })

  it('price_not_found: archived, of an archived plan, unknown, or another app’s; running subscriptions keep theirs', async () => {
    const plan = await scenario.plan('pro', MONTHLY, YEARLY)
    await buy(plan.prices[0])
    await scenario.seller.patch(`/api/v1/plans/${plan.id}/prices/${plan.prices[0]}`, { status: 'archived' })
    const attempt = async (price: unknown) => {
      const urls = { success_url: 'https://a.example', cancel_url: 'https://a.example' }
      const answer = await scenario.seller.post('/api/v1/checkout-sessions', {
        external_ref: 'u',
        mode: 'subscription',
        price_id: price,
        ...urls,
      })
      return [answer.status, answer.body.error?.code ?? null]
    }
    expect(await attempt(plan.prices[0])).to.deep.equal([400, 'price_not_found'])
    expect(await attempt(plan.prices[1])).to.deep.equal([201, null])
    expect(await attempt('price_999999')).to.deep.equal([400, 'price_not_found'])
    expect(await attempt('12')).to.deep.equal([400, 'price_not_found'])
    expect((await scenario.subscription()).price_id).to.equal(plan.prices[0])
    await scenario.seller.patch(`/api/v1/plans/${plan.id}`, { status: 'archived' })
    expect(await attempt(plan.prices[1])).to.deep.equal([400, 'price_not_found'])
    await scenario.seller.patch(`/api/v1/plans/${plan.id}`, { status: 'active' })
    expect(await attempt(plan.prices[1])).to.deep.equal([201, null])
  })
})
