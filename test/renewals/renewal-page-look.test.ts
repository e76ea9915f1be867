import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { Browser } from 'playwright-core'
import { enableMethod } from '../support/operators.ts'
import { startBankScenario } from '../pages/bank-scenario.ts'
import { startBrowser, withVisitor } from '../pages/browser.ts'
import { MONTHLY } from '../support/factories.ts'
import type { Scenario } from '../support/scenario.ts'

describe('renewal page in a browser', () => {
  let browser: Browser
  let scenario: Scenario
  let path: string

  before(async () => {
    browser = await startBrowser()
  })
  after(() => browser.close())
  beforeEach(async () => {
    scenario = await startBankScenario({ name: 'Sách Hay' })
    await enableMethod(scenario.service.ctx, 'tester', scenario.app.app, 'card', {
      secretKey: 'sk',
      webhookSecret: 'wh',
    })
    const plan = await scenario.plan('premium', MONTHLY)
    await scenario.pay(await scenario.checkout({ price_id: plan.prices[0] }))
    path = `/renew/${await scenario.renewalToken()}`
    scenario.at('2026-03-30 10:00:00')
  })
  afterEach(() => scenario.service.stop())

  for (const javaScriptEnabled of [true, false]) {
    it(`renews, says so, and asks before it renews again, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      await withVisitor(browser, [scenario.service.url], { javaScriptEnabled }, async ({ page }) => {
        await page.goto(scenario.service.url + path)
        await page.getByText('(adds 1 month)').waitFor()
        await page.getByRole('button', { name: 'Test payment' }).click()
        await page.getByRole('heading', { name: 'Payment received' }).waitFor()
        await page.getByText('1 May 2026').first().waitFor()
        expect(await page.getByRole('link', { name: 'Back to Sách Hay' }).getAttribute('href')).to.equal(
          'https://shop.example',
        )
        expect(page.url()).to.equal(scenario.service.url + path)
        expect(await page.getByRole('button', { name: 'Test payment' }).isVisible()).to.equal(false)
        await page.getByText('Pay for another period').click()
        await page.getByRole('button', { name: 'Test payment' }).click()
        await page.getByText('1 June 2026').first().waitFor()
      })
    })
  }

  it('goes on with the payment that it opened', async () => {
    await withVisitor(browser, [scenario.service.url], {}, async ({ page }) => {
      await page.goto(scenario.service.url + path)
      await page.getByRole('button', { name: 'Bank transfer' }).click()
      await page.waitForURL(/\/checkout\/[0-9a-f]{64}\/bank$/)
      const bankPage = page.url()
      await page.goto(scenario.service.url + path)
      await page.getByRole('link', { name: 'Continue that payment' }).click()
      await page.waitForURL(bankPage.slice(0, -'/bank'.length))
      await page.getByRole('button', { name: 'Test payment' }).click()
      await page.getByRole('heading', { name: 'Payment received' }).waitFor()
      expect(page.url()).to.equal(scenario.service.url + path)
    })
  })

  it('stops reminders after it has asked', async () => {
    await withVisitor(browser, [scenario.service.url], {}, async ({ page }) => {
      await page.goto(scenario.service.url + path)
      await page.getByRole('link', { name: 'Stop reminders for this subscription' }).click()
      await page.getByRole('button', { name: 'Stop reminders' }).click()
      await page.getByRole('heading', { name: 'Reminders are stopped' }).waitFor()
    })
  })
})
