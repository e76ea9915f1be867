import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { parseId } from '#shared/ids.ts'
import { getSubscription } from '#subscriptions/store.ts'
import { expectError } from '../support/expect-error.ts'
import { changeApp } from '../support/operators.ts'
import { MONTHLY, SERVER } from '../support/factories.ts'
import type { Scenario } from '../support/scenario.ts'
import { perform } from '#commands/perform.ts'
import { updatePlan } from '#plans/update-plan.ts'
import { accessibilityErrors } from './audit.ts'
import { startBankScenario } from './bank-scenario.ts'
import { startBrowser, withVisitor } from './browser.ts'
import { attributes, textOf } from './read-page.ts'

const LOGO = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10"><path d="M0 0h20v10z" fill="#c00"/></svg>'
const LOOKS = {
  logo: Buffer.from(LOGO),
  accent: '#0b6b3a',
  support: 'help@shop.example',
  terms_url: 'https://shop.example/terms',
  privacy_url: 'https://shop.example/privacy',
  statement_name: 'SACH HAY',
}

describe('pages under the seller’s name', () => {
  let browser: Browser
  let scenario: Scenario
  let priceId: string
  let planId: number
  let url: string

  before(async () => {
    browser = await startBrowser()
  })
  after(() => browser.close())
  beforeEach(async () => {
    scenario = await startBankScenario({ name: 'Sách Hay' })
    const plan = await scenario.plan('premium', MONTHLY)
    planId = parseId('plan', plan.id) ?? expect.fail('no plan')
    priceId = plan.prices[0]!
    url = (await scenario.checkout({ price_id: priceId })).checkout_url
  })
  afterEach(() => scenario.service.stop())

  const change = (input: object) => changeApp(scenario.service.ctx, 'tester', scenario.app.app, input)
  const get = (address: string) => scenario.service.call('GET', address)

  it('show logo, links and statement name once they are set, and none before', async () => {
    const plain = await get(url)
    expect(attributes(plain, 'img', 'class')).not.to.include('brand-logo')
    expect(plain.text).not.to.include('<style>').and.not.to.include('mailto:')
    await change(LOOKS)
    const renew = `/renew/${(await subscribed()).renewalToken}`
    for (const address of [url, `${url}/bank`, renew]) {
      const page = await get(address)
      const links = attributes(page, 'a', 'href')
      expect(links, address).to.include.members(['mailto:help@shop.example', LOOKS.terms_url, LOOKS.privacy_url])
      expect(attributes(page, 'img', 'alt'), address).to.include('Sách Hay')
    }
    expect(textOf(await get(url))).to.include('Your statement shows this payment as “SACH HAY”.')
    await change({ logo: null, accent: null, support: null })
    expect((await get(url)).text).not.to.match(/brand-logo|<style>|mailto:/)
  })

  const subscribed = async () => {
    await scenario.pay(await scenario.checkout({ price_id: priceId, external_ref: 'user-2' }))
    return getSubscription(scenario.service.ctx.db, scenario.app.app.id, 'user-2')
  }

  it('serve the logo by its content’s name, as a document that may do nothing', async () => {
    await change(LOOKS)
    const [path] = attributes(await get(url), 'img', 'src')
    expect(path).to.match(/^\/logo\/[0-9a-f]{64}$/)
    const logo = await get(path!)
    expect(logo.status).to.equal(200)
    expect(logo.headers['content-type']).to.equal('image/svg+xml')
    expect(logo.headers['content-security-policy']).to.equal("default-src 'none'; style-src 'unsafe-inline'; sandbox")
    expect(logo.headers['x-content-type-options']).to.equal('nosniff')
    expect(logo.headers['cache-control']).to.include('immutable')
    for (const unknown of ['/logo/short', `/logo/${'0'.repeat(64)}`]) expect((await get(unknown)).status).to.equal(404)
    await change({ logo: Buffer.from(LOGO.replace('#c00', '#0c0')) })
    expect((await get(path!)).status, 'the one before is gone').to.equal(404)
  })

  for (const colorScheme of ['light', 'dark'] as const) {
    it(`have the accent in ${colorScheme} colours, readable, under the strict policy`, async () => {
      await change(LOOKS)
      await withVisitor(browser, [scenario.service.url], { colorScheme }, async ({ page }) => {
        for (const address of [url, `${url}/bank`]) {
          await page.goto(address)
          expect(await accessibilityErrors(page), address).to.deep.equal([])
        }
        const accent: string = await page.evaluate(
          `getComputedStyle(document.documentElement).getPropertyValue('--accent')`,
        )
        if (colorScheme === 'light') expect(accent).to.equal('#0b6b3a')
        else expect(accent).not.to.be.oneOf(['#0b6b3a', '#86b4ff'])
      })
    })
  }

  it('show the description of a plan, a long one behind a fold', async () => {
    const describePlan = (description: string) =>
      perform(scenario.service.ctx, SERVER, updatePlan, { description }, { app: scenario.app.app, planId })
    await describePlan('All books.\nOn every device.')
    expect((await get(url)).text).to.include('<p class="order-text">All books.\nOn every device.</p>')
    await describePlan('Long. '.repeat(100))
    expect((await get(url)).text).to.match(/<details><summary>About this plan<\/summary><p class="order-text">Long\./)
  })

  describe('a one-time purchase', () => {
    const purchase = { mode: 'payment', plan_ref: 'audio-book-7', amount: 50_000, currency: 'VND' }

    it('is called by its plan_name if the checkout call has one', async () => {
      const named = await scenario.checkout({ ...purchase, plan_name: 'Dế Mèn phiêu lưu ký' })
      expect(textOf(await get(named.checkout_url)))
        .to.include('Dế Mèn phiêu lưu ký')
        .and.not.to.include('audio-book-7')
      expect(await scenario.transaction(named.transaction_id)).to.include({ plan_ref: 'audio-book-7' })
      const plain = await scenario.checkout(purchase)
      expect(textOf(await get(plain.checkout_url))).to.include('audio-book-7')
    })

    it('plan_name is refused if it is too long, empty, or of a subscription', async () => {
      const urls = {
        external_ref: 'user-1',
        success_url: 'https://shop.example/ok',
        cancel_url: 'https://shop.example/no',
      }
      const refused = async (body: object) => {
        const answer = await scenario.seller.post('/api/v1/checkout-sessions', { ...urls, ...body })
        expectError(answer, 400, 'invalid_request')
        expect(answer.body.error.field).to.equal('plan_name')
      }
      for (const plan_name of ['', 'x'.repeat(192), 7]) await refused({ ...purchase, plan_name })
      await refused({ mode: 'subscription', price_id: priceId, plan_name: 'x' })
    })
  })
})
