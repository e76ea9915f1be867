import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { getTransactionTimeline } from '#support/transaction-timeline.ts'
import { expectError, expectFieldError } from '../support/expect-error.ts'
import { startIdentityClients } from '../support/identity-clients.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'
import { MONTHLY } from '../support/factories.ts'

const PATH = '/api/v1/checkout-sessions'
const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
const PURCHASE = { external_ref: 'user-1', mode: 'payment', plan_ref: 'book', amount: 5000, currency: 'VND', ...URLS }
const METADATA = { 'order.no-1_A': 'A-1042', note: 'dòng một\nline two "quoted" 🎁', empty: '' }

describe('the metadata of a checkout', () => {
  let scenario: Scenario

  beforeEach(async () => {
    scenario = await startScenario()
  })

  afterEach(() => scenario.service.stop())

  const open = (metadata: unknown) => scenario.seller.post(PATH, { ...PURCHASE, metadata })
  const shownOf = async (id: number | null) => (await scenario.transaction(id!)).metadata

  it('is kept on the transaction in both modes, and shown by the transaction, the list and transaction show', async () => {
    const { prices } = await scenario.plan('pro', MONTHLY)
    const subscribed = await scenario.checkout({ price_id: prices[0], metadata: METADATA })
    const bought = (await open(METADATA)).body.data
    const plain = await scenario.checkout({ price_id: prices[0] })
    const none = await scenario.checkout({ price_id: prices[0], metadata: {} })
    expect(await shownOf(subscribed.transaction_id)).to.deep.equal(METADATA)
    expect(await shownOf(bought.transaction_id)).to.deep.equal(METADATA)
    const { data } = (await scenario.seller.get('/api/v1/transactions')).body
    expect(data.map(({ metadata }) => metadata)).to.deep.equal([{}, {}, METADATA, METADATA])
    expect(await shownOf(plain.transaction_id)).to.deep.equal({})
    expect(await shownOf(none.transaction_id)).to.deep.equal({})
    const timeline = await getTransactionTimeline(scenario.service.ctx, bought.transaction_id!)
    expect(timeline.transaction.metadata).to.deep.equal(METADATA)
  })

  it('is on transaction.completed, with the transaction and its customer', async () => {
    const customer = await scenario.customer()
    const answer = await scenario.seller.post(PATH, { ...PURCHASE, customer_id: customer, metadata: METADATA })
    await scenario.pay(answer.body.data)
    expect(await scenario.newEvents()).to.deep.equal([
      {
        type: 'transaction.completed',
        data: {
          transaction_id: answer.body.data.transaction_id,
          external_ref: 'user-1',
          paygate_customer_id: customer,
          plan_ref: 'book',
          amount: 5000,
          currency: 'VND',
          status: 'completed',
          metadata: METADATA,
        },
      },
    ])
  })

  it('has at most 20 keys of 1 to 40 characters, and texts of at most 500 code points', async () => {
    const most = Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`k${at}`.padEnd(40, '_'), '🎁'.repeat(500)]))
    const accepted = await open(most)
    expect(accepted.status, accepted.text.slice(0, 200)).to.equal(201)
    expect(await shownOf(accepted.body.data.transaction_id)).to.deep.equal(most)
    const bad: [key: string, metadata: object][] = [
      ['one-more', { ...most, 'one-more': '' }],
      ['k'.repeat(41), { ['k'.repeat(41)]: 'x' }],
      ['', { '': 'x' }],
      ['a b', { good: 'x', 'a b': 'x' }],
      ['größe', { größe: 'x' }],
      ['long', { long: 'x'.repeat(501) }],
      ['number', { number: 1 }],
      ['nothing', { nothing: null }],
      ['deep', { deep: { x: 'y' } }],
      ['list', { list: ['x'] }],
      ['control', { control: 'a\u0000b' }],
    ]
    for (const [key, metadata] of bad) expectFieldError(await open(metadata), `metadata.${key}`)
    for (const metadata of [null, [], ['x'], 'x', 1, true]) expectFieldError(await open(metadata), 'metadata')
  })

  it('keeps keys that JavaScript has a meaning for', async () => {
    const raw = JSON.stringify(PURCHASE).replace(
      /}$/,
      ',"metadata":{"__proto__":"a","constructor":"b","toString":"c"}}',
    )
    const { body } = await scenario.seller.post(PATH, undefined, { raw })
    const answer = await scenario.seller.get(`/api/v1/transactions/${body.data.transaction_id}`)
    expect(answer.text).to.contain('"metadata":{"__proto__":"a","constructor":"b","toString":"c"}')
  })

  it('is on no hosted page and in no log', async () => {
    const { checkout_url } = (await open({ order: 'secret-of-the-seller' })).body.data
    const page = await scenario.service.call('GET', checkout_url)
    expect(page.status).to.equal(200)
    await scenario.pay({ checkout_url })
    expect(page.text).not.to.contain('secret-of-the-seller')
    expect(scenario.service.ctx.logged.join('')).not.to.contain('secret-of-the-seller')
  })

  it("is 403 forbidden to an end user's client, whatever its value and the rest of the body are", async () => {
    const clients = await startIdentityClients()
    const { service } = scenario
    const app = await clients.app(service.ctx)
    const price_id = 'price_1'
    const body = { external_ref: 'user-1', mode: 'subscription', price_id, ...URLS }
    const headers = await clients.headers(service.ctx, app, 'user-1')
    for (const metadata of [{ order: 'A-1' }, {}, { 'not a key': 1 }, null, 'x', 7, []])
      for (const rest of [body, { ...body, price_id: 7 }]) {
        const raw = JSON.stringify({ ...rest, metadata })
        expectError(await service.call('POST', PATH, { headers, raw }), 403, 'forbidden')
      }
    await clients.stop()
  })
})
