import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { getPromotion } from '#promotions/store.ts'
import { updatePromotion } from '#promotions/update-promotion.ts'
import { startBankScenario, transfer } from '../pages/bank-scenario.ts'
import { PHONE, startBrowser, startSellerSite, visit, type SellerSite } from '../pages/browser.ts'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { expectError } from '../support/expect-error.ts'
import { aPromotion, MONTHLY, PAID_TRIAL, reportPayment } from '../support/factories.ts'
import type { PayableCheckout, Scenario } from '../support/scenario.ts'

describe('a promotion code on the hosted page', () => {
  let scenario: Scenario
  let price: string
  beforeEach(async () => {
    scenario = await startBankScenario()
    price = (await scenario.plan('pro', MONTHLY)).prices[0]!
  })
  afterEach(() => stopWithCleanLedger(scenario.service))

  const promotion = (changes: object = {}) =>
    aPromotion(scenario.service.ctx, scenario.app, { on_page: true, ...changes })
  const usesOf = async ({ id }: { id: number }) =>
    (await getPromotion(scenario.service.ctx.db, scenario.app.app.id, id)).uses
  const open = (body: object = {}) => scenario.checkout({ price_id: price, ...body })
  const page = async ({ checkout_url }: { checkout_url: string }, language = 'en') => {
    const headers = { Accept: 'text/html', 'Accept-Language': language }
    const { status, text } = await scenario.service.call('GET', checkout_url, { headers })
    return { status, text: text.replaceAll('\u00a0', ' ') }
  }
  const type = ({ checkout_url }: { checkout_url: string }, code: string) =>
    scenario.service.call('POST', `${checkout_url}/promotion`, {
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'text/html' },
      raw: new URLSearchParams({ promotion_code: code }).toString(),
    })
  const FIELD = 'name="promotion_code"'
  const asksFor = async (checkout: PayableCheckout) => (await page(checkout)).text.includes(FIELD)

  it('may be typed where a promotion of the app is on the page and can be used, and nowhere else', async () => {
    expect(await asksFor(await open()), 'no promotion').to.equal(false)
    await promotion({ code: 'HIDDEN', on_page: false })
    await promotion({ code: 'PAST', valid_until: '2026-03-01 10:00:00' })
    expect(await asksFor(await open()), 'none that can be typed').to.equal(false)
    await promotion()
    expect(await asksFor(await open())).to.equal(true)
    const book = { mode: 'payment', plan_ref: 'book', amount: 5_000, currency: 'VND', price_id: undefined }
    expect(await asksFor(await open(book)), 'a purchase').to.equal(false)
    const discounted = await open({ promotion_code: 'HIDDEN', external_ref: 'user-2' })
    expect(await asksFor(discounted), 'a discount that it has').to.equal(false)
  })

  it('takes its discount off, shows what it takes off in both languages, and counts once it is paid', async () => {
    const made = await promotion()
    const checkout = await open()
    const answer = await type(checkout, 'tet')
    expect([answer.status, answer.headers['location']]).to.deep.equal([303, new URL(checkout.checkout_url).pathname])
    const [english, vietnamese] = [await page(checkout), await page(checkout, 'vi')]
    expect(english.text).to.contain('Then ₫99,000 for 1 month')
    expect(english.text).to.contain('79,200').and.to.contain('19,800').and.to.contain('TET').and.not.to.contain(FIELD)
    expect(vietnamese.text).to.contain('Giảm 19.800').and.to.contain('99.000')
    expect(await scenario.transaction(checkout.transaction_id)).to.deep.include({
      amount: 79_200,
      discount: { code: 'TET', amount: 19_800 },
    })
    expect(await usesOf(made)).to.equal(0)
    await scenario.pay(checkout)
    expect(await usesOf(made)).to.equal(1)
  })

  it('shows what the next period costs: with an earlier discount on every period, which goes on', async () => {
    await promotion({ every_period: true })
    await promotion({ code: 'ONCE', percent: 50, every_period: false })
    await scenario.pay(await open({ promotion_code: 'TET' }))
    const checkout = await open({ promotion_code: 'ONCE' })
    expect((await page(checkout)).text).to.contain('Then ₫79,200 for 1 month')
    await scenario.pay(checkout)
    const renewal = await scenario.service.call('GET', `/renew/${await scenario.renewalToken()}`)
    expect(renewal.text.replaceAll('\u00a0', ' ')).to.contain('₫79,200')
  })

  it('shows what the next period costs: the price that was switched to meanwhile', async () => {
    await promotion()
    await scenario.pay(await open())
    const checkout = await open({ promotion_code: 'TET' })
    const gold = await scenario.plan('gold', { ...MONTHLY, amount: 199_000 })
    await scenario.seller.put('/api/v1/subscriptions/user-1/plan', { price_id: gold.prices[0] })
    expect((await page(checkout)).text).to.contain('Then ₫199,000 for 1 month')
  })

  it('is on the page after the payment, with what it took off, in both languages', async () => {
    await promotion()
    const checkout = await open({ promotion_code: 'TET' })
    await scenario.pay(checkout)
    const paid = { checkout_url: `${checkout.checkout_url}/paid` }
    const [english, vietnamese] = [await page(paid), await page(paid, 'vi')]
    expect(english.text).to.contain('<dt>Discount</dt><dd>₫19,800 (TET)</dd>')
    expect(vietnamese.text).to.contain('<dt>Giảm giá</dt><dd>19.800 ₫ (TET)</dd>')
  })

  it('that cannot be used is refused in the same words whatever the reason is', async () => {
    await promotion()
    await promotion({ code: 'HIDDEN', on_page: false })
    await promotion({ code: 'PAST', valid_until: '2026-03-01 10:00:00' })
    const checkout = await open()
    const pages = await Promise.all(['HIDDEN', 'PAST', 'NOPE', '<b>'].map((code) => type(checkout, code)))
    for (const { status, text } of pages) {
      expect(status).to.equal(400)
      expect(text).to.contain('This code cannot be used').and.to.contain(FIELD).and.not.to.contain('<b>')
    }
    expect(await scenario.transaction(checkout.transaction_id)).to.include({ amount: 99_000, discount: null })
    const json = await scenario.service.call('POST', `${checkout.checkout_url}/promotion`, {
      headers: { 'Content-Type': 'application/json' },
      raw: JSON.stringify({ promotion_code: 'PAST' }),
    })
    expectError(json, 400, 'promotion_not_valid')
  })

  it('that leaves nothing to pay completes the checkout and leads back to the seller', async () => {
    await promotion({ percent: 100 })
    const checkout = await open()
    expect((await type(checkout, 'TET')).status).to.equal(303)
    expect(await scenario.transaction(checkout.transaction_id)).to.include({ status: 'completed', amount: 0 })
    const after = await scenario.service.call('GET', checkout.checkout_url)
    expect([after.status, after.headers['location']]).to.deep.equal([303, 'https://shop.example/ok'])
  })

  it('is refused once a part of the money has come', async () => {
    await promotion()
    const checkout = await open()
    await transfer(scenario, checkout.transaction_id, 50_000)
    expect(await asksFor(checkout)).to.equal(false)
    await type(checkout, 'TET')
    expect(await scenario.transaction(checkout.transaction_id)).to.include({ amount: 99_000, discount: null })
  })

  it('leaves a surplus of money that was on its way', async () => {
    await promotion()
    const checkout = await open()
    await type(checkout, 'TET')
    const { ctx } = scenario.service
    const { transaction_id: transactionId } = checkout
    const money = { provider: 'stripe', eventId: 'evt_1', reference: 'cs_1', amount: 99_000, currency: 'VND' }
    await reportPayment(ctx, { ...money, transactionId, paidAt: ctx.clock.now() })
    expect(await scenario.transaction(transactionId)).to.include({
      status: 'completed',
      amount: 79_200,
      amount_received: 99_000,
      flagged: false,
    })
  })

  it('typed by two payers at once for the last use is taken by one', async () => {
    const made = await promotion({ max_uses: 1 })
    const checkouts = [await open(), await open({ external_ref: 'user-2' })]
    const answers = await Promise.all(checkouts.map((checkout) => type(checkout, 'TET')))
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([303, 400])
    for (const checkout of checkouts) await scenario.pay(checkout)
    expect(await usesOf(made)).to.equal(1)
  })

  it('typed twice by the same click is taken once', async () => {
    await promotion()
    const checkout = await open()
    const answers = await Promise.all([type(checkout, 'TET'), type(checkout, 'TET')])
    expect(answers.map(({ status }) => status)).to.deep.equal([303, 303])
    expect(await scenario.transaction(checkout.transaction_id)).to.include({ amount: 79_200 })
  })

  it('is 410 on a link that has expired, or whose promotion a newer checkout has', async () => {
    await promotion()
    const older = await open({ promotion_code: 'TET', expires_in: 1800 })
    const newer = await open({ expires_in: 1800 })
    expect((await type(newer, 'TET')).status).to.equal(303)
    const lost = await page(older)
    expect(lost.status).to.equal(410)
    expect(lost.text).to.contain('This payment link has expired')
    scenario.at('2026-03-01 11:00:00')
    expect((await type(newer, 'TET')).status).to.equal(410)
  })

  it('of a paid trial says what comes after it: the discount goes on where it is for every period', async () => {
    const trial = (await scenario.plan('trial', { ...MONTHLY, trial: PAID_TRIAL })).prices[0]!
    const { id: promotionId } = await promotion({ every_period: true })
    const checkout = await open({ price_id: trial, promotion_code: 'TET' })
    const scope = { app: scenario.app.app, promotionId }
    await perform(scenario.service.ctx, operator('tester'), updatePromotion, { status: 'archived' }, scope)
    expect((await page(checkout)).text)
      .to.contain('8,000')
      .and.to.contain('79,200')
  })

  describe('in a browser', () => {
    let browser: Browser
    let site: SellerSite
    before(async () => {
      browser = await startBrowser()
      site = await startSellerSite()
    })
    after(async () => {
      site.stop()
      await browser.close()
    })

    for (const javaScriptEnabled of [true, false]) {
      it(`is typed, corrected and paid, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
        await promotion()
        const checkout = await open({ success_url: `${site.url}/ok` })
        const known = [scenario.service.url, site.url]
        const visitor = await visit(browser, known, { viewport: PHONE, locale: 'vi', javaScriptEnabled })
        const { page: shown } = visitor
        await shown.goto(checkout.checkout_url)
        await shown.getByText('Tôi có mã khuyến mãi').click()
        await shown.getByLabel('Mã khuyến mãi').fill('sai-ma')
        await shown.getByRole('button', { name: 'Áp dụng' }).click()
        expect(await shown.getByRole('alert').textContent()).to.contain('Mã này')
        await shown.getByLabel('Mã khuyến mãi').fill('tet')
        await shown.keyboard.press('Enter')
        await shown.getByText('Giảm 19.800').waitFor()
        await shown.locator('button[value=test]').click()
        await shown.waitForURL(`${site.url}/ok`)
        expect(visitor.outside).to.deep.equal([])
        await visitor.end()
      })
    }
  })
})
