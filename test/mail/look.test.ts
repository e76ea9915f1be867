import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { chromium, type Browser } from 'playwright-core'
import { renderMail, type MailLocale, type MailTemplate, type MailValues } from '#mail/render.ts'

const CHROMIUM = '/usr/bin/chromium'
const ARTIFACTS = join(import.meta.dirname, '../artifacts')
const WIDTHS = { phone: 375, desktop: 1000 } as const

const WORDS: Record<MailLocale, Record<string, string>> = {
  en: {
    plan_name: 'Premium',
    plan_title: 'Premium',
    interval: '1 month',
    amount: '₫99,000',
    period_end: '31 March 2026, 10:05 UTC',
    period_end_day: '31 March 2026',
  },
  vi: {
    plan_name: 'Gói Cao cấp dành cho gia đình đông người',
    plan_title: 'Gói Cao cấp dành cho gia đình đông người',
    interval: '1 tháng',
    amount: '99.000 ₫',
    period_end: '17:05 ngày 31/3/2026 (GMT+7)',
    period_end_day: '31/3/2026',
  },
}

const mails: [MailTemplate, MailLocale, boolean][] = [
  ['renewal-reminder', 'en', false],
  ['renewal-reminder', 'vi', true],
  ['expired-notice', 'en', true],
  ['expired-notice', 'vi', false],
]

function valuesOf(locale: MailLocale, isTest: boolean): MailValues {
  return {
    ...WORDS[locale],
    stage: 3,
    is_test: isTest,
    in_trial: false,
    app_name: 'Sách Hay',
    customer_name: 'Nguyễn Văn An',
    renew_url: `https://pay.example.com/renew/${'3f9a'.repeat(16)}`,
    opt_out_url: `https://pay.example.com/renew/${'3f9a'.repeat(16)}/opt-out`,
  }
}

// A machine without a browser has nothing to look with; the suite's own runner has one.
if (existsSync(CHROMIUM)) {
  describe('mails in a browser', () => {
    let browser: Browser

    before(async function () {
      this.timeout(120_000)
      await mkdir(ARTIFACTS, { recursive: true })
      const quiet = ['--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking']
      browser = await chromium.launch({
        executablePath: CHROMIUM,
        args: ['--no-sandbox', ...quiet, '--disable-component-update', '--disable-sync'],
      })
    })
    after(() => browser.close())

    for (const [template, locale, isTest] of mails) {
      for (const [device, width] of Object.entries(WIDTHS)) {
        it(`${template} in ${locale} fits a ${device}, with its button in reach`, async () => {
          const { html } = await renderMail(template, locale, valuesOf(locale, isTest))
          const page = await browser.newPage({ viewport: { width, height: 800 }, offline: true })
          await page.setContent(html)
          await page.screenshot({ path: join(ARTIFACTS, `mail-${template}-${locale}-${device}.png`), fullPage: true })
          const button = page.getByRole('link', { name: /^(Renew now|Gia hạn ngay)$/ })
          const box = (await button.boundingBox()) ?? expect.fail('no button')
          expect(box.height, 'a thumb hits it').to.be.at.least(44)
          expect(box.x).to.be.at.least(0)
          expect(box.x + box.width).to.be.at.most(width)
          const scrollWidth: unknown = await page.evaluate('document.documentElement.scrollWidth')
          expect(scrollWidth, 'nothing sticks out sideways').to.equal(width)
          await page.close()
        })
      }
    }
  })
}
