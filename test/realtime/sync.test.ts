import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { getApp } from '#apps/store.ts'
import { resyncNodes } from '#subscriptions/resync-node.ts'
import { startClientScenario, unixMs, type ClientScenario } from '../support/client-scenario.ts'
import { FREE_TRIAL, LIFETIME, MONTHLY, PAID_TRIAL, reportPayment, YEARLY } from '../support/factories.ts'
import { startOidcIssuer, type OidcIssuer } from '../support/oidc-issuer.ts'
import { startRealtimePeer, type RealtimePeer } from '../support/realtime-peer.ts'
import { setDisabled, switchTo } from '../support/operators.ts'

/** Each case in which a node is written or not (R160 to R163). The clock starts on 1 March 2026, 10:00. */
describe('realtime database sync', () => {
  let peer: RealtimePeer
  let issuer: OidcIssuer
  let scenario: ClientScenario
  before(async () => {
    issuer = await startOidcIssuer()
  })
  after(async () => {
    await issuer.stop()
  })
  beforeEach(async () => {
    peer = await startRealtimePeer()
    scenario = await startClientScenario(peer, issuer)
  })
  afterEach(async () => {
    await scenario.stop()
    await peer.stop()
  })

  const premium = (end: string | null, writtenAt: string) => ({
    plan: 'premium',
    // This database stores a null as an absent key.
    ...(end === null ? {} : { expiresAt: unixMs(end) }),
    purchaseSource: 'web',
    updatedAt: unixMs(writtenAt),
  })

  it('never bought: no node', async () => {
    const [monthly] = await scenario.plan('pro', MONTHLY)
    await scenario.checkout({ price_id: monthly })
    expect(await scenario.node()).to.equal(null)
    expect(peer.calls).to.deep.equal([])
  })

  it('paid monthly price: premium until the end of the paid period', async () => {
    const [monthly] = await scenario.plan('pro', MONTHLY)
    await scenario.buy(monthly!)
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-03-01 10:00:00'))
    expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
  })

  it('paid yearly price: premium until the end of the paid period', async () => {
    const [yearly] = await scenario.plan('pro', YEARLY)
    await scenario.buy(yearly!)
    expect(await scenario.node()).to.deep.equal(premium('2027-03-01 10:00:00', '2026-03-01 10:00:00'))
  })

  it('free trial: premium until the trial ends, written during the checkout call', async () => {
    const [trial] = await scenario.plan('pro', { ...MONTHLY, trial: FREE_TRIAL })
    const checkout = await scenario.checkout({ price_id: trial })
    expect(checkout.activated).to.equal(true)
    expect(peer.puts()).to.have.length(1)
    expect(await scenario.node()).to.deep.equal(premium('2026-03-08 10:00:00', '2026-03-01 10:00:00'))
  })

  it('paid trial: nothing until the trial price is paid, then premium until the trial ends', async () => {
    const [trial] = await scenario.plan('pro', { ...MONTHLY, trial: PAID_TRIAL })
    const checkout = await scenario.checkout({ price_id: trial })
    expect(await scenario.node()).to.equal(null)
    await scenario.pay(checkout)
    expect(await scenario.node()).to.deep.equal(premium('2026-03-08 10:00:00', '2026-03-01 10:00:00'))
  })

  it('period ended without payment: nothing is written, so premium with a past end', async () => {
    const [monthly] = await scenario.plan('pro', MONTHLY)
    await scenario.buy(monthly!)
    scenario.clock.set('2026-05-01 00:00:00')
    expect((await scenario.subscription()).status).to.equal('expired')
    expect(peer.puts()).to.have.length(1)
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-03-01 10:00:00'))
  })

  it('renewal while valid: the end moves to the end of the new period', async () => {
    const [monthly] = await scenario.plan('pro', MONTHLY)
    await scenario.buy(monthly!)
    scenario.clock.set('2026-03-20 08:00:00')
    await scenario.buy(monthly!)
    expect(await scenario.node()).to.deep.equal(premium('2026-05-01 10:00:00', '2026-03-20 08:00:00'))
  })

  it('renewal after expiry: a new period from payment time', async () => {
    const [monthly] = await scenario.plan('pro', MONTHLY)
    await scenario.buy(monthly!)
    scenario.clock.set('2026-04-05 12:00:00')
    await scenario.buy(monthly!)
    expect(await scenario.node()).to.deep.equal(premium('2026-05-05 12:00:00', '2026-04-05 12:00:00'))
  })

  it('lifetime price: premium without expiry', async () => {
    const [lifetime] = await scenario.plan('pro', LIFETIME)
    await scenario.buy(lifetime!)
    expect(peer.puts()[0]?.body).to.deep.equal({ ...premium(null, '2026-03-01 10:00:00'), expiresAt: null })
    expect(await scenario.node()).to.deep.equal(premium(null, '2026-03-01 10:00:00'))
  })

  it('switch to lifetime by plan switch: unchanged until paid at the next renewal, then premium without expiry', async () => {
    const [monthly, lifetime] = await scenario.plan('pro', MONTHLY, LIFETIME)
    await scenario.buy(monthly!)
    scenario.clock.set('2026-03-10 10:00:00')
    await switchTo(scenario.service.ctx, 'tester', scenario.app.app, lifetime!)
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-03-10 10:00:00'))
    await scenario.buy(lifetime!)
    expect(await scenario.node()).to.deep.equal(premium(null, '2026-03-10 10:00:00'))
  })

  it('payment after the user owns lifetime: not applied, nothing written', async () => {
    const [monthly, lifetime] = await scenario.plan('pro', MONTHLY, LIFETIME)
    const late = await scenario.checkout({ price_id: monthly })
    await scenario.buy(lifetime!)
    scenario.clock.set('2026-03-01 10:30:00')
    await scenario.pay(late)
    expect((await scenario.as('user-1').get(`/api/v1/transactions/${late.transaction_id}`)).body.data).to.include({
      status: 'completed',
      flag_reason: 'already_lifetime',
    })
    expect(peer.puts()).to.have.length(1)
    expect(await scenario.node()).to.deep.equal(premium(null, '2026-03-01 10:00:00'))
  })

  it('plan switch or customer attached: the same values with a new write time', async () => {
    const [monthly, yearly] = await scenario.plan('pro', MONTHLY, YEARLY)
    await scenario.buy(monthly!)
    scenario.clock.set('2026-03-02 10:00:00')
    await switchTo(scenario.service.ctx, 'tester', scenario.app.app, yearly!)
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-03-02 10:00:00'))
    scenario.clock.set('2026-03-03 10:00:00')
    const user = scenario.as('user-1')
    const customer = await user.post('/api/v1/customers', { name: 'An', email: 'an@example.com' })
    const attached = await user.put('/api/v1/subscriptions/user-1/customer', { customer_id: customer.body.data.id })
    expect(attached.status, attached.text).to.equal(200)
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-03-03 10:00:00'))
  })

  it('plan switch or customer attached after expiry: the same values, never free', async () => {
    const [monthly, yearly] = await scenario.plan('pro', MONTHLY, YEARLY)
    await scenario.buy(monthly!)
    scenario.clock.set('2026-06-01 10:00:00')
    await switchTo(scenario.service.ctx, 'tester', scenario.app.app, yearly!)
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-06-01 10:00:00'))
    scenario.clock.set('2026-06-02 10:00:00')
    const user = scenario.as('user-1')
    const customer = await user.post('/api/v1/customers', { name: 'An', email: 'an@example.com' })
    await user.put('/api/v1/subscriptions/user-1/customer', { customer_id: customer.body.data.id })
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-06-02 10:00:00'))
  })

  it('another price of the same plan while valid: the end is extended', async () => {
    const [monthly, yearly] = await scenario.plan('pro', MONTHLY, YEARLY)
    await scenario.buy(monthly!)
    scenario.clock.set('2026-03-10 10:00:00')
    await scenario.buy(yearly!)
    expect(await scenario.node()).to.deep.equal(premium('2027-04-01 10:00:00', '2026-03-10 10:00:00'))
  })

  it('a price of another plan while valid: a new period from payment time, no proration', async () => {
    const [yearly] = await scenario.plan('pro', YEARLY)
    const [monthly] = await scenario.plan('basic', MONTHLY)
    await scenario.buy(yearly!)
    scenario.clock.set('2026-03-10 10:00:00')
    await scenario.buy(monthly!)
    expect(await scenario.node()).to.deep.equal(premium('2026-04-10 10:00:00', '2026-03-10 10:00:00'))
  })

  it('app disabled: payments in progress complete and are written', async () => {
    const [monthly] = await scenario.plan('pro', MONTHLY)
    const checkout = await scenario.checkout({ price_id: monthly })
    await setDisabled(scenario.service.ctx, 'tester', scenario.app.app, true)
    expect((await scenario.as('user-1').get('/api/v1/plans')).body.error.code).to.equal('app_disabled')
    await scenario.pay(checkout)
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-03-01 10:00:00'))
  })

  it('duplicate provider notification: the same data is written again', async () => {
    const [monthly] = await scenario.plan('pro', MONTHLY)
    const checkout = await scenario.checkout({ price_id: monthly })
    const payment = {
      provider: 'stripe',
      reference: 'pi_1',
      transactionId: checkout.transaction_id,
      amount: MONTHLY.amount,
      currency: MONTHLY.currency,
      paidAt: scenario.clock.now(),
    } as const
    await reportPayment(scenario.service.ctx, { ...payment, eventId: 'evt_1' })
    scenario.clock.set('2026-03-01 10:05:00')
    const again = await reportPayment(scenario.service.ctx, { ...payment, eventId: 'evt_2' })
    expect(again.kind).to.be.oneOf(['known_money', 'duplicate'])
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-03-01 10:05:00'))
  })

  it('write fails: the subscription is correct, the node keeps its old value, and a re-sync writes the current state', async () => {
    const [monthly] = await scenario.plan('pro', MONTHLY)
    await scenario.buy(monthly!)
    scenario.clock.set('2026-03-20 08:00:00')
    peer.behaviour = 503
    await scenario.buy(monthly!)
    peer.behaviour = 'ok'
    expect((await scenario.subscription()).current_period_end).to.equal('2026-05-01 10:00:00')
    expect(await scenario.node()).to.deep.equal(premium('2026-04-01 10:00:00', '2026-03-01 10:00:00'))
    const { ctx } = scenario.service
    expect(await resyncNodes(ctx, operator('linh'), { app: scenario.app.app, scope: 'failed' })).to.include({
      written: 1,
      failed: 0,
    })
    expect(await scenario.node()).to.deep.equal(premium('2026-05-01 10:00:00', '2026-03-20 08:00:00'))
  })

  it('re-sync after expiry: free without expiry', async () => {
    const [monthly] = await scenario.plan('pro', MONTHLY)
    await scenario.buy(monthly!)
    scenario.clock.set('2026-04-01 10:00:00')
    const app = await getApp(scenario.service.ctx.db, scenario.app.app.id)
    expect(
      await resyncNodes(scenario.service.ctx, operator('linh'), { app, scope: { externalRef: 'user-1' } }),
    ).to.include({
      written: 1,
      failed: 0,
    })
    expect(peer.puts().at(-1)?.body).to.have.property('expiresAt', null)
    expect(await scenario.node()).to.deep.equal({
      plan: 'free',
      purchaseSource: 'web',
      updatedAt: unixMs('2026-04-01 10:00:00'),
    })
  })
})
