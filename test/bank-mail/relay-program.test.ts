import { writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { bankMails } from '#bank-mail/store.ts'
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

  it('exits 0 when the mail is refused: it is decided on', async () => {
    const { code, output } = await runRelay('Subject: x\n\nx', [address()], settings)
    expect({ code, output }).to.deep.equal({ code: 0, output: 'ignored: not_bank_email\n' })
  })

  it('does not need the service’s keys and database, production or not', async () => {
    const { code } = await runRelay('Subject: x\n\nx', [address()], { ...settings, BILLING_ENV: 'production' })
    expect(code).to.equal(0)
  })

  it('exits 75 when nobody listens', async () => {
    await shop.service.stop()
    const { code, error } = await runRelay('x', [address()], settings)
    expect(code).to.equal(75)
    expect(error).to.contain('connection_refused')
  })

  for (const status of [400, 404, 429, 500, 502, 503, 301]) {
    it(`exits 75 when the service answers ${status}`, async () => {
      const base = await answering(status, '{"status":"processed"}')
      expect((await runRelay('x', [address()], { ...settings, BILLING_BASE_URL: base })).code).to.equal(75)
    })
  }

  it('exits 75 when somebody else answers 200', async () => {
    for (const body of ['<html>', '{}', '[]', '{"status":1}']) {
      const base = await answering(200, body)
      expect((await runRelay('x', [address()], { ...settings, BILLING_BASE_URL: base })).code, body).to.equal(75)
    }
  })

  it('exits 75 when the secret is missing or another one', async () => {
    expect((await runRelay('x', [address()], { BILLING_BASE_URL: shop.service.url })).code).to.equal(75)
    const { code, error } = await runRelay('x', [address()], { ...settings, BILLING_RELAY_SECRET: 'x'.repeat(20) })
    expect(code).to.equal(75)
    expect(error).to.contain('is BILLING_RELAY_SECRET the same there')
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

  it('never shows the secret', async () => {
    const { error, output } = await runRelay('x', [address()], {
      ...settings,
      BILLING_BASE_URL: await answering(500, RELAY_SECRET),
    })
    expect(error + output).not.to.contain(RELAY_SECRET)
  })
})
