import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { providerSessions } from '#providers/store.ts'
import { TransactionOutput } from '#transactions/present.ts'
import { addMs, MINUTE_MS, unixSeconds } from '#shared/time.ts'
import { aCheckout, aCustomer, tokenOf } from '../support/factories.ts'
import { PURCHASE, startCardShop, type CardShop } from './card-shop.ts'

describe('paying by card', () => {
  let shop: CardShop
  beforeEach(async () => {
    shop = await startCardShop()
  })
  afterEach(() => shop.stop())

  const sessionsStored = async (): Promise<{ status: string; reference: string | null }[]> => {
    const rows = await shop.service.ctx.db.all(providerSessions, 'ORDER BY id')
    return rows.map(({ status, reference }) => ({ status, reference }))
  }

  it('the payer is sent to a Checkout Session that names transaction and app', async () => {
    const { session, transactionId, token, url } = await shop.open()
    expect(url).to.match(/^https:\/\/checkout\.stripe\.com\//)
    expect(session.params).to.deep.include({
      mode: 'payment',
      client_reference_id: String(transactionId),
      metadata: { transaction_id: String(transactionId), app_id: String(shop.first.app.app.id) },
      payment_intent_data: { metadata: session.metadata },
      adaptive_pricing: { enabled: false },
      success_url: 'https://shop.example/ok',
      cancel_url: 'https://shop.example/no',
      locale: 'en',
    })
    expect(session.params.line_items).to.deep.equal([
      { quantity: 1, price_data: { currency: 'usd', unit_amount: 1999, product_data: { name: 'book' } } },
    ])
    expect(await sessionsStored()).to.deep.equal([{ status: 'open', reference: session.id }])
    expect((await shop.choose(token)).body.data.redirect_url).to.equal(url)
  })

  it('the payer reads Stripe’s page in the language of ours: the one picked, asked for by the browser, or the customer’s', async () => {
    const { ctx } = shop.service
    const { id } = await aCustomer(ctx, shop.first.app, { locale: 'vi' })
    const form = { type: 'application/x-www-form-urlencoded', raw: 'payment_method=card' }
    const program = { type: 'application/json', raw: '{"payment_method":"card"}' }
    const chosenIn = async (query: string, language: string | null, body: object = {}, { type, raw } = form) => {
      const token = tokenOf(await aCheckout(ctx, shop.first.app, { ...PURCHASE, ...body }))
      const headers = { 'Content-Type': type, ...(language === null ? {} : { 'Accept-Language': language }) }
      const { status } = await shop.service.call('POST', `/checkout/${token}/resolve${query}`, { headers, raw })
      expect(status).to.equal(type === form.type ? 303 : 200)
      return shop.stripe.sessions.at(-1)!.params.locale
    }
    expect(await chosenIn('', null)).to.equal('en')
    expect(await chosenIn('', 'vi-VN,vi;q=0.9,en;q=0.8')).to.equal('vi')
    expect(await chosenIn('?lang=vi', 'en-GB,en;q=0.9')).to.equal('vi')
    const own = { external_ref: 'reader', customer_id: `cus_${id}` }
    expect(await chosenIn('', '*', own)).to.equal('vi')
    expect(await chosenIn('', 'en', own)).to.equal('en')
    expect(await chosenIn('', 'en', own, program), 'a seller’s server').to.equal('vi')
  })

  it('provider_code is null until the payer chooses, and then that of the choice, as the reference says', async () => {
    const { client } = shop.first
    const { transaction_id } = await aCheckout(shop.service.ctx, shop.first.app, PURCHASE)
    const read = async (id: number) => (await client.get(`/api/v1/transactions/${id}`)).body.data
    expect(await read(transaction_id!)).to.deep.include({ status: 'pending', provider_code: null })
    const { transactionId } = await shop.open()
    expect(await read(transactionId)).to.deep.include({ status: 'pending', provider_code: 'stripe' })
    expect(TransactionOutput.shape.provider_code.description).to.include('the one that the payer chose last')
  })

  it('the first call carries our idempotency key and no telemetry', async () => {
    const { transactionId } = await shop.open()
    const { headers } = shop.stripe.calls[0]!
    expect(headers['idempotency-key']).to.match(new RegExp(`^paygate-${transactionId}-\\d+-[0-9a-f]{16}$`))
    expect(headers).not.to.have.property('x-stripe-client-telemetry')
  })

  it("the customer's address and language go to Stripe", async () => {
    const customer = await aCustomer(shop.service.ctx, shop.first.app, { locale: 'vi' })
    const { session } = await shop.open(shop.first, { customer_id: `cus_${customer.id}` })
    expect(session.params).to.deep.include({ customer_email: 'an@example.com', locale: 'vi' })
  })

  it('an address that Stripe finds wrong does not keep the payer from paying', async () => {
    shop.stripe.refusesEmail = true
    const customer = await aCustomer(shop.service.ctx, shop.first.app)
    const { session } = await shop.open(shop.first, { customer_id: `cus_${customer.id}` })
    expect(session.params).not.to.have.property('customer_email')
  })

  for (const [minutes, expected, why] of [
    [30, 32, 'Stripe takes at least 30 minutes, by its own clock'],
    [60, 60, 'it ends with the checkout'],
    [24 * 60, 24 * 60 - 2, 'Stripe takes at most 24 hours, by its own clock'],
  ] as const) {
    it(`a checkout of ${minutes} minutes opens a session of ${expected} minutes: ${why}`, async () => {
      const { session } = await shop.open(shop.first, { expires_in: minutes * 60 })
      expect(session.expires_at).to.equal(unixSeconds(addMs(shop.clock.now(), expected * MINUTE_MS)))
    })
  }

  for (const [amount, currency, unitAmount] of [
    [1999, 'EUR', 1999],
    [99_000, 'VND', 99_000],
    [5000, 'UGX', 500_000],
    [700, 'ISK', 70_000],
    [12_340, 'KWD', 12_340],
  ] as const) {
    it(`${amount} ${currency} is asked for as ${unitAmount}, and is paid`, async () => {
      const { session, transactionId } = await shop.open(shop.first, { amount, currency })
      expect(session.amount_total).to.equal(unitAmount)
      expect(session.currency).to.equal(currency.toLowerCase())
      shop.stripe.pay(session)
      expect((await shop.notify(shop.event(session))).body.data.status).to.equal('processed')
      const { body } = await shop.first.client.get(`/api/v1/transactions/${transactionId}`)
      expect(body.data).to.include({ status: 'completed', amount, amount_received: amount, provider_code: 'stripe' })
    })
  }

  for (const [amount, currency, why] of [
    [12_345, 'KWD', 'its last digit is not 0'],
    [49, 'USD', 'it is below the least'],
    [100_000_000, 'USD', 'it has too many digits'],
  ] as const) {
    it(`${amount} ${currency} by card is payment_method_unavailable: ${why}`, async () => {
      const answer = await shop.first.client.post('/api/v1/checkout-sessions', {
        external_ref: 'user-1',
        mode: 'payment',
        plan_ref: 'book',
        amount,
        currency,
        payment_method: 'card',
        success_url: 'https://shop.example/ok',
        cancel_url: 'https://shop.example/no',
      })
      expect(answer.status).to.equal(400)
      expect(answer.body.error).to.include({ code: 'payment_method_unavailable', field: 'payment_method' })
    })
  }

  it('an open session is used again while the payer can still pay in it, and a new one is opened after its end', async () => {
    const { token, url } = await shop.open(shop.first, { expires_in: 7200 })
    await shop.service.ctx.db.update(
      providerSessions,
      { status: 'open' },
      { expiresAt: addMs(shop.clock.now(), 2 * MINUTE_MS) },
    )
    expect((await shop.choose(token)).body.data.redirect_url).to.equal(url)
    shop.clock.advance('2m')
    expect((await shop.choose(token)).body.data.redirect_url).not.to.equal(url)
    expect(shop.stripe.sessions).to.have.length(2)
  })

  it('two clicks at once open one session', async () => {
    const checkout = await aCheckout(shop.service.ctx, shop.first.app, PURCHASE)
    const answers = await Promise.all(Array.from({ length: 8 }, () => shop.choose(tokenOf(checkout))))
    expect(new Set(answers.map((answer) => answer.body.data.redirect_url)).size).to.equal(1)
    expect(shop.stripe.sessions).to.have.length(1)
    expect(await sessionsStored()).to.have.length(1)
  })

  describe('when Stripe is in trouble', () => {
    const checkout = () => aCheckout(shop.service.ctx, shop.first.app, PURCHASE)

    for (const [mode, sessions, why] of [
      ['down', 1, 'nothing reached it'],
      ['deaf', 1, 'the session that it opened unheard is found again by the idempotency key'],
      ['error', 1, 'it would repeat its failure under the same key, so that a new one is used'],
      ['busy', 1, 'nothing was decided'],
    ] as const) {
      it(`${mode}: 502 provider_error, and the payer can try again (${why})`, async () => {
        const token = tokenOf(await checkout())
        shop.stripe.mode = mode
        const refused = await shop.choose(token)
        expect(refused.status).to.equal(502)
        expect(refused.body.error.code).to.equal('provider_error')
        shop.stripe.mode = 'up'
        const answer = await shop.choose(token)
        expect(answer.status, answer.text).to.equal(200)
        expect(shop.stripe.sessions).to.have.length(sessions)
        expect((await sessionsStored()).filter(({ status }) => status === 'open')).to.have.length(1)
      })
    }

    it('a secret key that is not valid any more is 502, and the log names neither key nor address', async () => {
      const { ctx } = shop.service
      const { enableMethod } = await import('../support/operators.ts')
      await enableMethod(ctx, 'tester', shop.first.app.app, 'card', {
        secretKey: 'sk_test_revoked',
        webhookSecret: 'whsec_first',
      })
      const customer = await aCustomer(ctx, shop.first.app)
      const { checkout_url } = await aCheckout(ctx, shop.first.app, { ...PURCHASE, customer_id: `cus_${customer.id}` })
      expect((await shop.choose(checkout_url.slice(-64))).status).to.equal(502)
      const log = ctx.logged.join('')
      expect(log).to.include('"httpStatus":401')
      expect(log).not.to.match(/sk_test_revoked|an@example\.com|An Nguyen/)
    })
  })
})
