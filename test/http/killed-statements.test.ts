import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import sinon from 'sinon'
import { openLossyDatabase, type LossyDatabase } from '../db/lossy-server.ts'
import type { Response } from '../support/api.ts'
import { testDatabase } from '../support/database.ts'
import { MONTHLY } from '../support/factories.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }

describe('a statement that the server kills each time', () => {
  let lossy: LossyDatabase
  let scenario: Scenario
  /** Statements since the last call, without those that begin and end a transaction. */
  let seen: Set<string>
  let killed: string | null

  beforeEach(async () => {
    scenario = await startScenario()
    lossy = await openLossyDatabase({})
    Object.assign(scenario.service.ctx, { db: lossy.db })
    seen = new Set()
    killed = null
    // Each kill takes three seconds, so that callers give up soon.
    const now = performance.now.bind(performance)
    let laterMs = 0
    sinon.stub(performance, 'now').callsFake(() => now() + laterMs)
    lossy.line.fateOf = (statement) => {
      seen.add(statement)
      if (statement !== killed) return 'pass'
      laterMs += 3000
      return 'killed'
    }
  })

  afterEach(async () => {
    sinon.restore()
    Object.assign(scenario.service.ctx, { db: testDatabase().db })
    await lossy.close()
    await scenario.service.stop()
  })

  const resolve = (url: string, method: string) =>
    scenario.service.call('POST', `${url}/resolve`, {
      raw: JSON.stringify({ payment_method: method }),
      headers: { 'Content-Type': 'application/json' },
    })

  it('is answered 503, never as a refusal: the page, the choice of a method, the payment, a read, a checkout, a plan switch', async () => {
    const { seller, service } = scenario
    const plan = await scenario.plan('pro', MONTHLY, { ...MONTHLY, amount: 120_000 })
    const price_id = plan.prices[0]!
    await scenario.pay(await scenario.checkout({ price_id, external_ref: 'paid' }))
    let open = await scenario.checkout({ price_id })
    const calls: Record<string, () => Promise<Response>> = {
      page: () => service.call('GET', open.checkout_url),
      pay: () => resolve(open.checkout_url, 'test'),
      read: () => seller.get('/api/v1/subscriptions/paid'),
      checkout: () =>
        seller.post('/api/v1/checkout-sessions', {
          ...{ ...URLS, mode: 'subscription', external_ref: 'paid', price_id, payment_method: 'test' },
        }),
      switch: () => seller.put('/api/v1/subscriptions/paid/plan', { price_id: plan.prices[1] }),
    }
    for (const [name, call] of Object.entries(calls)) {
      open = await scenario.checkout({ price_id, external_ref: `of ${name}` })
      seen.clear()
      expect((await call()).status, name).to.be.below(300)
      const statements = [...seen]
      expect(statements.length, name).to.be.above(0)
      for (const [index, statement] of statements.entries()) {
        open = await scenario.checkout({ price_id, external_ref: `${name} ${index}` })
        killed = statement
        const answer = await call()
        killed = null
        expect(answer.status, `${name}, killed: ${statement}\n${answer.text}`).to.equal(503)
      }
    }
  })
})
