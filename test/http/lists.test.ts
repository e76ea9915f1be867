import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { API_ROUTES } from '#daemon/app.ts'
import { expectFieldError } from '../support/expect-error.ts'
import { MONTHLY } from '../support/factories.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

const LISTS = API_ROUTES.filter(({ isList }) => isList).map(({ path }) => path)

describe('a list that can grow', () => {
  let scenario: Scenario

  beforeEach(async () => {
    scenario = await startScenario()
    const { prices } = await scenario.plan('pro', MONTHLY)
    for (const number of [1, 2]) {
      await scenario.customer()
      await scenario.seller.post('/api/v1/promotions', { code: `CODE-${number}`, percent: 10 })
      await scenario.pay(await scenario.checkout({ external_ref: `user-${number}`, price_id: prices[0] }))
    }
  })

  afterEach(() => scenario.service.stop())

  it('goes on after its own cursors; the cursor of another list is 400, and named', async () => {
    for (const list of LISTS) {
      const { next_cursor: cursor } = (await scenario.seller.get(`${list}?limit=1`)).body
      expect(cursor, list).to.be.a('string')
      for (const other of LISTS) {
        const answer = await scenario.seller.get(`${other}?cursor=${cursor}`)
        if (other === list) expect(answer.body.data, list).to.be.an('array').that.is.not.empty
        else expectFieldError(answer, 'cursor')
      }
    }
  })
})
