import { expect } from 'chai'
import { describe, it } from 'mocha'
import { renderMail, type MailLocale, type MailTemplate, type MailValues } from '#mail/render.ts'

const VALUES = {
  stage: 3,
  is_test: false,
  in_trial: false,
  app_name: 'Sách & Trà <shop>',
  customer_name: 'Nguyễn Văn An',
  plan_name: 'Premium "Gold"',
  plan_title: 'Premium "Gold"',
  interval: '1 month',
  amount: '₫99,000',
  period_end: '31 March 2026, 10:05 UTC',
  period_end_day: '31 March 2026',
  renew_url: 'http://127.0.0.1:8080/renew/token?a=1&b=2',
  opt_out_url: 'http://127.0.0.1:8080/renew/token/opt-out',
} satisfies MailValues

const mails: [MailTemplate, MailLocale][] = [
  ['renewal-reminder', 'en'],
  ['renewal-reminder', 'vi'],
  ['expired-notice', 'en'],
  ['expired-notice', 'vi'],
]

describe('mail templates', () => {
  for (const [template, locale] of mails) {
    it(`${template} in ${locale} tells plan, amount, time, link and opt-out, in text and HTML`, async () => {
      const { subject, text, html } = await renderMail(template, locale, VALUES)
      expect(subject).to.contain(VALUES.plan_name)
      for (const part of [VALUES.customer_name, VALUES.amount, VALUES.interval, VALUES.period_end]) {
        expect(text).to.contain(part)
        expect(html).to.contain(part)
      }
      expect(text).to.contain(VALUES.renew_url).and.to.contain(VALUES.opt_out_url)
      expect(html).to.contain('href="http://127.0.0.1:8080/renew/token?a=1&amp;b=2"')
      expect(html).to.contain(`href="${VALUES.opt_out_url}"`)
      expect(html).to.contain(`lang="${locale}"`)
      expect(`${subject}${text}${html}`).not.to.match(/\{\{|\{%|undefined/)
    })

    it(`${template} in ${locale} carries the TEST mark for sandbox apps only`, async () => {
      const live = await renderMail(template, locale, VALUES)
      expect(`${live.subject}${live.text}${live.html}`).not.to.match(/\bTEST\b/)
      const test = await renderMail(template, locale, { ...VALUES, is_test: true })
      for (const part of [test.subject, test.text, test.html]) expect(part).to.match(/\bTEST\b/)
    })

    it(`${template} in ${locale} has words of its own for a trial`, async () => {
      const paid = await renderMail(template, locale, VALUES)
      const trial = await renderMail(template, locale, { ...VALUES, in_trial: true })
      expect(trial.subject).not.to.equal(paid.subject)
      expect(trial.text).to.match(/trial|dùng thử/)
    })

    it(`${template} in ${locale} loads nothing from anywhere`, async () => {
      const { html } = await renderMail(template, locale, VALUES)
      const addresses = html.match(/https?:\/\/[^"'\s)<]+/g) ?? []
      const outside = addresses.filter((address) => !address.startsWith('http://127.0.0.1:8080/'))
      expect(outside.filter((address) => !address.startsWith('http://www.w3.org/'))).to.deep.equal([])
      expect(html).not.to.match(/<img|<script|@import|url\(/)
    })
  }

  it('what people typed is escaped in HTML and left alone in text and subject', async () => {
    const name = '<script>alert(1)</script>'
    const values = { ...VALUES, plan_name: name, plan_title: name }
    const { subject, text, html } = await renderMail('renewal-reminder', 'en', values)
    expect(html).not.to.contain('<script>')
    expect(html).to.contain('&lt;script&gt;').and.to.contain('Sách &amp; Trà &lt;shop&gt;')
    expect(text).to.contain('<script>alert(1)</script>')
    expect(subject).to.contain('<script>alert(1)</script>')
  })

  it('the last day has a subject of its own', async () => {
    const three = await renderMail('renewal-reminder', 'en', VALUES)
    const one = await renderMail('renewal-reminder', 'en', { ...VALUES, stage: 1 })
    expect(three.subject).to.equal('Your Premium "Gold" subscription ends on 31 March 2026')
    expect(one.subject).to.equal('Your Premium "Gold" subscription ends within 24 hours')
  })

  it('a placeholder without a value is an error, not a hole in the mail', async () => {
    const rest = Object.fromEntries(Object.entries(VALUES).filter(([name]) => name !== 'amount'))
    let message = ''
    await renderMail('renewal-reminder', 'en', rest).catch((error: unknown) => (message = String(error)))
    expect(message).to.contain('amount')
  })

  it('MJML runs once: the mails after the first read no file, and so never wait', async () => {
    await renderMail('renewal-reminder', 'vi', VALUES)
    let hasWaited = false
    const turn = setImmediate(() => (hasWaited = true))
    for (let n = 0; n < 1000; n += 1) await renderMail('renewal-reminder', 'vi', VALUES)
    clearImmediate(turn)
    expect(hasWaited).to.equal(false)
  })
})
