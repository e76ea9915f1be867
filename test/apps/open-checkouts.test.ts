import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { updateApp } from '#apps/update-app.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { checkoutSessions, findNextFreeSlot } from '#checkout/store.ts'
import type { PlanWithPrices } from '#plans/store.ts'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { transactions } from '#transactions/store.ts'
import { startService, type Response, type TestService } from '../support/api.ts'
import { copyRow } from '../support/copies.ts'
import { testDatabase } from '../support/database.ts'
import { expectError } from '../support/expect-error.ts'
import {
  aCheckout,
  anApp,
  aPlan,
  FREE_TRIAL,
  MONTHLY,
  priceId,
  tokenOf,
  type TestApp,
  SERVER,
} from '../support/factories.ts'
import { startIdentityClients, type IdentityClients } from '../support/identity-clients.ts'
import { plansOf } from '../support/query-plans.ts'
import { asAppTime } from '#shared/time.ts'

const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
const HALF_AN_HOUR = 1800
const DAY = 86_400

/** Limits what one end user can write to the database, which stores every checkout permanently. */
describe('the open checkouts of one end user', () => {
  let service: TestService
  let clients: IdentityClients
  let app: TestApp
  let plan: PlanWithPrices

  beforeEach(async () => {
    service = await startService()
    clients = await startIdentityClients()
    app = await clients.app(service.ctx)
    plan = await aPlan(service.ctx, app)
  })

  afterEach(async () => {
    await service.stop()
    await clients.stop()
  })

  interface OpenOptions {
    readonly sub?: string
    readonly through?: TestApp
    readonly headers?: Record<string, string>
  }
  /** A checkout of the end user's client; half an hour, unless `body` says otherwise. */
  const open = async (body: object = {}, { sub = 'user-1', through = app, headers = {} }: OpenOptions = {}) =>
    service.call('POST', '/api/v1/checkout-sessions', {
      headers: { ...(await clients.headers(service.ctx, through, sub)), ...headers },
      raw: JSON.stringify({
        external_ref: sub,
        mode: 'subscription',
        price_id: priceId(plan),
        expires_in: HALF_AN_HOUR,
        ...URLS,
        ...body,
      }),
    })
  /** Adds `count` open checkouts of `user-1` that last a day: one that is opened, whose token is returned, and copies of its rows. */
  const fill = async (count: number, through: TestApp = app): Promise<string> => {
    const { ctx } = service
    const opened = await aCheckout(ctx, through, { price_id: priceId(plan), expires_in: DAY })
    await copyRow(testDatabase().db, 'transactions', count - 1, {})
    const owned = { token: 'SHA2(CONCAT(token, seq), 256)', transaction_id: 'transaction_id + seq' }
    await copyRow(testDatabase().db, 'checkout_sessions', count - 1, owned)
    return tokenOf(opened)
  }
  const expectFull = (answer: Response, retryAfter: number): void => {
    expectError(answer, 429, 'rate_limited')
    expect(answer.headers['retry-after']).to.equal(String(retryAfter))
    expect(answer.body.error.message).to.include('100 open checkouts').and.include(`${retryAfter} s`)
  }

  it('are a hundred: one more is 429 with the seconds until a slot is free, and writes nothing', async () => {
    const { clock } = service.ctx
    await fill(99)
    expect((await open()).status).to.equal(201)
    expectFull(await open(), 1800)
    clock.advance('25m')
    expectFull(await open(), 300)
    clock.advance('299s')
    expectFull(await open(), 1)
    expect([
      await service.ctx.db.count(transactions, ''),
      await service.ctx.db.count(checkoutSessions, ''),
    ]).to.deep.equal([100, 100])
    clock.advance('1s')
    expect((await open({ expires_in: DAY })).status).to.equal(201)
    // The next one expires in most of a day. Retry-After is an hour at most, because a payment frees a slot, too.
    expectFull(await open(), 3600)
  })

  it('with more open checkouts than a client may open have to wait until fewer than a hundred are open', async () => {
    for (const minutes of [30, 40, 50])
      await aCheckout(service.ctx, app, { price_id: priceId(plan), expires_in: minutes * 60 })
    await fill(99)
    expectFull(await open(), 50 * 60)
  })

  it('count until they are paid', async () => {
    const token = await fill(100)
    expectFull(await open(), 3600)
    await chooseMethod(service.ctx, token, 'test')
    expect((await open()).status).to.equal(201)
    expectFull(await open(), 1800)
  })

  it("count in the app's own time", async () => {
    await fill(100)
    expectFull(await open(), 3600)
    await advanceTestClock(service.ctx, SERVER, app.app, { advance_seconds: DAY - 60 })
    expectFull(await open(), 60)
    await advanceTestClock(service.ctx, SERVER, app.app, { advance_seconds: 60 })
    expect((await open()).status).to.equal(201)
  })

  it('count in both modes', async () => {
    await perform(service.ctx, operator('linh'), updateApp, { client_amounts: true }, { app: app.app })
    await fill(99)
    const purchase = { mode: 'payment', price_id: undefined, plan_ref: 'book', amount: 1, currency: 'VND' }
    expect((await open(purchase)).status).to.equal(201)
    expectFull(await open(purchase), 1800)
    expectFull(await open(), 1800)
  })

  it("do not count for another end user, nor for the same one's name in another app", async () => {
    await fill(100)
    expect((await open({}, { sub: 'user-2' })).status).to.equal(201)
    const other = await clients.app(service.ctx)
    const price = priceId(await aPlan(service.ctx, other))
    expect((await open({ price_id: price }, { through: other })).status).to.equal(201)
  })

  it('do not keep a free trial from activating, which opens nothing, nor does that count', async () => {
    const trials = await aPlan(service.ctx, app, { prices: [{ ...MONTHLY, trial: FREE_TRIAL }] })
    await fill(99)
    const first = await open({ price_id: priceId(trials) })
    expect(first.body.data, first.text).to.include({ activated: true })
    expect((await open()).status).to.equal(201)
    expectFull(await open(), 1800)
    const others = await aPlan(service.ctx, app, { prices: [{ ...MONTHLY, trial: FREE_TRIAL }] })
    const refused = await open({ price_id: priceId(others), skip_trial: true })
    expectFull(refused, 1800)
    const stranger = await open({ price_id: priceId(others) }, { sub: 'user-2' })
    expect(stranger.body.data, stranger.text).to.include({ activated: true })
  })

  it("are not limited for a seller's server", async () => {
    const server = await anApp(service.ctx)
    plan = await aPlan(service.ctx, server)
    await fill(100, server)
    const body = { external_ref: 'user-1', mode: 'subscription', price_id: priceId(plan), ...URLS }
    const answer = await service.seller(server).post('/api/v1/checkout-sessions', body)
    expect(answer.status, answer.text).to.equal(201)
  })

  it('are exactly a hundred if thirty requests arrive at once for the last ten slots', async () => {
    await fill(90)
    const answers = await Promise.all(Array.from({ length: 30 }, () => open()))
    const counts = [201, 429].map((status) => answers.filter((answer) => answer.status === status).length)
    expect(counts, answers.find(({ status }) => status >= 500)?.text).to.deep.equal([10, 20])
    expect(await service.ctx.db.count(checkoutSessions, '')).to.equal(100)
  })

  it('refuse an Idempotency-Key only for now: the same request runs when a slot is free', async () => {
    const options = { headers: { 'Idempotency-Key': 'once' } }
    const token = await fill(100)
    expectFull(await open({}, options), 3600)
    await chooseMethod(service.ctx, token, 'test')
    const opened = await open({}, options)
    expect(opened.status, opened.text).to.equal(201)
    expect((await open({}, options)).text).to.equal(opened.text)
  })

  it('are counted in one index, the last to expire first, past all that expired', async () => {
    const { ctx } = service
    await fill(2)
    const plans = await plansOf(ctx.db, (db) => findNextFreeSlot(db, 1, 100, asAppTime(ctx.clock.now())))
    expect(plans.map(({ table, key }) => [table, key])).to.deep.equal([
      ['s', 'checkout_sessions_end_user_expires'],
      ['t', 'PRIMARY'],
    ])
    expect(plans[0]!.Extra).to.include('Using index').and.not.include('filesort')
  })
})
