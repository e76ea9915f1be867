import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { bankAccounts } from '#bank-accounts/store.ts'
import { checkoutSessions } from '#checkout/store.ts'
import { plans } from '#plans/store.ts'
import { MONTHLY } from '../support/factories.ts'
import type { Scenario } from '../support/scenario.ts'
import { startBankScenario } from './bank-scenario.ts'
import { startBrowser, withVisitor } from './browser.ts'
import { attributes, textOf } from './read-page.ts'

const MARKUP = `"'><img src=x onerror=alert(1)><script>alert(1)</script><%= 7 * 11 %></title>`

describe('what sellers write', () => {
  let browser: Browser
  let scenario: Scenario
  let open: { checkout_url: string }

  before(async () => {
    browser = await startBrowser()
  })
  after(() => browser.close())
  beforeEach(async () => {
    scenario = await startBankScenario({ name: MARKUP })
    const { ctx } = scenario.service
    const plan = await scenario.plan('premium', { ...MONTHLY, name: MARKUP })
    await ctx.db.update(plans, { code: 'premium' }, { name: MARKUP })
    await ctx.db.update(bankAccounts, { disabledAt: null }, { holder: MARKUP })
    open = await scenario.checkout({
      price_id: plan.prices[0]!,
      external_ref: MARKUP,
      cancel_url: `https://shop.example/"><script>alert(1)</script>`,
      success_url: `https://shop.example/?"><script>alert(1)</script>`,
    })
  })
  afterEach(() => scenario.service.stop())

  const pages = () => [open.checkout_url, `${open.checkout_url}/bank`, `${open.checkout_url}/bank?lang="><script>`]

  it('is text on every page, never markup and never a template', async () => {
    for (const url of pages()) {
      const page = await scenario.service.call('GET', url, {
        headers: { 'Accept-Language': '"><script>alert(1)</script>' },
      })
      expect(page.status).to.equal(200)
      expect(page.text).not.to.match(/<img src=x|<script>|<\/title>.*<\/title>/)
      expect(textOf(page)).to.include(MARKUP)
    }
    scenario.at('2026-03-01 11:00:00')
    const late = await scenario.service.call('GET', open.checkout_url)
    expect(late.status).to.equal(410)
    expect(late.text).not.to.match(/<img src=x|<script>/)
  })

  it('runs nothing in a browser', async () => {
    await withVisitor(browser, [scenario.service.url], {}, async ({ page, complaints }) => {
      page.on('dialog', (dialog) => {
        complaints.push(dialog.message())
        void dialog.dismiss()
      })
      for (const url of pages()) {
        await page.goto(url)
        expect(await page.locator('h1').count()).to.equal(1)
        expect(await page.locator('img[src="x"]').count()).to.equal(0)
      }
    })
  })

  it('becomes a link only if it is a web address', async () => {
    await scenario.service.ctx.db.update(
      checkoutSessions,
      { appId: scenario.app.app.id },
      { cancelUrl: 'javascript:alert(1)' },
    )
    for (const url of pages()) {
      const page = await scenario.service.call('GET', url)
      expect(page.status).to.equal(200)
      expect(page.text).not.to.include('javascript:')
    }
    scenario.at('2026-03-01 11:00:00')
    const late = await scenario.service.call('GET', open.checkout_url)
    expect(attributes(late, 'a', 'href').join()).not.to.include('javascript:')
  })
})
