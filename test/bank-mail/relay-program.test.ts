import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { postMail, relayBody } from '#bank-mail/post-mail.ts'
import { bankMails } from '#bank-mail/store.ts'
import { messageOf } from '#shared/errors.ts'
import { within } from '../cli/run-here.ts'
import { genuineMail, TRANSFER } from '../support/bank-mails.ts'
import { listen, stopServer } from '../support/http-server.ts'
import { scratchFolder } from '../support/scratch.ts'
import { aBankShop, RELAY_SECRET, type BankShop } from './bank-shop.ts'
import { runRelay } from './run-relay.ts'

describe('bin/bank-mail-relay', () => {
  let shop: BankShop
  let settings: Record<string, string>
  const servers: Server[] = []

  beforeEach(async () => {
    shop = await aBankShop()
    // The program signs with the real time.
    shop.service.ctx.clock.setToPresent()
    settings = { BILLING_BASE_URL: shop.service.url, BILLING_RELAY_SECRET: RELAY_SECRET }
  })
  afterEach(async () => {
    await shop.service.stop()
    for (const server of servers.splice(0)) await stopServer(server)
  })

  const address = () => `bank+${shop.account.forwardCode}@pay.example`

  /** A server that answers everything so. */
  async function answering(status: number, body: string): Promise<string> {
    const server = createServer((request, response) => {
      request.resume()
      response.writeHead(status).end(body)
    })
    servers.push(server)
    return `http://127.0.0.1:${await listen(server)}`
  }

  it('takes its secret from a file, as a mail server hands its settings to everybody', async () => {
    const folder = scratchFolder('relay')
    writeFileSync(join(folder, 'BILLING_RELAY_SECRET'), `${RELAY_SECRET}\n`)
    const mail = await genuineMail('TIMO', TRANSFER)
    const environment = { BILLING_BASE_URL: shop.service.url, CREDENTIALS_DIRECTORY: folder }
    expect(await runRelay(mail, [address()], environment)).to.include({ code: 0, error: '' })
    expect(await shop.service.ctx.db.all(bankMails, '')).to.have.length(1)
  })

  it('posts the mail with its recipient, signed, and exits 0 with the decision', async () => {
    const payment = await shop.pay()
    const mail = await genuineMail('ACB', { ...TRANSFER, content: payment.transferCode! })
    const { code, output, error } = await runRelay(mail, [address()], settings)
    expect({ code, output, error }).to.deep.equal({ code: 0, output: 'processed\n', error: '' })
    expect((await shop.transaction(payment.id)).status).to.equal('completed')
    const [kept] = await shop.service.ctx.db.all(bankMails, '')
    expect(kept?.bankAccountId).to.equal(shop.account.id)
  })

  it('exits 0 when the mail is refused, which is a decision, without the service’s keys and database, in production too', async () => {
    const { code, output } = await runRelay('Subject: x\n\nx', [address()], { ...settings, BILLING_ENV: 'production' })
    expect({ code, output }).to.deep.equal({ code: 0, output: 'ignored: not_bank_email\n' })
  })

  it('exits 75 when nobody listens', async () => {
    await shop.service.stop()
    const { code, error } = await runRelay('x', [address()], settings)
    expect(code).to.equal(75)
    expect(error).to.contain('connection_refused')
  })

  it('exits 75 when the service answers 500, and never shows the secret', async () => {
    const base = await answering(500, RELAY_SECRET)
    const { code, output, error } = await runRelay('x', [address()], { ...settings, BILLING_BASE_URL: base })
    expect(code).to.equal(75)
    expect(error).to.contain('answered 500')
    expect(error + output).not.to.contain(RELAY_SECRET)
  })

  it('exits 64 without a recipient', async () => {
    expect((await runRelay('x', [], settings)).code).to.equal(64)
    expect((await runRelay('x', [''], settings)).code).to.equal(64)
  })

  it('posts the mail for each of several recipients, and its money is taken once', async () => {
    const payment = await shop.pay()
    const mail = await genuineMail('ACB', { ...TRANSFER, content: payment.transferCode! })
    const { code, output } = await runRelay(mail, [address(), 'other@pay.example'], settings)
    expect({ code, output }).to.deep.equal({ code: 0, output: 'processed\nduplicate\n' })
  })

  it('exits 65 with a mail that the service would never take', async () => {
    for (const size of [200 * 1024, 3 * 1024 * 1024]) {
      expect((await runRelay(Buffer.alloc(size, 'x'), [address()], settings)).code, String(size)).to.equal(65)
    }
  })

  /** What makes the program exit 75: the error of posting a mail in these surroundings; null if there is none. */
  async function errorOfPosting(env: Readonly<Record<string, string>>): Promise<string | null> {
    const surroundings = { env, stdin: new PassThrough(), write: () => undefined, columns: null }
    return within(surroundings, () => postMail(relayBody(Buffer.from('x'), address())).then(() => null, messageOf))
  }

  for (const status of [400, 404, 429, 502, 503, 301]) {
    it(`takes an answer of ${status} for no decision`, async () => {
      const base = await answering(status, '{"status":"processed"}')
      expect(await errorOfPosting({ ...settings, BILLING_BASE_URL: base })).to.contain(`answered ${status}`)
    })
  }

  it('takes an answer of 200 by somebody else for no decision', async () => {
    for (const body of ['<html>', '{}', '[]', '{"status":1}']) {
      const base = await answering(200, body)
      expect(await errorOfPosting({ ...settings, BILLING_BASE_URL: base }), body).to.contain('answered 200')
    }
    const base = await answering(200, '{"status":"processed"}')
    expect(await errorOfPosting({ ...settings, BILLING_BASE_URL: base })).to.equal(null)
  })

  it('reports a secret that is missing or another one', async () => {
    expect(await errorOfPosting({ BILLING_BASE_URL: shop.service.url })).to.contain('BILLING_RELAY_SECRET is not set')
    expect(await errorOfPosting({ ...settings, BILLING_RELAY_SECRET: 'x'.repeat(20) })).to.contain(
      'is BILLING_RELAY_SECRET the same there',
    )
  })
})
