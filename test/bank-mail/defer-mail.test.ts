import { createServer } from 'node:http'
import { expect } from 'chai'
import Koa from 'koa'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { errorEnvelope, requestIds, type RequestState } from '#http/errors.ts'
import { routerRoutes } from '#http/router.ts'
import { closeBankMail } from '#bank-mail/close-bank-mail.ts'
import { deferMail } from '#bank-mail/defer-mail.ts'
import { listBankMails } from '#bank-mail/list-bank-mails.ts'
import { MailNotRead, MailReader } from '#bank-mail/mail-reader.ts'
import { matchBankMail, previewMatch } from '#bank-mail/match-bank-mail.ts'
import { bankMailRoutes } from '#bank-mail/routes.ts'
import { examine } from '#doctor/doctor.ts'
import type { CallOptions, Response } from '../support/api.ts'
import { listen, stopServer } from '../support/http-server.ts'
import { genuineMail, TRANSFER, TRUST } from '../support/bank-mails.ts'
import { aBankShop, relayMail, RELAY_SECRET, type BankShop } from './bank-shop.ts'
import { runRelay } from './run-relay.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'

const STUBBORN = new URL('./stubborn-worker.ts', import.meta.url)
const DEFERRED = 503
const UNTRUSTED = { status: 'rejected', reason: 'untrusted_sender' }

/** A daemon whose worker does what the last line of a mail says. */
interface Daemon {
  readonly url: string
  relay(mail: string, envelopeTo?: string): Promise<Response>
}

describe('a mail that was not read', () => {
  let shop: BankShop
  const stops: (() => Promise<unknown>)[] = []
  const address = () => `bank+${shop.account.forwardCode}@pay.example`
  const unmatched = async () => (await listBankMails(shop.service.ctx, { unmatched: true })).rows

  beforeEach(async () => {
    shop = await aBankShop('ACB', { BILLING_ENV: 'production' })
  })
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop()
    await shop.service.stop()
  })

  async function aDaemon(): Promise<Daemon> {
    const { ctx } = shop.service
    const reader = new MailReader(TRUST, { cpuLimitMs: 200, workerFile: STUBBORN })
    const app = new Koa<RequestState>()
    app
      .use(requestIds)
      .use(errorEnvelope(ctx))
      .use(routerRoutes(bankMailRoutes(ctx, reader)))
    const handle = app.callback()
    const server = createServer((incoming, outgoing) => void handle(incoming, outgoing))
    stops.push(
      () => reader.close(),
      () => stopServer(server),
    )
    const url = `http://127.0.0.1:${await listen(server)}`
    const service = { ...shop.service, call: reach(url) }
    return { url, relay: (mail, envelopeTo = address()) => relayMail(service, mail, envelopeTo) }
  }

  /** Calls of the shop's service, made of another server. */
  const reach =
    (url: string): BankShop['service']['call'] =>
    (method: string, path: string, options?: CallOptions) =>
      shop.service.call<never>(method, new URL(path, url).href, options)

  for (const [what, last] of Object.entries({ 'took too long': 'loop', 'killed its worker': 'throw' })) {
    it(`because it ${what} is answered 503 service_unavailable, so that it comes again, and is read then`, async () => {
      const payment = await shop.pay()
      const mail = `${await genuineMail('ACB', { ...TRANSFER, content: payment.transferCode! })}\r\n\r\n${last}`
      const busy = await aDaemon()
      const answer = await busy.relay(mail)
      expect(answer.status).to.equal(DEFERRED)
      expect(answer.headers['retry-after']).to.equal('60')
      expect(answer.body.error).to.include({ code: 'service_unavailable' })
      expect(await unmatched()).to.deep.equal([])
      const [row] = (await listBankMails(shop.service.ctx)).rows
      expect(row).to.include({ status: 'deferred', reason: 'unreadable', bank: null })
      expect((await shop.relay(mail)).status, 'by a daemon that reads it').to.equal(200)
    })
  }

  it('is rejected, untrusted_sender, the third time for the same content, counted by all daemons together, and waits as unreadable', async () => {
    const daemons = [await aDaemon(), await aDaemon(), await aDaemon()]
    const mail = (received: string) => `Received: ${received}\r\nSubject: x\r\n\r\nthrow`
    expect((await daemons[0]!.relay(mail('a'))).status).to.equal(DEFERRED)
    expect((await daemons[0]!.relay('Subject: x\r\n\r\nanother body\r\n\r\nthrow')).status).to.equal(DEFERRED)
    expect((await daemons[1]!.relay(mail('b'))).status).to.equal(DEFERRED)
    const third = await daemons[2]!.relay(mail('c'))
    expect([third.status, third.body]).to.deep.equal([200, UNTRUSTED])
    const [waiting, ...others] = await unmatched()
    expect(others).to.deep.equal([])
    expect(waiting).to.deep.include({ ...UNTRUSTED, review: 'unreadable', bank: null, amount: null, suggestions: [] })
    const mails = (await examine(shop.service.ctx)).find(({ check }) => check === 'mails')
    expect(mails?.detail).to.include('1 unreadable')
  })

  it('waits for nobody if it came to no address of ours', async () => {
    const daemon = await aDaemon()
    for (const status of [DEFERRED, DEFERRED, 200])
      expect((await daemon.relay('throw', 'bank+0000000000@pay.example')).status).to.equal(status)
    expect(await unmatched()).to.deep.equal([])
  })

  it('can be booked by an operator who knows the amount, or closed', async () => {
    const { ctx } = shop.service
    const payment = await shop.pay()
    const daemon = await aDaemon()
    for (const body of ['\r\n\r\none\r\nthrow', '\r\n\r\ntwo\r\nthrow'])
      for (const status of [DEFERRED, DEFERRED, 200]) expect((await daemon.relay(body)).status).to.equal(status)
    const [second, first] = await unmatched()
    const target = { id: first!.id, transactionId: payment.id, amount: payment.amount }
    const { effects } = await previewMatch(ctx, operator('linh'), target)
    expect(effects[0]).to.include('may be from anybody')
    expect(await matchBankMail(ctx, operator('linh'), { ...target, note: 'on the statement' })).to.include({
      status: 'processed',
    })
    await perform(ctx, operator('linh'), closeBankMail, { id: second!.id, note: 'rubbish' }, null)
    expect(await unmatched()).to.deep.equal([])
  })

  it('is deferred without counting, any number of times, if the service stops', async () => {
    const { ctx } = shop.service
    const mail = { envelopeTo: address(), raw: Buffer.from('Subject: x\r\n\r\nx') }
    const stopped = new MailNotRead('the service stops', { mayBeCausedByMail: false })
    for (let time = 0; time < 3; time += 1)
      expect(await deferMail(ctx, mail, stopped)).to.deep.equal({ status: 'deferred' })
    expect((await listBankMails(ctx)).rows).to.deep.equal([])
  })

  it('is kept by the relay, which exits 75, and gone once it is decided', async () => {
    // The program signs with the real time.
    shop.service.ctx.clock.setToPresent()
    const { url } = await aDaemon()
    const settings = { BILLING_BASE_URL: url, BILLING_RELAY_SECRET: RELAY_SECRET }
    const codes: (number | null)[] = []
    for (let time = 0; time < 3; time += 1) codes.push((await runRelay('x\n\nthrow', [address()], settings)).code)
    expect(codes).to.deep.equal([75, 75, 0])
  })
})
