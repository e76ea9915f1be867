import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { after, before, describe, it } from 'mocha'
import { faultsOf } from './audit.ts'
import { artifact, DESKTOP, PHONE, startBrowser, visit } from './browser.ts'
import { SCENES, withShop } from './scenes.ts'

const SCREENS = [
  ['phone', PHONE, 'vi'],
  ['desktop', DESKTOP, 'en'],
] as const
const NARROW = { width: 320, height: 640 }
const LONGEST = 'Nguyễn'.repeat(31)

describe('hosted pages are readable and reachable for everybody', function () {
  this.timeout(180_000)
  let browser: Browser

  before(async () => {
    browser = await startBrowser()
  })
  after(() => browser.close())

  for (const [title, scene] of Object.entries(SCENES)) {
    it(`${title}: light and dark, in Vietnamese on a phone and in English on a desktop`, () =>
      withShop('Sách Nói Hay', async (story, prices) => {
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
      withShop(LONGEST, async (story, prices) => {
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
    withShop('Reader', async (story, prices) => {
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
