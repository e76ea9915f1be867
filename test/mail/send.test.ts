import { readFile, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { pino } from 'pino'
import PostalMime from 'postal-mime'
import { loadConfig } from '#config/config.ts'
import { MailError, type Mail, type Mailer, type SendOptions } from '#mail/mail.ts'
import { openMailer, senderOf } from '#mail/open-mailer.ts'
import { SmtpInbox, headerOf, type InboxBehaviour } from './smtp-inbox.ts'
import { scratchFolder } from '../support/scratch.ts'

const MAIL: Mail = {
  from: { name: 'Cửa hàng', address: 'billing@shop.example' },
  to: [{ name: 'Nguyễn Văn An', address: 'an@customer.example' }],
  cc: [],
  bcc: [],
  subject: 'Gia hạn gói của bạn',
  text: 'Xin chào An',
  html: '<p>Xin chào <b>An</b></p>',
  messageId: 'reminder.1.1774915200.3@shop.example',
  headers: { 'List-Unsubscribe': '<https://pay.example/renew/t/opt-out>' },
}
const COPIED = { ...MAIL, cc: ['boss@customer.example'], bcc: ['archive@shop.example'] }
const silent = pino({ level: 'silent' })

async function failureOf(sending: Promise<void>): Promise<string> {
  try {
    await sending
  } catch (error) {
    if (error instanceof MailError) return error.failure
    throw error
  }
  return 'none'
}

describe('sending mail by SMTP', () => {
  let inbox: SmtpInbox
  let mailer: Mailer
  let logged: Record<string, unknown>[]

  beforeEach(async () => {
    inbox = await SmtpInbox.open({ starttls: true })
    logged = []
    const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>) })
    const config = loadConfig({ BILLING_SMTP_URL: inbox.url, BILLING_MAIL_FROM: 'billing@shop.example' })
    mailer = openMailer(config, log) ?? expect.fail('no mailer')
  })

  afterEach(async () => {
    mailer.close()
    await inbox.stop()
  })

  it('reaches To, Cc and Bcc, and shows no recipient the Bcc', async () => {
    await mailer.send(COPIED)
    const [mail, ...others] = inbox.mails
    expect(others).to.deep.equal([])
    expect(mail?.recipients).to.have.members(['an@customer.example', 'boss@customer.example', 'archive@shop.example'])
    expect(mail?.raw).not.to.contain('archive@shop.example')
    expect(mail?.parsed.from).to.include(MAIL.from)
    expect(mail?.parsed.to?.[0]).to.include(MAIL.to[0])
    expect(mail?.parsed.cc?.map(({ address }) => address)).to.deep.equal(COPIED.cc)
  })

  it('reaches addresses with each character that a dot-atom may have', async () => {
    const address = "!#$%&'*+-/=?^_`{|}~@customer.example"
    await mailer.send({ ...MAIL, from: { name: 'A', address }, to: [{ name: 'B', address }], cc: [`cc${address}`] })
    const { recipients, parsed } = inbox.mails[0] ?? expect.fail('no mail')
    expect(recipients).to.deep.equal([address, `cc${address}`])
    expect([parsed.from?.address, parsed.to?.[0]?.address, parsed.cc?.[0]?.address]).to.deep.equal([
      address,
      address,
      `cc${address}`,
    ])
  })

  it('is sent though a copy is refused, which the log reports', async () => {
    inbox.refusals.set('boss@customer.example', [550, '5.1.1 no such mailbox'])
    expect(await failureOf(mailer.send(COPIED))).to.equal('none')
    expect(inbox.mails.map(({ recipients }) => recipients)).to.deep.equal([
      ['an@customer.example', 'archive@shop.example'],
    ])
    expect(logged.map(({ messageId, refused }) => [messageId, refused])).to.deep.equal([[COPIED.messageId, 1]])
  })

  it('is not sent if the customer is refused, though a copy is accepted', async () => {
    inbox.refusals.set('an@customer.example', [450, '4.2.0 greylisted, try again later'])
    expect(await failureOf(mailer.send(COPIED))).to.equal('refused')
    inbox.refusals.set('an@customer.example', [550, '5.1.1 no such mailbox'])
    expect(await failureOf(mailer.send({ ...COPIED, cc: ['AN@customer.example'] }))).to.equal('no_such_address')
    inbox.refusals.clear()
    await mailer.send(MAIL)
    expect(inbox.mails.map(({ recipients }) => recipients)).to.deep.equal([['an@customer.example']])
  })

  it('has text and HTML, and its headers unchanged', async () => {
    await mailer.send(MAIL)
    const mail = inbox.mails[0] ?? expect.fail('no mail')
    expect(mail.parsed.subject).to.equal(MAIL.subject)
    expect(mail.parsed.text?.trim()).to.equal(MAIL.text)
    expect(mail.parsed.html?.trim()).to.equal(MAIL.html)
    expect(mail.parsed.messageId).to.equal(`<${MAIL.messageId}>`)
    expect(headerOf(mail, 'List-Unsubscribe')).to.equal('<https://pay.example/renew/t/opt-out>')
  })

  it('sends many mails over few connections', async () => {
    await Promise.all(Array.from({ length: 30 }, (_, n) => mailer.send({ ...MAIL, messageId: `m${n}@shop.example` })))
    expect(inbox.mails.map(({ parsed }) => parsed.messageId)).to.have.lengthOf(30)
    expect(new Set(inbox.mails.map(({ parsed }) => parsed.messageId)).size).to.equal(30)
  })

  const cases: [InboxBehaviour, string, boolean][] = [
    ['refuse-recipient', 'no_such_address', false],
    ['refuse-data', 'refused', true],
    ['drop-early', 'unreachable', false],
    ['drop-late', 'unknown', true],
    ['lose-answer', 'unknown', true],
  ]
  for (const [behaviour, failure, reachesHandOver] of cases) {
    it(`a server that does "${behaviour}" fails as "${failure}"`, async () => {
      inbox.behaviour = behaviour
      let handOvers = 0
      const options: SendOptions = { beforeHandOver: () => Promise.resolve(void (handOvers += 1)) }
      expect(await failureOf(mailer.send(MAIL, options))).to.equal(failure)
      expect(handOvers).to.equal(reachesHandOver ? 1 : 0)
    })
  }

  it('a mail whose answer was lost is not resent automatically', async () => {
    inbox.behaviour = 'lose-answer'
    expect(await failureOf(mailer.send(MAIL))).to.equal('unknown')
    inbox.behaviour = 'accept'
    await mailer.send({ ...MAIL, messageId: 'next@shop.example' })
    expect(inbox.mails.map(({ parsed }) => parsed.messageId)).to.deep.equal([
      `<${MAIL.messageId}>`,
      '<next@shop.example>',
    ])
  })

  it('a server that is down fails as "unreachable", and mails go out when it is back', async () => {
    await inbox.stop()
    expect(await failureOf(mailer.send(MAIL))).to.equal('unreachable')
    expect(await failureOf(mailer.verify())).to.equal('unreachable')
    await inbox.start()
    await mailer.verify()
    await mailer.send(MAIL)
    expect(inbox.mails).to.have.lengthOf(1)
  })

  it('a mail that is stopped at the hand-over does not leave', async () => {
    const stop = (): Promise<void> => Promise.reject(new Error('opted out meanwhile'))
    expect(await failureOf(mailer.send(MAIL, { beforeHandOver: stop }))).to.equal('refused')
    await mailer.send({ ...MAIL, messageId: 'next@shop.example' })
    expect(inbox.mails.map(({ parsed }) => parsed.messageId)).to.deep.equal(['<next@shop.example>'])
    expect(inbox.messagesSeen).to.equal(1)
  })
})

describe('a mail server that is configured with ?requireTLS=true', () => {
  let inbox: SmtpInbox
  afterEach(() => inbox.stop())

  const sendTo = async (query: string): Promise<string> => {
    const config = loadConfig({ BILLING_SMTP_URL: `${inbox.url}${query}`, BILLING_MAIL_FROM: 'billing@shop.example' })
    const mailer = openMailer(config, silent) ?? expect.fail('no mailer')
    try {
      return await failureOf(mailer.send(MAIL))
    } finally {
      mailer.close()
    }
  }

  it('gets no mail without STARTTLS, whatever else the address says', async () => {
    inbox = await SmtpInbox.open()
    expect(await sendTo('?requireTLS=true')).to.equal('unreachable')
    expect(await sendTo('?ignoreTLS=true&requireTLS=true')).to.equal('unreachable')
    expect(await sendTo('?requireTLS=true&opportunisticTLS=true')).to.equal('unreachable')
    expect(inbox.messagesSeen).to.equal(0)
    expect(await sendTo('')).to.equal('none')
  })

  it('receives it over TLS if it offers STARTTLS', async () => {
    inbox = await SmtpInbox.open({ starttls: true })
    expect(await sendTo('?requireTLS=true')).to.equal('none')
    expect(inbox.mails.map(({ overTls }) => overTls)).to.deep.equal([true])
  })
})

describe('mail without an SMTP server', () => {
  it('in development each mail is a file that only its owner can read, and the log names its path', async () => {
    const home = scratchFolder('home')
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    const mailer = openMailer(loadConfig({ BILLING_HOME: home }), log) ?? expect.fail('no mailer')
    await mailer.send(COPIED)
    const [file = ''] = await readdir(join(home, 'mail'))
    const path = join(home, 'mail', file)
    expect((await stat(path)).mode & 0o777).to.equal(0o600)
    expect((JSON.parse(lines[0] ?? '') as { path: string }).path).to.equal(path)
    const parsed = await PostalMime.parse(await readFile(path))
    expect(parsed.subject).to.equal(MAIL.subject)
    expect(parsed.bcc?.[0]?.address).to.equal(COPIED.bcc[0])
  })

  it('in production there is no mailer', () => {
    const config = loadConfig({
      BILLING_ENV: 'production',
      BILLING_HOME: scratchFolder('home'),
      BILLING_DATABASE_URL: 'mysql://u:p@127.0.0.1/paygate',
      BILLING_BASE_URL: 'https://pay.example',
      BILLING_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
    })
    expect(openMailer(config, silent)).to.equal(null)
  })
})

describe('the sender of a mail', () => {
  const config = loadConfig({ BILLING_SMTP_URL: 'smtp://127.0.0.1', BILLING_MAIL_FROM: 'Paygate <pay@host.example>' })
  const cases: [string | null, object][] = [
    [null, { name: 'Shop', address: 'pay@host.example' }],
    ['billing@shop.example', { name: 'Shop', address: 'billing@shop.example' }],
    ['Shop Billing <billing@shop.example>', { name: 'Shop Billing', address: 'billing@shop.example' }],
  ]
  for (const [mailFrom, sender] of cases) {
    it(`of an app with ${mailFrom ?? 'no address of its own'} is ${JSON.stringify(sender)}`, () => {
      expect(senderOf({ name: 'Shop', mailFrom }, config)).to.deep.equal(sender)
    })
  }
})
