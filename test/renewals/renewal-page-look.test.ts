import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { Browser } from 'playwright-core'
import { getSubscription } from '#subscriptions/store.ts'
import { enableMethod } from '../support/operators.ts'
import { faultsOf } from '../pages/audit.ts'
import { startBankStory } from '../pages/bank-story.ts'
import { DESKTOP, PHONE, artifact, startBrowser, visit } from '../pages/browser.ts'
import { MONTHLY } from '../support/factories.ts'
import type { Story } from '../support/story.ts'

const SCREENS = [
  ['phone', PHONE, 'vi'],
  ['desktop', DESKTOP, 'en'],
] as const

/** What is done before the page is looked at; returns what follows the page's address. */
type Scene = (story: Story, path: string) => Promise<string>

const post = (story: Story, path: string, method: string) =>
  story.service.call('POST', path, {
    headers: { 'Content-Type': 'application/json' },
    raw: JSON.stringify({ payment_method: method }),
  })

const SCENES: Readonly<Record<string, Scene>> = {
  'before the end': () => Promise.resolve(''),
  'after the end': (story) => {
    story.at('2026-04-03 10:00:00')
    return Promise.resolve('')
  },
  'a payment still open': async (story, path) => {
    await post(story, path, 'bank_transfer')
    return ''
  },
  'already renewed': async (story, path) => {
    await post(story, path, 'test')
    return ''
  },
  'asking to stop reminders': () => Promise.resolve('/opt-out'),
}

describe('renewal page in a browser', function () {
  this.timeout(180_000)
  let browser: Browser
  let story: Story
  let path: string

  before(async () => {
    browser = await startBrowser()
  })
  after(() => browser.close())
  beforeEach(async () => {
    story = await startBankStory({ name: 'Sách Hay' })
    await enableMethod(story.service.ctx, 'tester', story.app.app, 'card', { secretKey: 'sk', webhookSecret: 'wh' })
    const plan = await story.plan('premium', MONTHLY)
    await story.pay(await story.checkout({ price_id: plan.prices[0] }))
    path = `/renew/${(await getSubscription(story.service.ctx.db, story.app.app.id, 'user-1')).renewalToken}`
    story.at('2026-03-30 10:00:00')
  })
  afterEach(() => story.service.stop())

  for (const [name, scene] of Object.entries(SCENES)) {
    for (const [device, viewport, locale] of SCREENS) {
      it(`${name}: is readable and reachable for everybody on a ${device} in ${locale}`, async () => {
        const rest = await scene(story, path)
        const visitor = await visit(browser, [story.service.url], { viewport, locale })
        const { page, complaints, outside } = visitor
        await page.goto(story.service.url + path + rest)
        const file = `renew-${name.replaceAll(' ', '-')}-${device}-${locale}.png`
        await page.screenshot({ path: artifact(file), fullPage: true })
        expect(await faultsOf(page)).to.deep.equal([])
        expect([...complaints, ...outside]).to.deep.equal([])
        await visitor.end()
      })
    }
  }

  for (const javaScriptEnabled of [true, false]) {
    it(`renews, says so, and asks before it renews again, ${javaScriptEnabled ? 'with' : 'without'} scripts`, async () => {
      const visitor = await visit(browser, [story.service.url], { javaScriptEnabled })
      const { page, complaints } = visitor
      await page.goto(story.service.url + path)
      await page.getByText('extends from').waitFor()
      await page.getByRole('button', { name: 'Test payment' }).click()
      await page.getByText('Already renewed: valid until 1 May 2026.').waitFor()
      expect(page.url()).to.equal(story.service.url + path)
      expect(await page.getByRole('button', { name: 'Test payment' }).isVisible()).to.equal(false)
      await page.getByText('Pay for another period').click()
      await page.getByRole('button', { name: 'Test payment' }).click()
      await page.getByText('Already renewed: valid until 1 June 2026.').waitFor()
      expect(complaints).to.deep.equal([])
      await visitor.end()
    })
  }

  it('goes on with the payment that it opened', async () => {
    const visitor = await visit(browser, [story.service.url])
    const { page, complaints } = visitor
    await page.goto(story.service.url + path)
    await page.getByRole('button', { name: 'Bank transfer' }).click()
    await page.waitForURL(/\/checkout\/[0-9a-f]{64}\/bank$/)
    const bankPage = page.url()
    await page.goto(story.service.url + path)
    await page.getByRole('link', { name: 'Continue that payment' }).click()
    await page.waitForURL(bankPage.slice(0, -'/bank'.length))
    await page.getByRole('button', { name: 'Test payment' }).click()
    await page.getByText('Already renewed').waitFor()
    expect(page.url()).to.equal(story.service.url + path)
    expect(complaints).to.deep.equal([])
    await visitor.end()
  })

  it('stops reminders after it has asked', async () => {
    const visitor = await visit(browser, [story.service.url])
    const { page, complaints } = visitor
    await page.goto(story.service.url + path)
    await page.getByRole('link', { name: 'Stop reminders for this subscription' }).click()
    await page.getByRole('button', { name: 'Stop reminders' }).click()
    await page.getByRole('heading', { name: 'Reminders are stopped' }).waitFor()
    expect(complaints).to.deep.equal([])
    await visitor.end()
  })
})
