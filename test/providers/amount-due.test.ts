import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { getApp } from '#apps/store.ts'
import { operator } from '#commands/caller.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { payments } from '#payments/store.ts'
import { providerSessions } from '#providers/store.ts'
import { formatTimestamp } from '#shared/time.ts'
import { getSubscription } from '#subscriptions/store.ts'
import { providerEvents } from '#transactions/store.ts'
import { reconcilePayments } from '#providers/engine/reconcile-payments.ts'
import type { Envelope, Redirect } from '../support/answers.ts'
import type { Response } from '../support/api.ts'
import { aCheckout, aPlan, aPromotion, priceId, reportPayment, tokenOf, transferred } from '../support/factories.ts'
import { expectError } from '../support/expect-error.ts'
import { setDisabled } from '../support/operators.ts'
import { until } from '../support/until.ts'
import { PURCHASE } from './payos-shop.ts'
import { startProviderShop, type ProviderShop } from './provider-shop.ts'

/** R66, R214, R216 and R217. */
describe('a payer who comes back to the checkout page', () => {
  let shop: ProviderShop
  let { clock, stripe, payos, service, app, client } = {} as ProviderShop

  beforeEach(async () => {
    shop = await startProviderShop({ sandbox: true })
    ;({ clock, stripe, payos, service, app, client } = shop)
  })
  afterEach(() => shop.stop())

  const aPurchase = async (body: object = {}) => {
    const checkout = await aCheckout(service.ctx, app, { ...PURCHASE, ...body })
    return { id: checkout.transaction_id!, token: tokenOf(checkout) }
  }
  const choose: ProviderShop['choose'] = (...chosen) => shop.choose(...chosen)
  const page = (token: string): Promise<Response> =>
    service.call('GET', `/checkout/${token}`, { headers: { Accept: 'text/html' } })
  const typeCode = (token: string): Promise<Response> =>
    service.call('POST', `/checkout/${token}/promotion`, {
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'text/html' },
      raw: 'promotion_code=TET',
    })
  const transfer = (transactionId: number, amount: number) =>
    transferred(service.ctx, transactionId, amount, { reference: `ACB ${transactionId} ${amount}` })
  const transaction = async (id: number) => (await client.get(`/api/v1/transactions/${id}`)).body.data

  describe('after a part was paid', () => {
    it('is asked by card for what is still due, and pays no more than the price', async () => {
      const { id, token } = await aPurchase()
      await transfer(id, 40_000)
      await choose(token, 'card')
      const session = stripe.sessions.at(-1)!
      expect(session.amount_total).to.equal(59_000)
      stripe.pay(session)
      expect((await shop.notifyStripe(session)).body.data.status).to.equal('processed')
      expect(await transaction(id)).to.include({ status: 'completed', flagged: false, amount_received: 99_000 })
    })

    it('is asked by PayOS for what is still due, on a fresh link; the one that asked for all is cancelled', async () => {
      const { id, token } = await aPurchase()
      await choose(token, 'payos')
      expect((await shop.notifyPayos(payos.links[0]!, 40_000)).body.data.status).to.equal('underpaid')
      expect(payos.links[0]!.status, 'its payer may still send the rest there').to.equal('UNDERPAID')
      await choose(token, 'payos')
      const [whole, rest] = payos.links
      expect(whole!.status).to.equal('CANCELLED')
      expect(rest!.amount).to.equal(59_000)
      expect((await shop.notifyPayos(rest!, 59_000)).body.data.status).to.equal('processed')
      expect(await transaction(id)).to.include({ status: 'completed', flagged: false, amount_received: 99_000 })
    })

    it('finds no card session any more that asks for all of it', async () => {
      const { id, token } = await aPurchase()
      await choose(token, 'card')
      await choose(token, 'payos')
      await shop.notifyPayos(payos.links[0]!, 40_000)
      const [whole] = stripe.sessions
      await until(() => whole!.status === 'expired')
      await choose(token, 'card')
      expect(stripe.sessions.at(-1)!.amount_total).to.equal(59_000)
      expect((await transaction(id)).status).to.equal('pending')
    })

    it('has paid a part by card, too, if the first part was moved away while the card was asked for the rest', async () => {
      const [{ id, token }, other] = [await aPurchase(), await aPurchase({ external_ref: 'user-2' })]
      await transfer(id, 40_000)
      await choose(token, 'card')
      const first = await service.ctx.db.one(payments, '')
      const target = { payment_id: first!.id, transaction_id: other.id, note: 'it was for the other' }
      await movePayment(service.ctx, operator('linh'), target)
      const session = stripe.sessions.at(-1)!
      stripe.pay(session)
      expect((await shop.notifyStripe(session)).body.data.status).to.equal('underpaid')
      expect(await transaction(id)).to.include({ flag_reason: 'underpaid', amount_received: 59_000 })
      clock.advance('2d')
      await reconcilePayments(service.ctx, { all: true })
      // The look-up that follows the notification may have claimed it first.
      await until(async () => (await service.ctx.db.one(providerSessions, ''))!.status === 'paid')
      expect(await service.ctx.db.count(providerEvents, "WHERE outcome = 'refused'")).to.equal(0)
    })

    it('pays the rest with the test method', async () => {
      const { id, token } = await aPurchase()
      await transfer(id, 40_000)
      await choose(token, 'test')
      expect(await transaction(id)).to.include({ status: 'completed', flagged: false, amount_received: 99_000 })
    })

    it('is offered only what can take the rest', async () => {
      const { id, token } = await aPurchase({ amount: 1999, currency: 'USD' })
      await reportPayment(service.ctx, {
        provider: 'test',
        eventId: null,
        reference: 'part',
        transactionId: id,
        amount: 1960,
        currency: 'USD',
        paidAt: clock.now(),
      })
      const answer = await choose(token, 'card')
      expect([answer.status, answer.body.error.code]).to.deep.equal([400, 'payment_method_unavailable'])
    })
  })

  it('finds no card session any more after a promotion code that left nothing to pay', async () => {
    const plan = await aPlan(service.ctx, app)
    await aPromotion(service.ctx, app, { percent: 100, on_page: true })
    const checkout = await aCheckout(service.ctx, app, { price_id: priceId(plan) })
    const [id, token] = [checkout.transaction_id!, tokenOf(checkout)]
    await choose(token, 'card')
    await typeCode(token)
    expect((await transaction(id)).status).to.equal('completed')
    await until(() => stripe.sessions[0]!.status === 'expired')
  })

  it('from a PayOS link that was cancelled there gets a fresh one', async () => {
    const { token } = await aPurchase()
    const first = (await choose(token, 'payos')).body.data.redirect_url
    payos.links[0]!.status = 'CANCELLED'
    const second = (await choose(token, 'payos')).body.data.redirect_url
    expect(second).to.not.equal(first)
    expect((await choose(token, 'payos')).body.data.redirect_url, 'and the same one again').to.equal(second)
    expect(payos.links).to.have.length(2)
  })

  it('from a PayOS link that expired there gets a fresh one, and late money of the old one is still found', async () => {
    const { id, token } = await aPurchase()
    const first = (await choose(token, 'payos')).body.data.redirect_url
    const [old] = payos.links
    old!.status = 'EXPIRED'
    const second = (await choose(token, 'payos')).body.data.redirect_url
    expect(second).to.not.equal(first)
    expect((await choose(token, 'payos')).body.data.redirect_url, 'and the same one again').to.equal(second)
    expect(payos.links).to.have.length(2)
    clock.advance('11m')
    expect(await reconcilePayments(service.ctx)).to.include({ lookedUp: 2, stillOpen: 2 })
    payos.transfer(old!, 99_000)
    clock.advance('21m')
    expect(await reconcilePayments(service.ctx)).to.include({ paid: 1 })
    expect(await transaction(id)).to.include({ status: 'completed', amount_received: 99_000 })
  })

  it('from a PayOS link that was paid meanwhile is led to the seller', async () => {
    const { id, token } = await aPurchase()
    await choose(token, 'payos')
    payos.transfer(payos.links[0]!, 99_000)
    expect((await choose(token, 'payos')).body.data.redirect_url).to.equal('https://shop.example/ok')
    expect((await transaction(id)).status).to.equal('completed')
  })

  it('to a session that the provider does not explain is sent there as before', async () => {
    const { token } = await aPurchase()
    const first = (await choose(token, 'card')).body.data.redirect_url
    Object.assign(stripe.sessions[0]!, { payment_status: null, status: 'complete' })
    expect((await choose(token, 'card')).body.data.redirect_url).to.equal(first)
  })

  it('by a renewal link reads Stripe’s page in the language that the browser asks for', async () => {
    const plan = await aPlan(service.ctx, app)
    const bought = await aCheckout(service.ctx, app, { external_ref: 'user-9', price_id: priceId(plan) })
    await transferred(service.ctx, bought.transaction_id!, 99_000)
    const { renewalToken, currentPeriodEnd: end } = await getSubscription(service.ctx.db, app.app.id, 'user-9')
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded', 'Accept-Language': 'vi' }
    const raw = `payment_method=card&period_end=${formatTimestamp(end!)}`
    expect((await service.call('POST', `/renew/${renewalToken}`, { raw, headers })).status).to.equal(303)
    expect(stripe.sessions.at(-1)!.params.locale).to.equal('vi')
  })

  it('and finds the provider unreachable gets 502 provider_error, and is served once it answers', async () => {
    const { token } = await aPurchase()
    const first = (await choose(token, 'payos')).body.data.redirect_url
    payos.mode = 'down'
    const answer = await choose(token, 'payos')
    expect([answer.status, answer.body.error.code]).to.deep.equal([502, 'provider_error'])
    payos.mode = 'up'
    expect((await choose(token, 'payos')).body.data.redirect_url).to.equal(first)
  })

  describe('while a debit is under way', () => {
    const delayed = async () => {
      const opened = await aPurchase({ expires_in: 86_400 })
      await choose(opened.token, 'card')
      const session = stripe.sessions.at(-1)!
      stripe.pay(session, 'delayed')
      return { ...opened, session }
    }

    it('reads that the payment is being processed, and is offered nothing else', async () => {
      const { token, session } = await delayed()
      expect((await shop.notifyStripe(session)).body.data.status).to.equal('ignored')
      const shown = await page(token)
      expect(shown.status).to.equal(200)
      expect(shown.text).to.include('Your payment is being processed.').and.not.include('name="payment_method"')
      expect((await service.call('GET', `/checkout/${token}/status`)).body).to.include({ status: 'pending' })
    })

    it('cannot change its amount by a promotion code', async () => {
      const plan = await aPlan(service.ctx, app)
      await aPromotion(service.ctx, app, { on_page: true })
      const checkout = await aCheckout(service.ctx, app, { price_id: priceId(plan) })
      const [id, token] = [checkout.transaction_id!, tokenOf(checkout)]
      await choose(token, 'card')
      stripe.pay(stripe.sessions.at(-1)!, 'delayed')
      await shop.notifyStripe(stripe.sessions.at(-1)!)
      expect((await page(token)).text).not.to.include('name="promotion_code"')
      expect((await typeCode(token)).status).to.equal(400)
      expect(await transaction(id)).to.include({ status: 'pending', discount: null })
    })

    it('is led back to that page whatever is chosen, hours later too, and no session is opened', async () => {
      const { token } = await delayed()
      for (const wait of ['1m', '10h']) {
        clock.advance(wait)
        await reconcilePayments(service.ctx)
        for (const method of ['card', 'payos'])
          expect((await choose(token, method)).body.data.redirect_url).to.match(new RegExp(`/checkout/${token}$`))
      }
      expect([stripe.sessions.length, payos.links.length]).to.deep.equal([1, 0])
    })

    it('at a provider that only another version has, is led back to that page, and nothing is closed or claimed', async () => {
      const { db } = service.ctx
      const { token, session } = await delayed()
      await shop.notifyStripe(session)
      await db.update(providerSessions, { status: 'processing' }, { provider: 'from-another-version' })
      const before = await db.one(providerSessions, '')
      clock.advance('10h')
      await reconcilePayments(service.ctx, { all: true })
      expect((await choose(token, 'payos')).body.data.redirect_url).to.match(new RegExp(`/checkout/${token}$`))
      expect(await db.one(providerSessions, '')).to.deep.equal(before)
      expect(payos.links).to.have.length(0)
    })

    it('is asked by Stripe anew once it failed, as its notification says', async () => {
      const { token, session } = await delayed()
      await shop.notifyStripe(session)
      expect(
        (await shop.notifyStripe(session, { type: 'checkout.session.async_payment_failed' })).body.data.status,
      ).to.equal('ignored')
      expect((await page(token)).text).to.include('name="payment_method"')
      expect((await choose(token, 'card')).body.data.redirect_url).to.equal(stripe.sessions.at(-1)!.url)
      expect(stripe.sessions).to.have.length(2)
    })

    it('is asked by Stripe anew once it failed, without a notification too', async () => {
      const { token, session } = await delayed()
      await shop.notifyStripe(session)
      stripe.fail(session)
      expect((await choose(token, 'card')).body.data.redirect_url).to.equal(stripe.sessions.at(-1)!.url)
      expect(stripe.sessions).to.have.length(2)
    })

    it('by a renewal link that has failed or paid meanwhile, without a notification, goes on as the link says', async () => {
      const plan = await aPlan(service.ctx, app)
      const bought = await aCheckout(service.ctx, app, { external_ref: 'user-9', price_id: priceId(plan) })
      await transferred(service.ctx, bought.transaction_id!, 99_000)
      const { renewalToken } = await getSubscription(service.ctx.db, app.app.id, 'user-9')
      const renew = async () => {
        const raw = JSON.stringify({ payment_method: 'card' })
        const headers = { 'Content-Type': 'application/json' }
        const answer = await service.call<Envelope<Redirect>>('POST', `/renew/${renewalToken}`, { raw, headers })
        return answer.body.data.redirect_url
      }
      const debit = async () => {
        expect(await renew()).to.equal(stripe.sessions.at(-1)!.url)
        const session = stripe.sessions.at(-1)!
        stripe.pay(session, 'delayed')
        await shop.notifyStripe(session)
        expect(await renew(), 'it is being processed').to.match(/\/checkout\/\w{64}$/)
        return session
      }
      stripe.fail(await debit())
      const last = await debit()
      clock.advance('2h')
      stripe.fail(last)
      const paid = await debit()
      expect(stripe.sessions).to.have.length(3)
      stripe.settle(paid)
      expect(await renew()).to.match(new RegExp(`/renew/${renewalToken}$`))
      expect(stripe.sessions).to.have.length(3)
    })

    it('by the renewal link of an app that was disabled meanwhile opens nothing new once it failed after its checkout expired', async () => {
      const { ctx } = service
      const plan = await aPlan(ctx, app)
      const bought = await aCheckout(ctx, app, { external_ref: 'user-9', price_id: priceId(plan) })
      await transferred(ctx, bought.transaction_id!, 99_000)
      const { renewalToken } = await getSubscription(ctx.db, app.app.id, 'user-9')
      const renew = () => {
        const headers = { 'Content-Type': 'application/json' }
        const raw = JSON.stringify({ payment_method: 'card' })
        return service.call('POST', `/renew/${renewalToken}`, { raw, headers })
      }
      await renew()
      const [session] = stripe.sessions
      stripe.pay(session!, 'delayed')
      await shop.notifyStripe(session!)
      await setDisabled(ctx, 'tester', await getApp(ctx.db, app.app.id), true)
      clock.advance('2h')
      stripe.fail(session!)
      expectError(await renew(), 403, 'app_disabled')
      expect(stripe.sessions).to.have.length(1)
    })

    it('has paid once it came', async () => {
      const { id, token, session } = await delayed()
      await shop.notifyStripe(session)
      stripe.settle(session)
      const answer = await shop.notifyStripe(session, { type: 'checkout.session.async_payment_succeeded' })
      expect(answer.body.data.status).to.equal('processed')
      expect(await transaction(id)).to.include({ status: 'completed', flagged: false })
      expect((await page(token)).status).to.equal(303)
    })

    it('which failed of others, and what they paid in another way, delay nobody’s payment', async () => {
      for (let number = 0; number < 8; number += 1) {
        const other = await aPurchase({ external_ref: `debit-${number}` })
        await choose(other.token, 'card')
        stripe.pay(stripe.sessions.at(-1)!, 'delayed')
        await transfer(other.id, 99_000)
      }
      const { id, token } = await aPurchase({ external_ref: 'user-9' })
      await choose(token, 'card')
      stripe.pay(stripe.sessions.at(-1)!)
      clock.advance('10m')
      expect(await reconcilePayments(service.ctx)).to.include({ lookedUp: 9, paid: 1, stillOpen: 8, failed: 0 })
      expect((await transaction(id)).status).to.equal('completed')
    })
  })
})
