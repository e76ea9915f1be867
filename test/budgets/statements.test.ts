import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { aCustomer, aPromotion, MONTHLY } from '../support/factories.ts'
import { startScenario, type PayableCheckout, type Scenario } from '../support/scenario.ts'
import { countStatements, type Counted } from './counted.ts'

describe('statement budgets', () => {
  let scenario: Scenario
  let counted: Counted
  let price: string
  let customer: string

  beforeEach(async () => {
    scenario = await startScenario()
    price = (await scenario.plan('pro', MONTHLY)).prices[0]!
    customer = `cus_${(await aCustomer(scenario.service.ctx, scenario.app)).id}`
    counted = await countStatements(scenario.service.ctx)
    // What a connection is set up with is asked once.
    await scenario.checkout({ price_id: price, external_ref: 'first' })
  })

  afterEach(async () => {
    await counted.close()
    await scenario.service.stop()
  })

  it('a read of a subscription takes 2', async () => {
    await scenario.pay(await scenario.checkout({ price_id: price }))
    const read = await counted.atMost(2, () => scenario.seller.get('/api/v1/subscriptions/user-1'))
    expect(read.status).to.equal(200)
  })

  for (const [whose, ref, most] of [
    ['an end user who is new', 'user-1', 8],
    ['an end user who is known', 'first', 7],
  ] as const) {
    it(`a checkout takes ${most}: ${whose}`, async () => {
      const open = () => scenario.checkout({ price_id: price, customer_id: customer, external_ref: ref })
      expect(await counted.atMost(most, open)).to.include({ activated: false })
    })
  }

  it('a payment by the test method takes 11, from the click to the commit: its page, the money, the period, the event', async () => {
    const first = await scenario.checkout({ price_id: price, customer_id: customer })
    await counted.atMost(11, () => scenario.pay(first))
    expect(await scenario.subscription()).to.include({ status: 'active', customer_id: customer })
  })

  it('a checkout that extends takes 7: for the plan and price that there are, nothing depends on earlier decisions', async () => {
    const open = () => scenario.checkout({ price_id: price, customer_id: customer })
    await scenario.pay(await open())
    await counted.atMost(7, open)
  })

  it('a payment that extends takes 11: it writes two events', async () => {
    await scenario.pay(await scenario.checkout({ price_id: price, customer_id: customer }))
    const second = await scenario.checkout({ price_id: price, customer_id: customer })
    await counted.atMost(11, () => scenario.pay(second))
  })

  it('a promotion costs a checkout 4 more, and its payment 1', async () => {
    await aPromotion(scenario.service.ctx, scenario.app)
    const body = { price_id: price, customer_id: customer, external_ref: 'first', promotion_code: 'TET' }
    let opened: PayableCheckout | undefined
    const open = async (): Promise<void> => {
      opened = await scenario.checkout(body)
    }
    await counted.atMost(11, open)
    await counted.atMost(12, () => scenario.pay(opened!))
  })
})
