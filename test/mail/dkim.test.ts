import { execFileSync } from 'node:child_process'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { pino } from 'pino'
import { ConfigError, loadConfig } from '#config/config.ts'
import type { Mail } from '#mail/mail.ts'
import { openMailer } from '#mail/open-mailer.ts'
import { dkimRecord, newDkimKey, parseDkimKey } from '#shared/dkim-key.ts'
import { verifyDkim } from './verify-dkim.ts'
import { SmtpInbox, headerOf } from './smtp-inbox.ts'

const KEY = newDkimKey()
const MAIL: Mail = {
  from: { name: 'Cửa hàng', address: 'billing@shop.example' },
  to: [{ name: 'Nguyễn Văn An', address: 'an@customer.example' }],
  cc: [],
  bcc: ['archive@shop.example'],
  subject: 'Gia hạn gói của bạn',
  text: 'Xin chào An',
  html: '<p>Xin chào <b>An</b></p>',
  messageId: 'reminder.1.1774915200.3@shop.example',
  headers: {
    'List-Unsubscribe': '<https://pay.example/renew/t/opt-out>',
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  },
}
const RECORDS = { 'paygate._domainkey.shop.example': dkimRecord(parseDkimKey(KEY)) }

describe('mails are signed by DKIM', () => {
  let inbox: SmtpInbox

  beforeEach(async () => {
    inbox = await SmtpInbox.open()
  })

  afterEach(() => inbox.stop())

  async function received(settings: Readonly<Record<string, string>>, mail = MAIL) {
    const from = { BILLING_SMTP_URL: inbox.url, BILLING_MAIL_FROM: 'Billing <billing@Shop.example>' }
    const mailer = openMailer(loadConfig({ ...from, ...settings }), pino({ level: 'silent' }))!
    try {
      await mailer.send(mail)
    } finally {
      mailer.close()
    }
    return inbox.mails.at(-1)!
  }

  it('with a key each mail carries a signature that a receiver verifies by the record in DNS', async () => {
    const mail = await received({ BILLING_DKIM_KEY: KEY })
    expect(verifyDkim(mail.raw, RECORDS)).to.equal(true)
    expect(headerOf(mail, 'DKIM-Signature')).to.match(/d=shop\.example; [^]*s=paygate;/)
    expect(verifyDkim(mail.raw.replace('Xin ch', 'Xin xh'), RECORDS)).to.equal(false)
    expect(
      verifyDkim(mail.raw, { ...RECORDS, [Object.keys(RECORDS)[0]!]: dkimRecord(parseDkimKey(newDkimKey())) }),
    ).to.equal(false)
  })

  it('the signature covers both headers of one click to unsubscribe', async () => {
    const mail = await received({ BILLING_DKIM_KEY: KEY })
    const [, names = ''] = /;\s+h=([^;]+);/.exec(headerOf(mail, 'DKIM-Signature') ?? '') ?? []
    const signed = names.replace(/\s/g, '').toLowerCase().split(':')
    expect(signed).to.include.members(['from', 'subject', 'date', 'list-unsubscribe', 'list-unsubscribe-post'])
  })

  it('the key may be one line, the selector another, and a mail of an app with its own sender is signed for our domain', async () => {
    const line = parseDkimKey(KEY).export({ type: 'pkcs8', format: 'der' }).toString('base64')
    const sender = { ...MAIL, from: { name: 'Reader', address: 'hello@reader.example' } }
    const mail = await received({ BILLING_DKIM_KEY: line, BILLING_DKIM_SELECTOR: 'k2026' }, sender)
    expect(verifyDkim(mail.raw, { 'k2026._domainkey.shop.example': dkimRecord(parseDkimKey(KEY)) })).to.equal(true)
  })

  it('without a key no mail is signed', async () => {
    expect(headerOf(await received({}), 'DKIM-Signature')).to.equal(null)
  })

  it('a key that is none, and one without a sender’s domain, prevent the start, and no error repeats the key', () => {
    const ec = execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519'], { encoding: 'utf8' })
    for (const [settings, part] of [
      [{ BILLING_DKIM_KEY: 'canary', BILLING_MAIL_FROM: 'a@b.example' }, 'BILLING_DKIM_KEY must be a private RSA key'],
      [{ BILLING_DKIM_KEY: ec, BILLING_MAIL_FROM: 'a@b.example' }, 'BILLING_DKIM_KEY must be a private RSA key'],
      [{ BILLING_DKIM_KEY: KEY }, 'BILLING_MAIL_FROM must be an address'],
      [{ BILLING_DKIM_SELECTOR: 'a b' }, 'BILLING_DKIM_SELECTOR must be a name'],
    ] as const) {
      const load = () => loadConfig(settings)
      expect(load).to.throw(ConfigError, part)
      expect(load).not.to.throw(/canary|PRIVATE KEY/)
    }
  })
})
