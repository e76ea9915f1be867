import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { paymentMethods } from '#apps/store.ts'
import { operator } from '#commands/caller.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { reconcilePayments } from '#providers/engine/reconcile-payments.ts'
import { unixSeconds } from '#shared/time.ts'
import { disableMethod, enableMethod, forgetVersion } from '../support/operators.ts'
import { openCli } from '../cli/run-cli.ts'
import { countWaiting, testDatabase } from '../support/database.ts'
import { aCheckout, tokenOf, transferred } from '../support/factories.ts'
import { startRival } from '../support/held-connections.ts'
import { signedEvent, type PeerRefund, type PeerSession } from '../support/stripe-peer.ts'
import { until } from '../support/until.ts'
import { PURCHASE } from './payos-shop.ts'
import { startProviderShop, type ProviderShop } from './provider-shop.ts'

const NOTHING = { lookedUp: 0, paid: 0, closed: 0, stillOpen: 0, failed: 0, refundsNoted: 0, refundsEnded: 0 }
const SECOND = { secretKey: 'sk_test_second', webhookSecret: 'whsec_second' }

/** R215. */
describe('credentials at a provider that are replaced', () => {
  let shop: ProviderShop
  let { clock, stripe, stripeKeys, payos, service, app, client } = {} as ProviderShop

  beforeEach(async () => {
    shop = await startProviderShop()
    ;({ clock, stripe, stripeKeys, payos, service, app, client } = shop)
  })
  afterEach(() => shop.stop())

  const setCard = (credentials: object) => enableMethod(service.ctx, 'tester', app.app, 'card', credentials)
  const choose: ProviderShop['choose'] = (...chosen) => shop.choose(...chosen)
  const open = async (method: string, externalRef = 'user-1') => {
    const checkout = await aCheckout(service.ctx, app, { ...PURCHASE, external_ref: externalRef })
    const token = tokenOf(checkout)
    const answer = await choose(token, method)
    expect(answer.status, answer.text).to.equal(200)
    return { id: checkout.transaction_id!, token, url: answer.body.data.redirect_url }
  }
  const byCard = async (externalRef?: string) => {
    const opened = await open('card', externalRef)
    return { ...opened, session: stripe.sessions.at(-1)! }
  }
  const notify = (session: PeerSession, secret: string) => shop.notifyStripe(session, { secret })
  const transaction = async (id: number) => (await client.get(`/api/v1/transactions/${id}`)).body.data
  const keysAsked = () => new Set(stripe.calls.map(({ headers }) => headers.authorization))

  it('a session is looked up, and completed, with those that opened it', async () => {
    const { id, session } = await byCard()
    await setCard(SECOND)
    stripe.pay(session)
    stripe.calls.length = 0
    clock.advance('10m')
    expect(await reconcilePayments(service.ctx)).to.include({ lookedUp: 1, paid: 1 })
    expect(keysAsked()).to.include('Bearer sk_test_first')
    expect(await transaction(id)).to.include({ status: 'completed', amount_received: 99_000 })
  })

  it('a session whose transaction was completed in another way is closed with those that opened it', async () => {
    const { id, session } = await byCard()
    await setCard(SECOND)
    await transferred(service.ctx, id, 99_000, { reference: 'ACB 1' })
    expect(await reconcilePayments(service.ctx)).to.include({ lookedUp: 1, closed: 1 })
    expect(session.status).to.equal('expired')
  })

  it('a notification counts under the secret of every version with open sessions, and under the newest', async () => {
    const old = await byCard()
    await setCard(SECOND)
    const fresh = await byCard('user-2')
    stripe.pay(old.session)
    stripe.pay(fresh.session)
    expect((await notify(old.session, 'whsec_first')).body.data.status).to.equal('processed')
    expect((await notify(fresh.session, 'whsec_second')).body.data.status).to.equal('processed')
    expect((await transaction(old.id)).status).to.equal('completed')
  })

  it('a notification of a version with nothing open and nothing refundable is not believed', async () => {
    await setCard(SECOND)
    const { session } = await byCard()
    stripe.pay(session)
    expect((await notify(session, 'whsec_first')).status).to.equal(400)
    expect((await notify(session, 'whsec_second')).body.data.status).to.equal('processed')
  })

  it('a notification of a version whose payment can be refunded is believed', async () => {
    const { session } = await byCard()
    stripe.pay(session)
    await notify(session, 'whsec_first')
    await setCard(SECOND)
    const { body, headers } = signedEvent(
      'whsec_first',
      unixSeconds(clock.now()),
      'charge.refunded',
      stripe.refund(session, 1000),
    )
    const answer = await service.call('POST', '/api/v1/webhooks/card-provider', { raw: body, headers })
    expect(answer.body.data.status).to.equal('noted')
  })

  describe('and a payment under them that was refunded', () => {
    const refunded = async () => {
      const { id, session } = await byCard(`user-${stripe.sessions.length}`)
      stripe.pay(session)
      await notify(session, 'whsec_first')
      const terms = { transactionId: id, action: 'refund', note: 'fraud' } as const
      await resolveTransaction(service.ctx, operator('mai'), terms)
      return { id, refund: stripe.refunds[0]! }
    }
    const reportFailure = (refund: PeerRefund) => {
      const object = stripe.endRefund(refund, 'failed', 'expired_or_canceled_card')
      const { body, headers } = signedEvent('whsec_first', unixSeconds(clock.now()), 'refund.failed', object)
      return service.call('POST', '/api/v1/webhooks/card-provider', { raw: body, headers })
    }

    it('have a refund that fails within 35 days reported, by the event and by the list', async () => {
      const [reported, listed] = [await refunded(), await refunded()]
      await setCard(SECOND)
      clock.advance('30d')
      stripe.endRefund(listed.refund, 'failed', 'expired_or_canceled_card')
      expect(await reconcilePayments(service.ctx, { all: true })).to.include({ refundsNoted: 1 })
      expect((await reportFailure(reported.refund)).body.data).to.deep.equal({ status: 'noted' })
      for (const { id } of [reported, listed]) expect(await transaction(id)).to.include({ amount_received: 0 })
    })

    it('are not believed any more 36 days after the refund', async () => {
      const { refund } = await refunded()
      await setCard(SECOND)
      clock.advance('36d')
      expect((await reportFailure(refund)).status).to.equal(400)
    })
  })

  it('notifications are verified against the five newest versions at most', async () => {
    const sessions: PeerSession[] = []
    for (let version = 1; version <= 6; version += 1) {
      await setCard({ secretKey: 'sk_test_first', webhookSecret: `whsec_${version}` })
      sessions.push((await byCard(`user-${version}`)).session)
    }
    for (const session of sessions) stripe.pay(session)
    expect((await notify(sessions[0]!, 'whsec_1')).status).to.equal(400)
    expect((await notify(sessions[1]!, 'whsec_2')).body.data.status).to.equal('processed')
    expect((await notify(sessions[5]!, 'whsec_6')).body.data.status).to.equal('processed')
  })

  it('a payment is refunded with those that it was paid under', async () => {
    const { id, session } = await byCard()
    stripe.pay(session)
    await notify(session, 'whsec_first')
    await setCard(SECOND)
    stripe.calls.length = 0
    await openCli({ BILLING_STRIPE_API_BASE: stripe.base }).json([
      'transaction',
      'resolve',
      ...[String(id), '--action', 'refund', '--note', 'fraud', '--yes'],
    ])
    expect(stripe.calls.some(({ method, path }) => method === 'POST' && path === '/v1/refunds')).to.equal(true)
    expect([...keysAsked()]).to.deep.equal(['Bearer sk_test_first'])
    expect((await transaction(id)).status).to.equal('refunded')
  })

  it('a payer who comes back is sent to a fresh session under the new ones, and the old one is closed', async () => {
    const { token, url, session } = await byCard()
    await setCard(SECOND)
    const again = await choose(token, 'card')
    expect(again.body.data.redirect_url).to.not.equal(url)
    expect(stripe.sessions.at(-1)!.account).to.equal('sk_test_second')
    expect(session.status).to.equal('expired')
  })

  it('those that the provider now refuses block no payer, and pause no other account', async () => {
    const { token } = await byCard()
    for (let number = 0; number < 3; number += 1) await byCard(`other-${number}`)
    await setCard(SECOND)
    stripeKeys.shift()
    expect((await choose(token, 'card')).status).to.equal(200)
    const fresh = await byCard('user-2')
    stripe.pay(fresh.session)
    clock.advance('10m')
    const counts = await reconcilePayments(service.ctx)
    expect(counts).to.deep.equal({ ...counts, paid: 1, stillOpen: 1 })
    expect(counts.failed).to.be.greaterThan(0)
    expect((await transaction(fresh.id)).status).to.equal('completed')
  })

  it('those that were forgotten are asked and believed no more, and nothing waits for them', async () => {
    const { id, session } = await byCard()
    await setCard(SECOND)
    const forgotten = await forgetVersion(service.ctx, 'linh', app.app, 'card', 1)
    expect(forgotten).to.deep.equal({ method: 'card', version: 1, closedSessions: 1 })
    stripe.pay(session)
    expect((await notify(session, 'whsec_first')).status).to.equal(400)
    clock.advance('10m')
    expect(await reconcilePayments(service.ctx, { all: true })).to.deep.equal(NOTHING)
    expect((await transaction(id)).status).to.equal('pending')
  })

  it('are forgotten once, and never while another operator enables their method', async () => {
    const { ctx } = service
    const forget = (version: number): Promise<unknown> => forgetVersion(ctx, 'linh', app.app, 'card', version)
    const enable = (): Promise<unknown> => enableMethod(ctx, 'mai', app.app, 'card')
    for (const [version, other] of [
      [1, enable],
      [2, forget],
    ] as const) {
      await disableMethod(ctx, 'tester', app.app, 'card')
      const holder = await startRival(testDatabase().db)
      await holder.update(paymentMethods, { appId: app.app.id, method: 'card' }, { isEnabled: false })
      const both = Promise.allSettled([forget(version), other(version)])
      await Promise.race([both, until(async () => (await countWaiting()) === 2)])
      await holder.rollback()
      expect((await both).map(({ status }) => status)).to.have.members(['fulfilled', 'rejected'])
      await setCard(SECOND)
    }
  })

  it('a PayOS link is completed with those that opened it, by notification and by look-up', async () => {
    const notified = await open('payos')
    const lookedUp = await open('payos', 'user-2')
    await enableMethod(service.ctx, 'tester', app.app, 'payos', {
      clientId: 'client-2',
      apiKey: 'api-2',
      checksumKey: 'checksum-2',
    })
    const [first, second] = payos.links
    const answer = await shop.notifyPayos(first!, 99_000)
    expect(answer.body.data.status).to.equal('processed')
    payos.transfer(second!, 99_000)
    clock.advance('10m')
    expect(await reconcilePayments(service.ctx)).to.include({ lookedUp: 1, paid: 1 })
    for (const { id } of [notified, lookedUp]) expect((await transaction(id)).status).to.equal('completed')
  })
})
