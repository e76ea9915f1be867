import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Browser, Page } from 'playwright-core'
import { renderMail } from '#mail/render.ts'
import { contrastFaultsOf } from '../pages/audit.ts'
import { startBrowser } from '../pages/browser.ts'
import { SAMPLES } from './samples.ts'

const WIDTHS = { phone: 375, desktop: 1000 } as const

describe('mails in a browser', () => {
  let browser: Browser
  let page: Page

  before(async () => {
    browser = await startBrowser()
    page = await browser.newPage({ offline: true })
  })
  after(() => browser.close())

  for (const { name, template, locale, values } of SAMPLES) {
    for (const [device, width] of Object.entries(WIDTHS)) {
      it(`${name} fits a ${device}${template === 'receipt' ? '' : ', with its button in reach'}`, async () => {
        const { html } = await renderMail(template, locale, { ...values, is_test: true })
        await page.setViewportSize({ width, height: 800 })
        await page.setContent(html)
        if (template !== 'receipt') {
          const button = page.getByRole('link', { name: /^(Renew now|Gia hạn ngay)$/ })
          const box = (await button.boundingBox()) ?? expect.fail('no button')
          expect(box.height, 'a thumb hits it').to.be.at.least(44)
          expect(box.x).to.be.at.least(0)
          expect(box.x + box.width).to.be.at.most(width)
          const facts = page.locator('.facts .value')
          const [interval, end] = await Promise.all([facts.nth(1).boundingBox(), facts.last().boundingBox()])
          expect(end!.height, 'the end of the period on one line, as the interval').to.equal(interval!.height)
        }
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          expect(await contrastFaultsOf(page), `readable in ${colorScheme} colours`).to.deep.equal([])
        }
        const scrollWidth: unknown = await page.evaluate('document.documentElement.scrollWidth')
        expect(scrollWidth, 'nothing sticks out sideways').to.equal(width)
      })
    }
  }
})
