import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { after, before, describe, it } from 'mocha'
import { providerSessions } from '#providers/store.ts'
import { enableMethod } from '../support/operators.ts'
import { LIFETIME, MONTHLY, PAID_TRIAL } from '../support/factories.ts'
import type { Story } from '../support/story.ts'
import { faultsOf } from './audit.ts'
import { startBankStory, transfer } from './bank-story.ts'
import { artifact, DESKTOP, PHONE, startBrowser, visit } from './browser.ts'

const SCREENS = [
  ['phone', PHONE, 'vi'],
  ['desktop', DESKTOP, 'en'],
] as const
const NARROW = { width: 320, height: 640 }
const LONGEST = 'Nguyễn'.repeat(31)

/** The page to look at, after everything that leads to it was done. */
type Scene = (story: Story, prices: readonly string[]) => Promise<string>

const SCENES: Readonly<Record<string, Scene>> = {
  'a checkout with every method': async (story, [monthly]) =>
    (await story.checkout({ price_id: monthly, skip_trial: true })).checkout_url,
  'a paid trial with one method': async (story, [monthly]) =>
    (await story.checkout({ price_id: monthly, payment_method: 'test' })).checkout_url,
  'a checkout of what is owned for life': async (story, [, lifetime]) => {
    const [first, second] = [await story.checkout({ price_id: lifetime }), await story.checkout({ price_id: lifetime })]
    await story.pay(first)
    return second.checkout_url
  },
  'a bank transfer': async (story, [monthly]) =>
    `${(await story.checkout({ price_id: monthly, skip_trial: true })).checkout_url}/bank`,
  'a bank transfer paid in part': async (story, [monthly]) => {
    const { checkout_url, transaction_id } = await story.checkout({ price_id: monthly, skip_trial: true })
    await story.service.call('GET', `${checkout_url}/bank`)
    await transfer(story, transaction_id, 60_000)
    return `${checkout_url}/bank`
  },
  'a checkout paid in part': async (story, [monthly]) => {
    const { checkout_url, transaction_id } = await story.checkout({ price_id: monthly, skip_trial: true })
    await transfer(story, transaction_id, 60_000)
    return checkout_url
  },
  'a checkout whose debit is under way': async (story, [monthly]) => {
    const { checkout_url, transaction_id } = await story.checkout({ price_id: monthly, skip_trial: true })
    const { db, clock } = story.service.ctx
    await db.insert(providerSessions, {
      appId: story.app.app.id,
      transactionId: transaction_id,
      provider: 'stripe',
      providerAccountId: 1,
      reference: 'cs_under_way',
      url: null,
      amount: 99_000,
      currency: 'VND',
      status: 'processing',
      expiresAt: clock.now(),
      lookups: 0,
      failures: 0,
      nextLookupAt: null,
      createdAt: clock.now(),
      updatedAt: clock.now(),
    })
    return checkout_url
  },
  'an expired link': async (story, [monthly]) => {
    const { checkout_url } = await story.checkout({ price_id: monthly, skip_trial: true })
    story.at('2026-03-01 11:00:00')
    return checkout_url
  },
  'a link that the subscription has changed under': async (story, [monthly]) => {
    const trial = { price_id: monthly, external_ref: 'user-9' }
    const [first, second] = [await story.checkout(trial), await story.checkout(trial)]
    await story.service.call('GET', `${second.checkout_url}/bank`)
    await story.pay(first)
    return second.checkout_url
  },
  'an unknown link': (story) => Promise.resolve(`${story.service.url}/checkout/unknown`),
}

describe('hosted pages are readable and reachable for everybody', function () {
  this.timeout(180_000)
  let browser: Browser

  before(async () => {
    browser = await startBrowser()
  })
  after(() => browser.close())

  const withStory = async (name: string, look: (story: Story, prices: readonly string[]) => Promise<void>) => {
    const story = await startBankStory({ name })
    const credentials = { secretKey: 'sk_test_1', webhookSecret: 'whsec_1' }
    await enableMethod(story.service.ctx, 'tester', story.app.app, 'card', credentials)
    const plan = await story.plan('premium', { ...MONTHLY, name: 'Hằng tháng', trial: PAID_TRIAL }, LIFETIME)
    try {
      await look(story, plan.prices)
    } finally {
      await story.service.stop()
    }
  }

  for (const [title, scene] of Object.entries(SCENES)) {
    it(`${title}: light and dark, in Vietnamese on a phone and in English on a desktop`, () =>
      withStory('Sách Nói Hay', async (story, prices) => {
        const url = await scene(story, prices)
        const faults: Record<string, string[]> = {}
        for (const [screen, viewport, locale] of SCREENS) {
          const visitor = await visit(browser, [story.service.url], { viewport, locale })
          await visitor.page.goto(url)
          for (const colorScheme of ['light', 'dark'] as const) {
            await visitor.page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
            const name = `${title.replaceAll(' ', '-')}.${screen}.${colorScheme}.${locale}`
            faults[name] = await faultsOf(visitor.page)
            await visitor.page.screenshot({ path: artifact(`page.${name}.png`), fullPage: true })
          }
          expect(await visitor.page.getAttribute('html', 'lang')).to.equal(locale)
          await visitor.end()
        }
        const found = Object.fromEntries(Object.entries(faults).filter(([, list]) => list.length > 0))
        expect(found).to.deep.equal({})
      }))
  }

  for (const [screen, viewport] of [
    ['the narrowest phone', NARROW],
    ['a desktop', DESKTOP],
  ] as const) {
    it(`the longest names fit ${screen}`, () =>
      withStory(LONGEST, async (story, prices) => {
        await story.service.ctx.db.query('UPDATE plans SET name = ?', [LONGEST])
        const { checkout_url } = await story.checkout({ price_id: prices[0], skip_trial: true })
        const visitor = await visit(browser, [story.service.url], { viewport })
        const { page } = visitor
        for (const url of [checkout_url, `${checkout_url}/bank`]) {
          await page.goto(url)
          expect(await faultsOf(page), url).to.deep.equal([])
          const place = url.endsWith('bank') ? '-bank' : ''
          await page.screenshot({ path: artifact(`page.longest${place}.${viewport.width}.png`), fullPage: true })
        }
        await visitor.end()
      }))
  }

  it('a keyboard reaches the content first and sees where it is', () =>
    withStory('Reader', async (story, prices) => {
      const { checkout_url } = await story.checkout({ price_id: prices[0], skip_trial: true })
      const visitor = await visit(browser, [story.service.url])
      const { page } = visitor
      await page.goto(checkout_url)
      await page.keyboard.press('Tab')
      expect(await page.evaluate('document.activeElement.textContent')).to.equal('Skip to content')
      await page.keyboard.press('Enter')
      await page.keyboard.press('Tab')
      expect(await page.evaluate('document.activeElement.value')).to.equal('card')
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineWidth')).to.equal('3px')
      await visitor.end()
    }))
})
