import { expect } from 'chai'
import type { Browser } from 'playwright-core'
import { after, before, describe, it } from 'mocha'
import { accessibilityErrors, keyboardErrors } from './audit.ts'
import { DESKTOP, PHONE, startBrowser, visit, withVisitor, type Visit } from './browser.ts'
import { changePlans, SCENES, withShop } from './scenes.ts'

const SCREENS = [
  ['phone', PHONE, 'vi'],
  ['desktop', DESKTOP, 'en'],
] as const
const NARROW = { width: 320, height: 640 }
/** What is left of a phone whose browser shows everything at twice its size. */
const ENLARGED = { width: PHONE.width / 2, height: PHONE.height / 2 }
const LONGEST = 'Nguyễn'.repeat(31)

describe('hosted pages are readable and reachable for everybody', () => {
  let browser: Browser
  /** A visitor for each screen, who is shown every page. */
  let visitors: Map<string, Visit>
  const known: string[] = []

  before(async () => {
    browser = await startBrowser()
    visitors = new Map()
    for (const [screen, viewport, locale] of SCREENS)
      visitors.set(screen, await visit(browser, known, { viewport, locale }))
  })
  after(() => browser.close())

  for (const [title, scene] of Object.entries(SCENES)) {
    it(`${title}: light and dark, in Vietnamese on a phone and in English on a desktop`, () =>
      withShop('Sách Nói Hay', async (scenario, prices) => {
        const url = await scene(scenario, prices)
        known.push(scenario.service.url)
        const errors: Record<string, string[]> = {}
        for (const [screen, , locale] of SCREENS) {
          const { page } = visitors.get(screen)!
          await page.goto(url)
          for (const colorScheme of ['light', 'dark'] as const) {
            await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
            errors[`${screen}, ${colorScheme}`] = await accessibilityErrors(page)
          }
          expect(await page.getAttribute('html', 'lang')).to.equal(locale)
          if (screen === 'phone') errors['keyboard'] = await keyboardErrors(page)
        }
        const found = Object.fromEntries(Object.entries(errors).filter(([, list]) => list.length > 0))
        expect(found).to.deep.equal({})
      }))
  }

  for (const [screen, viewport] of [
    ['the narrowest phone', NARROW],
    ['a desktop', DESKTOP],
  ] as const) {
    it(`the longest names fit ${screen}`, () =>
      withShop(LONGEST, async (scenario, prices) => {
        await changePlans(scenario, { name: LONGEST })
        const { checkout_url } = await scenario.checkout({ price_id: prices[0], skip_trial: true })
        await withVisitor(browser, [scenario.service.url], { viewport }, async ({ page }) => {
          for (const url of [checkout_url, `${checkout_url}/bank`]) {
            await page.goto(url)
            expect(await accessibilityErrors(page), url).to.deep.equal([])
          }
        })
      }))
  }

  for (const title of [
    'a checkout that takes a promotion code',
    'a bank transfer paid in part',
    'an expired link, paid in part',
    'a renewal whose payment is still open',
    'a bank transfer that has arrived',
    'a purchase in dollars',
  ] as const) {
    it(`${title}: on a phone that enlarges everything to twice its size, and on the narrowest one`, () =>
      withShop('Sách Nói Hay', async (scenario, prices) => {
        const url = await SCENES[title](scenario, prices)
        for (const viewport of [ENLARGED, NARROW]) {
          const visitor = await visit(browser, [scenario.service.url], {
            viewport,
            isMobile: true,
            hasTouch: true,
            locale: 'vi',
          })
          await visitor.page.goto(url)
          for (const folded of await visitor.page.locator('summary').all()) await folded.click()
          expect(await accessibilityErrors(visitor.page), `${viewport.width}`).to.deep.equal([])
          await visitor.end()
        }
      }))
  }

  it('a plan’s name from right to left leaves the number of the interval beside its unit', () =>
    withShop('Reader', async (scenario, prices) => {
      await changePlans(scenario, { name: 'مكتبة' })
      const url = await SCENES['a bank transfer that has arrived'](scenario, prices)
      await withVisitor(browser, [scenario.service.url], { locale: 'en' }, async ({ page }) => {
        await page.goto(url)
        const boxes = await page.evaluate(`(() => {
          const text = document.querySelector('.paid-facts dd').lastChild
          const at = text.textContent.indexOf('1 month')
          const range = document.createRange()
          range.setStart(text, at)
          range.setEnd(text, at + '1 month'.length)
          return range.getClientRects().length
        })()`)
        expect(boxes).to.equal(1)
      })
    }))

  it('a keyboard reaches the content first and sees where it is', () =>
    withShop('Reader', async (scenario, prices) => {
      const { checkout_url } = await scenario.checkout({ price_id: prices[0], skip_trial: true })
      await withVisitor(browser, [scenario.service.url], {}, async ({ page }) => {
        await page.goto(checkout_url)
        await page.keyboard.press('Tab')
        expect(await page.evaluate('document.activeElement.textContent')).to.equal('Skip to content')
        await page.keyboard.press('Enter')
        await page.keyboard.press('Tab')
        expect(await page.evaluate('document.activeElement.value')).to.equal('payos')
        expect(await page.evaluate('getComputedStyle(document.activeElement).outlineWidth')).to.equal('3px')
      })
    }))
})
