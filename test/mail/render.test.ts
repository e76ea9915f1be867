import { expect } from 'chai'
import { describe, it } from 'mocha'
import { mailBrand } from '#mails/compose-mail.ts'
import { htmlOf, renderMail } from '#mail/render.ts'
import { textOf } from '../pages/read-page.ts'
import { LOCALES } from '#shared/locale.ts'
import { REMINDER, SAMPLES } from './samples.ts'

const REMINDERS = LOCALES.flatMap((locale) =>
  (['renewal-reminder', 'expired-notice'] as const).map((template) => [template, locale] as const),
)

describe('mail templates', () => {
  for (const { name, template, locale, values } of SAMPLES) {
    it(`${name}: the HTML says what the text says`, async () => {
      const { text, html } = await renderMail(template, locale, values)
      const shown = unpunctuated(textOf({ text: html }))
      // Links are in the HTML as addresses of buttons.
      const lines = text.split('\n').filter((line) => !/^((--)? ?|http.*)$/.test(line))
      for (const line of lines) expect(shown).to.include(unpunctuated(line))
      expect(html).to.contain(`lang="${locale}"`)
    })

    it(`${name} carries the TEST mark for sandbox apps only`, async () => {
      const live = await renderMail(template, locale, values)
      expect(`${live.subject}${live.text}${live.html}`).not.to.match(/\bTEST\b/)
      const test = await renderMail(template, locale, { ...values, is_test: true })
      for (const part of [test.subject, test.text, test.html]) expect(part).to.match(/\bTEST\b/)
    })

    it(`${name} loads nothing from anywhere, and leaves no placeholder`, async () => {
      const { subject, text, html } = await renderMail(template, locale, values)
      const addresses = html.match(/https?:\/\/[^"'\s)<]+/g) ?? []
      const outside = addresses.filter((address) => !/^http:\/\/(127\.0\.0\.1:8080|www\.w3\.org)\//.test(address))
      expect(outside).to.deep.equal([])
      expect(html).not.to.match(/<img|<script|@import|url\(/)
      expect(`${subject}${text}${html}`).not.to.match(/<%|%>|undefined/)
    })
  }

  for (const [template, locale] of REMINDERS) {
    it(`${template} in ${locale} shows plan, amount, time, link and opt-out, in text and HTML`, async () => {
      const { subject, text, html } = await renderMail(template, locale, REMINDER)
      expect(subject).to.contain(REMINDER.plan_name)
      for (const part of [REMINDER.customer_name, REMINDER.amount, REMINDER.interval, REMINDER.period_end]) {
        expect(text).to.contain(part)
        expect(html).to.contain(part)
      }
      expect(text).to.contain(REMINDER.renew_url).and.to.contain(REMINDER.opt_out_url)
      expect(html).to.contain(`href="${REMINDER.renew_url.replace('&', '&amp;')}"`)
      expect(html).to.contain(`href="${REMINDER.opt_out_url}"`)
    })

    it(`${template} in ${locale} has words of its own for a trial`, async () => {
      const paid = await renderMail(template, locale, REMINDER)
      const trial = await renderMail(template, locale, { ...REMINDER, in_trial: true })
      expect(trial.subject).not.to.equal(paid.subject)
      expect(trial.text).to.match(/trial|dùng thử/)
    })
  }

  it('what people typed is escaped in HTML and left alone in text and subject', async () => {
    const name = '<script>alert(1)</script>'
    const values = { ...REMINDER, plan_name: name, plan_title: name }
    const { subject, text, html } = await renderMail('renewal-reminder', 'en', values)
    expect(html).not.to.contain('<script>')
    expect(html).to.contain('&lt;script&gt;').and.to.contain('Sách &amp; Trà &lt;shop&gt;')
    expect(text).to.contain('<script>alert(1)</script>')
    expect(subject).to.contain('<script>alert(1)</script>')
  })

  it('buttons and links have the seller’s accent, lighter on dark ground, and its links are in both parts', async () => {
    const settings = { accent: '#0b6b3a', support: 'help@shop.example', terms_url: 'https://shop.example/terms' }
    const brand = mailBrand({ pageSettings: settings }, 'en', 'http://127.0.0.1:8080')
    const { text, html } = await renderMail('renewal-reminder', 'en', { ...REMINDER, ...brand })
    expect(html).to.contain('background:#0b6b3a').and.not.to.contain('#1b5fc1')
    expect(html).to.contain('href="mailto:help@shop.example"').and.to.contain(`href="${settings.terms_url}"`)
    expect(text).to.contain(`Help: help@shop.example\nTerms: ${settings.terms_url}`).and.not.to.contain('Privacy')
    expect((await renderMail('renewal-reminder', 'en', REMINDER)).text).not.to.match(/Help:|Terms:/)
  })

  it('the link to an address with characters that end one in a link has them encoded', async () => {
    const brand = mailBrand({ pageSettings: { support: "r&d?#%'@shop.example" } }, 'en', 'http://127.0.0.1:8080')
    const { text, html } = await renderMail('renewal-reminder', 'en', { ...REMINDER, ...brand })
    expect(html).to.contain('href="mailto:r%26d%3F%23%25&#39;@shop.example"')
    expect(text).to.contain("Help: r&d?#%'@shop.example\n")
  })

  it('the last day has a subject of its own', async () => {
    const values = { ...REMINDER, plan_name: 'Premium' }
    const three = await renderMail('renewal-reminder', 'en', values)
    const one = await renderMail('renewal-reminder', 'en', { ...values, stage: 1 })
    expect(three.subject).to.equal('Your Premium subscription ends on 31 March 2026')
    expect(one.subject).to.equal('Your Premium subscription ends within 24 hours')
  })

  it('a text as HTML holds no markup of its own', () => {
    expect(htmlOf('the bank "A&B" <b>\nwaits')).to.equal(
      '<pre style="font: inherit; white-space: pre-wrap">the bank &quot;A&amp;B&quot; &lt;b&gt;\nwaits</pre>',
    )
  })

  it('a placeholder without a value is an error, not a hole in the mail', async () => {
    const rest = Object.fromEntries(Object.entries(REMINDER).filter(([name]) => name !== 'amount'))
    let message = ''
    await renderMail('renewal-reminder', 'en', rest).catch((error: unknown) => (message = String(error)))
    expect(message).to.contain('amount')
  })

  it('templates are read once: the mails after the first read no file, and so never wait', async () => {
    await renderMail('renewal-reminder', 'vi', REMINDER)
    let hasWaited = false
    const immediate = setImmediate(() => (hasWaited = true))
    for (let n = 0; n < 1000; n += 1) await renderMail('renewal-reminder', 'vi', REMINDER)
    clearImmediate(immediate)
    expect(hasWaited).to.equal(false)
  })
})

/** Without the colons and blanks that tables and links have in text alone. */
function unpunctuated(text: string): string {
  return text.replace(/[:\s]+/g, ' ').trim()
}
