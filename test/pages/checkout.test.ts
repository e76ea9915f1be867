import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { apps } from '#apps/store.ts'
import { changeApp, enableMethod } from '../support/operators.ts'
import { aCustomer, anApp, LIFETIME, MONTHLY, PAID_TRIAL } from '../support/factories.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'
import { transactions } from '#transactions/store.ts'
import { attributes, offeredMethods, textOf } from './read-page.ts'

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }
const JSON_TYPE = { 'Content-Type': 'application/json' }
const UNKNOWN = `/checkout/${'0'.repeat(64)}`

describe('the checkout page, GET /checkout/{token}', () => {
  let scenario: Scenario
  let monthly: string
  let open: { checkout_url: string; transaction_id: number }

  beforeEach(async () => {
    scenario = await startScenario({ name: 'Reader' })
    const plan = await scenario.plan('premium', { ...MONTHLY, name: 'Monthly', trial: PAID_TRIAL }, LIFETIME)
    monthly = plan.prices[0]!
    open = await scenario.checkout({ price_id: monthly, skip_trial: true })
  })
  afterEach(() => scenario.service.stop())

  const get = (url: string, headers: Record<string, string> = {}) => scenario.service.call('GET', url, { headers })
  const resolveAs = (headers: Record<string, string>, raw: string, url = open.checkout_url) =>
    scenario.service.call('POST', `${url}/resolve`, { headers, raw })

  it('shows whose it is, what is paid, and that nothing is charged automatically', async () => {
    const page = await get(open.checkout_url)
    expect(page.status).to.equal(200)
    expect(page.headers['content-type']).to.equal('text/html; charset=utf-8')
    expect(textOf(page)).to.match(/Reader .*Premium Monthly Amount due: ₫99,000 for 1 month/)
    expect(textOf(page)).to.include('You pay once. Nothing is charged automatically.')
    expect(attributes(page, 'a', 'href')).to.include('https://shop.example/no')
  })

  it('shows until when the payment will be valid, before it is made', async () => {
    const page = await get(open.checkout_url)
    expect(textOf(page)).to.include('After payment: valid until 1 April 2026 ')
    expect(attributes(page, 'time', 'datetime')).to.deep.equal(['2026-04-01'])
  })

  it('shows how much a payment adds, and no tick before it is made', async () => {
    await scenario.pay(open)
    const next = await scenario.checkout({ price_id: monthly })
    const page = await get(next.checkout_url)
    expect(textOf(page)).to.include('After payment: valid until 1 May 2026 (adds 1 month)')
    expect(attributes(page, 'time', 'datetime')).to.deep.equal(['2026-05-01'])
    expect(page.text).not.to.include('M4 10.5l4 4 8-8.5')
  })

  it('shows that a payment after the end starts a period today', async () => {
    await scenario.pay(open)
    scenario.at('2026-04-03 10:00:00')
    const next = await scenario.checkout({ price_id: monthly, skip_trial: true })
    expect(textOf(await get(next.checkout_url))).to.include('After payment: valid until 3 May 2026 (starts today)')
  })

  it('shows the price of a paid trial and what comes after it', async () => {
    const trial = await scenario.checkout({ price_id: monthly, external_ref: 'user-2' })
    const text = textOf(await get(trial.checkout_url))
    expect(text).to.include('₫10,000 trial for 1 week Then ₫99,000 for 1 month, only if you choose to renew.')
    expect(text).to.include('After payment: valid until 8 March 2026')
  })

  it('shows a one-time purchase by its plan_ref, without any period', async () => {
    const one = await scenario.checkout({ mode: 'payment', plan_ref: 'audio-book', amount: 1250, currency: 'usd' })
    const text = textOf(await get(one.checkout_url))
    expect(text).to.match(/audio-book Amount due: \$12\.50 One-time purchase/)
    expect(text).not.to.match(/valid until/i)
  })

  it('warns an owner of a lifetime subscription, and hides the ways to pay behind a second decision', async () => {
    const plan = await scenario.plan('forever', LIFETIME)
    const [first, second] = [
      await scenario.checkout({ price_id: plan.prices[0]! }),
      await scenario.checkout({ price_id: plan.prices[0]! }),
    ]
    expect(textOf(await get(first.checkout_url))).to.include(
      'Lifetime access, one payment After payment: never expires',
    )
    await scenario.pay(first)
    const page = await get(second.checkout_url)
    expect(textOf(page)).to.include('You already have lifetime access. No payment is due.')
    expect(page.text).to.match(/<details[^>]*><summary>Pay anyway<\/summary>/)
    expect(page.text, 'the next step').to.match(
      /<a class="button" href="https:\/\/shop\.example\/no">Back to Reader<\/a>/,
    )
  })

  it('offers every method that the app has enabled, in a plain form', async () => {
    await enableMethod(scenario.service.ctx, 'tester', scenario.app.app, 'card', {
      secretKey: 'sk_test_1',
      webhookSecret: 'whsec_1',
    })
    const page = await get(open.checkout_url)
    expect(offeredMethods(page)).to.have.members(['card', 'test'])
    expect(attributes(page, 'form', 'method')).to.deep.equal(['post'])
    expect(attributes(page, 'form', 'action')).to.deep.equal([`${new URL(open.checkout_url).pathname}/resolve`])
  })

  it('offers exactly the method that was chosen up front', async () => {
    await enableMethod(scenario.service.ctx, 'tester', scenario.app.app, 'card', {
      secretKey: 'sk_test_1',
      webhookSecret: 'whsec_1',
    })
    const chosen = await scenario.checkout({ price_id: monthly, payment_method: 'test' })
    expect(offeredMethods(await get(chosen.checkout_url))).to.deep.equal(['test'])
  })

  it('says so if the app has no method enabled', async () => {
    const live = await anApp(scenario.service.ctx, { sandbox: false, name: 'Quiet' })
    const seller = scenario.service.seller(live)
    const answer = await seller.post('/api/v1/checkout-sessions', {
      external_ref: 'user-1',
      mode: 'payment',
      plan_ref: 'book',
      amount: 5,
      currency: 'VND',
      success_url: 'https://shop.example/ok',
      cancel_url: 'https://shop.example/no',
    })
    const page = await get(answer.body.data.checkout_url)
    expect(page.status).to.equal(200)
    expect(offeredMethods(page)).to.deep.equal([])
    expect(textOf(page)).to.include('No payment method is available right now. Please contact Quiet.')
  })

  it('carries a visible TEST mark on a sandbox app, and none on a live one', async () => {
    const sandbox = await get(open.checkout_url)
    expect(textOf(sandbox)).to.include('TEST sandbox, no real money')
    expect(sandbox.text).to.include('<title>[TEST] ')
    await scenario.service.ctx.db.update(apps, { id: scenario.app.app.id }, { isSandbox: false })
    const live = await get(open.checkout_url)
    expect(live.text).not.to.include('TEST')
  })

  describe('languages', () => {
    const languageOf = async (url: string, headers: Record<string, string> = {}) =>
      attributes(await get(url, headers), 'html', 'lang')[0]
    let vietnamese: string

    beforeEach(async () => {
      const customer = await aCustomer(scenario.service.ctx, scenario.app, { locale: 'vi' })
      const session = await scenario.checkout({ price_id: monthly, customer_id: `cus_${customer.id}` })
      vietnamese = session.checkout_url
    })

    it('is in the language that the browser asks for', async () => {
      const page = await get(open.checkout_url, { 'Accept-Language': 'vi-VN,vi;q=0.9,en-US;q=0.8,en;q=0.7' })
      expect(attributes(page, 'html', 'lang')).to.deep.equal(['vi'])
      expect(page.headers['content-language']).to.equal('vi')
      expect(textOf(page)).to.match(/99\.000\s₫ cho 1 tháng/)
      expect(textOf(page)).to.include('Sau khi thanh toán: dùng đến 1/4/2026')
      expect(await languageOf(vietnamese, { 'Accept-Language': 'en-GB,en;q=0.9' })).to.equal('en')
    })

    it("shows days in the app's time zone, by default that of the language", async () => {
      scenario.at('2026-03-01 20:00:00')
      const { checkout_url } = await scenario.checkout({ price_id: monthly, external_ref: 'late', skip_trial: true })
      const english = { 'Accept-Language': 'en' }
      expect(textOf(await get(checkout_url, english))).to.include('valid until 1 April 2026')
      expect(textOf(await get(checkout_url, { 'Accept-Language': 'vi' }))).to.include('dùng đến 2/4/2026')
      await changeApp(scenario.service.ctx, 'tester', scenario.app.app, { time_zone: 'Asia/Tokyo' })
      const page = await get(checkout_url, english)
      expect(textOf(page)).to.include('valid until 2 April 2026')
      expect(attributes(page, 'time', 'datetime')).to.deep.equal(['2026-04-02'])
    })

    it("is in the customer's language if the browser asks for none of ours", async () => {
      expect(await languageOf(vietnamese)).to.equal('vi')
      expect(await languageOf(vietnamese, { 'Accept-Language': '*' })).to.equal('vi')
      expect(await languageOf(vietnamese, { 'Accept-Language': 'fr-FR,fr;q=0.9' })).to.equal('vi')
      expect(await languageOf(open.checkout_url, { 'Accept-Language': 'fr' })).to.equal('en')
    })

    it('keeps the words of an address as the seller wrote them in Vietnamese, too', async () => {
      const cancel_url = 'https://shop.example/thanh toán?a=liên hệ'
      const { checkout_url } = await scenario.checkout({ price_id: monthly, cancel_url })
      const page = await scenario.service.call('GET', `${checkout_url}?lang=vi`)
      expect(attributes(page, 'a', 'href')).to.include(cancel_url)
      expect(page.text).to.include('thanh\u00a0toán')
    })

    it('lets the payer pick the other language, which stays from page to page', async () => {
      const page = await get(`${vietnamese}?lang=en`, { 'Accept-Language': 'vi' })
      expect(attributes(page, 'html', 'lang')).to.deep.equal(['en'])
      expect(attributes(page, 'form', 'action')[0]).to.match(/\/resolve\?lang=en$/)
      expect(attributes(page, 'a', 'href')).to.include('?lang=vi')
      expect(await languageOf(`${open.checkout_url}?lang=xx`)).to.equal('en')
    })
  })

  describe('its end', () => {
    it('is 410 from the very second at which the link expires', async () => {
      scenario.at('2026-03-01 10:59:59')
      expect((await get(open.checkout_url)).status).to.equal(200)
      scenario.at('2026-03-01 11:00:00')
      const page = await get(open.checkout_url)
      expect(page.status).to.equal(410)
      expect(textOf(page)).to.include('This payment link has expired')
      expect(attributes(page, 'a', 'href')).to.include('https://shop.example/no')
    })

    it('leads on to success_url with 303 once it is paid, also after the link expired', async () => {
      await scenario.pay(open)
      for (const time of ['2026-03-01 10:00:00', '2026-03-05 00:00:00']) {
        scenario.at(time)
        const page = await get(open.checkout_url)
        expect([page.status, page.headers['location']]).to.deep.equal([303, 'https://shop.example/ok'])
      }
    })

    it('gives success_url exactly as the seller wrote it', async () => {
      for (const url of ['https://shop.example', 'https://shop.example/a?b=%20c&d=e#f']) {
        const session = await scenario.checkout({ price_id: monthly, skip_trial: true, success_url: url })
        await scenario.pay(session)
        expect((await get(session.checkout_url)).headers['location']).to.equal(url)
      }
      const beyond = await scenario.checkout({ price_id: monthly, success_url: 'https://shop.example/cảm-ơn' })
      await scenario.pay(beyond)
      expect((await get(beyond.checkout_url)).headers['location']).to.equal('https://shop.example/c%E1%BA%A3m-%C6%A1n')
    })

    it('is 404 for unknown tokens', async () => {
      const token = open.checkout_url.slice(-64)
      const others = ['0'.repeat(64), 'x', `${token}0`, token.slice(1), `${token.slice(0, -1)}%00`]
      for (const other of others) expect((await get(`/checkout/${other}`)).status, other).to.equal(404)
      const page = await get(UNKNOWN)
      expect(page.headers['content-type']).to.equal('text/html; charset=utf-8')
      expect(textOf(page)).to.include('Page not found')
    })

    it('is a page of the same words for an address that a mail program has cut off, which programs get as an error', async () => {
      const browser = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
      const pageWith = async (path: string, headers: Readonly<Record<string, string>>) => {
        const { status, headers: answered, text } = await get(path, headers)
        return { status, type: answered['content-type'], says: text.includes('Page not found') }
      }
      const page = { status: 404, type: 'text/html; charset=utf-8', says: true }
      const error = { status: 404, type: 'application/json; charset=utf-8', says: false }
      for (const path of ['/checkout', '/renew/', '/rene', '/checkout/x/y/z', '/%zz'])
        expect(await pageWith(path, browser), path).to.deep.equal(page)
      expect(await pageWith('/checkout', { Accept: '*/*' })).to.deep.equal(error)
      expect(await pageWith('/api/v1/plan', browser)).to.deep.equal(error)
    })

    it('is the error body of the API for callers that ask for JSON', async () => {
      const page = await get(UNKNOWN, { Accept: 'application/json' })
      expect(page.status).to.equal(404)
      expect(page.body.error.code).to.equal('not_found')
      expect(page.body.error.request_id).to.equal(page.headers['x-request-id'])
    })
  })

  describe('POST /checkout/{token}/resolve', () => {
    it('completes a test payment at once and answers where to go on', async () => {
      const answer = await resolveAs(JSON_TYPE, '{"payment_method":"test"}')
      expect([answer.status, answer.body]).to.deep.equal([
        200,
        { success: true, data: { redirect_url: 'https://shop.example/ok' } },
      ])
      expect((await scenario.transaction(open.transaction_id)).status).to.equal('completed')
      expect((await scenario.subscription()).status).to.equal('active')
    })

    it('answers a form with 303', async () => {
      const answer = await resolveAs(FORM, 'payment_method=test')
      expect([answer.status, answer.headers['location']]).to.deep.equal([303, 'https://shop.example/ok'])
      expect((await scenario.transaction(open.transaction_id)).status).to.equal('completed')
    })

    it('leads on to success_url if it is paid already, and pays nothing twice', async () => {
      await scenario.pay(open)
      const answer = await resolveAs(FORM, 'payment_method=test')
      expect([answer.status, answer.headers['location']]).to.deep.equal([303, 'https://shop.example/ok'])
      expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
    })

    it('refuses an unknown method as invalid_request that names the field', async () => {
      for (const method of ['"cash"', '""', 'null', '7', '["test"]', '{"a":1}']) {
        const answer = await resolveAs(JSON_TYPE, `{"payment_method":${method}}`)
        expect([answer.status, answer.body.error.code, answer.body.error.field], method).to.deep.equal([
          400,
          'invalid_request',
          'payment_method',
        ])
      }
    })

    it('refuses an invalid body with invalid_request', async () => {
      const bodies: [string, Record<string, string>][] = [
        ['{"payment_method":"test"', JSON_TYPE],
        ['[]', JSON_TYPE],
        ['"test"', JSON_TYPE],
        ['{}', JSON_TYPE],
        ['{"payment_method":"test","amount":1}', JSON_TYPE],
        ['', JSON_TYPE],
        ['payment_method=test', { 'Content-Type': 'text/plain', Accept: 'application/json' }],
      ]
      for (const [raw, headers] of bodies) {
        const answer = await resolveAs(headers, raw)
        expect([answer.status, answer.body.error?.code], raw).to.deep.equal([400, 'invalid_request'])
      }
      expect((await scenario.transaction(open.transaction_id)).status).to.equal('pending')
    })

    it('refuses a body of more than 100 KB with 413', async () => {
      const answer = await resolveAs(JSON_TYPE, JSON.stringify({ payment_method: 'x'.repeat(110_000) }))
      expect([answer.status, answer.body.error.code]).to.deep.equal([413, 'payload_too_large'])
    })

    it('refuses a method that the app has not enabled', async () => {
      const answer = await resolveAs(JSON_TYPE, '{"payment_method":"card"}')
      expect([answer.status, answer.body.error.code]).to.deep.equal([400, 'payment_method_unavailable'])
    })

    it('answers 410 checkout_expired after the end, and completes nothing', async () => {
      scenario.at('2026-03-01 11:00:00')
      const answer = await resolveAs(JSON_TYPE, '{"payment_method":"test"}')
      expect([answer.status, answer.body.error.code]).to.deep.equal([410, 'checkout_expired'])
      expect((await scenario.transaction(open.transaction_id)).status).to.equal('pending')
    })

    it('answers 404 for unknown tokens, whatever the body', async () => {
      const answer = await resolveAs(JSON_TYPE, '{"payment_method":"cash"}', UNKNOWN)
      expect([answer.status, answer.body.error.code]).to.deep.equal([404, 'not_found'])
    })

    it('responds to errors of a form with a page of the same status that leads back', async () => {
      const unknown = await resolveAs(FORM, 'payment_method=cash')
      expect(unknown.status).to.equal(400)
      expect(textOf(unknown)).to.include('Reader')
      expect(attributes(unknown, 'a', 'href')).to.include(new URL(open.checkout_url).pathname)
      expect((await resolveAs(FORM, 'payment_method=card')).status).to.equal(400)
      expect((await resolveAs(FORM, 'payment_method=test', UNKNOWN)).status).to.equal(404)
      scenario.at('2026-03-01 11:00:00')
      const late = await resolveAs(FORM, 'payment_method=test')
      expect(late.status).to.equal(410)
      expect(textOf(late)).to.include('This payment link has expired')
    })

    it('opened as a page by a browser leads back to the checkout', async () => {
      const answer = await get(`${open.checkout_url}/resolve?lang=vi`, { Accept: 'text/html,application/xhtml+xml' })
      expect([answer.status, answer.headers['location']]).to.deep.equal([
        303,
        `${new URL(open.checkout_url).pathname}?lang=vi`,
      ])
    })

    it('opened as a page with what is no token is not found: an address leads nowhere else, and breaks no header', async () => {
      for (const token of ['%20', '%0d%0aX-Forged:%20yes', '%C3%A9', '..%2f..%2f%2fevil.example'])
        for (const form of ['resolve', 'promotion']) {
          const answer = await get(`/checkout/${token}/${form}`, { Accept: 'text/html' })
          expect([answer.status, answer.headers['location']], `${token} ${form}`).to.deep.equal([404, undefined])
        }
    })

    it('refuses other HTTP methods with 405, and GET by a program', async () => {
      for (const method of ['PUT', 'GET'] as const) {
        const answer = await scenario.service.call<{ error: { code: string } }>(method, `${open.checkout_url}/resolve`)
        expect([answer.status, answer.body.error.code], method).to.deep.equal([405, 'method_not_allowed'])
        expect(answer.headers['allow']).to.include('POST')
      }
    })
  })

  describe('GET /checkout/{token}/status', () => {
    const statusOf = async (url: string) => (await get(`${url}/status`)).body

    it('is pending, then completed with the way on, without an envelope', async () => {
      const first = await get(`${open.checkout_url}/status`)
      expect(first.headers['content-type']).to.equal('application/json; charset=utf-8')
      expect(first.body).to.deep.equal({ status: 'pending', expired: false, redirect_url: null })
      await scenario.pay(open)
      const paid = { status: 'completed', expired: false, redirect_url: 'https://shop.example/ok' }
      expect(await statusOf(open.checkout_url)).to.deep.equal(paid)
    })

    it('says that an unpaid link expired, and not that a paid one did', async () => {
      const paid = await scenario.checkout({ price_id: monthly, external_ref: 'user-2' })
      await scenario.pay(paid)
      scenario.at('2026-03-01 11:00:00')
      expect(await statusOf(open.checkout_url)).to.deep.equal({ status: 'pending', expired: true, redirect_url: null })
      expect(await statusOf(paid.checkout_url)).to.deep.equal({
        status: 'completed',
        expired: false,
        redirect_url: 'https://shop.example/ok',
      })
    })

    it('is a JSON error for unknown tokens, even to a browser', async () => {
      const answer = await get(`${UNKNOWN}/status`, { Accept: 'text/html,*/*;q=0.8' })
      expect([answer.status, answer.body.error.code]).to.deep.equal([404, 'not_found'])
    })
  })

  it('shows an internal error with a reference, and no details', async () => {
    await scenario.service.ctx.db.update(transactions, { id: open.transaction_id }, { currency: '??' })
    const page = await get(open.checkout_url)
    expect(page.status).to.equal(500)
    expect(textOf(page)).to.include('Something went wrong on our side')
    expect(textOf(page)).to.include(String(page.headers['x-request-id']))
    expect(page.text).not.to.match(/currency|RangeError|\.ts/)
  })

  it('treats malformed addresses as unknown', async () => {
    for (const path of ['/checkout/%zz', '/checkout/%E0%A4%A', '/checkout/%2e%2e%2fnone', '/assets/%zz']) {
      expect((await get(path)).status, path).to.be.oneOf([400, 404])
    }
  })

  it('says that the provider does not answer with 502, and lets the payer try again', async () => {
    await scenario.service.stop()
    scenario = await startScenario({ name: 'Reader' }, { BILLING_STRIPE_API_BASE: 'http://127.0.0.1:1' })
    await enableMethod(scenario.service.ctx, 'tester', scenario.app.app, 'card', {
      secretKey: 'sk_test_1',
      webhookSecret: 'whsec_1',
    })
    const session = await scenario.checkout({ mode: 'payment', plan_ref: 'book', amount: 99_000, currency: 'VND' })
    const answer = await resolveAs(FORM, 'payment_method=card', session.checkout_url)
    expect(answer.status).to.equal(502)
    expect(textOf(answer)).to.include('You have not been charged.')
    expect(attributes(answer, 'a', 'href')).to.include(new URL(session.checkout_url).pathname)
    const json = await resolveAs(JSON_TYPE, '{"payment_method":"card"}', session.checkout_url)
    expect([json.status, json.body.error.code]).to.deep.equal([502, 'provider_error'])
    const logged = scenario.service.ctx.logged.join('')
    expect(logged).to.include('POST /checkout/:token/resolve')
    expect(logged).not.to.include(session.checkout_url.slice(-64))
  })
})
