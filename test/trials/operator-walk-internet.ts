import { createHmac, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { LookupFunction } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { chromium } from 'playwright-core'
import { SMTPServer } from 'smtp-server'
import { Agent, request } from 'undici'
import { signRequest } from '#apps/call-signature.ts'
import { systemClock, unixSeconds } from '#shared/time.ts'
import type { Called, Envelope, Relayed } from '../support/answers.ts'
import type { Answer, Response, SellerKeys } from '../support/api.ts'
import { anAuthority, type Authority } from '../support/certificates.ts'
import { parsed } from '../support/parsed.ts'
import { Receiver } from '../support/receiver.ts'

/** Public addresses, since webhooks are sent to no others; they exist only inside the trial's network. */
export const INTERNET = '5.0.0.1'
export const PAY = 'pay.example.com'
export const SHOP = 'shop.example.com'
export const SMTP = 'smtp.example.com'
/** As in docs/operating.md. */
const SMTP_USER = { username: 'user', password: 'password' }
const THANKS_PORT = 8443

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | string
}

/** The rest of the internet: payers with browsers, the seller's shop, the mail server, and a certificate authority that all of them trust. */
export class Internet {
  readonly authority: Authority
  readonly receiver: Receiver
  readonly thanksUrl = `https://${SHOP}:${THANKS_PORT}/thanks`
  readonly #thanks: Server
  readonly #smtp: SMTPServer
  #agent: Agent
  #payAddress = ''

  private constructor(authority: Authority, receiver: Receiver, thanks: Server, smtp: SMTPServer) {
    this.authority = authority
    this.receiver = receiver
    this.#thanks = thanks
    this.#smtp = smtp
    this.#agent = this.#openAgent()
  }

  static async open(): Promise<Internet> {
    const authority = anAuthority()
    const tls = authority.issue(SHOP)
    const receiver = await Receiver.start({ host: INTERNET, port: 443, tls })
    const thanks = createServer(tls, (_request, response) => {
      response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>Thanks</title>')
    })
    await new Promise<void>((resolve) => thanks.listen(THANKS_PORT, INTERNET, resolve))
    const smtp = new SMTPServer({
      secure: true,
      ...authority.issue(SMTP),
      logger: false,
      disableReverseLookup: true,
      onAuth({ username, password }, _session, done) {
        if (username === SMTP_USER.username && password === SMTP_USER.password) done(null, { user: username })
        else done(new Error('unknown host'))
      },
    })
    await new Promise<void>((resolve) => smtp.listen(465, INTERNET, resolve))
    return new Internet(authority, receiver, thanks, smtp)
  }

  /** Points the service's name to this address. */
  pointTo(address: string): void {
    this.#payAddress = address
    void this.#agent.destroy()
    this.#agent = this.#openAgent()
  }

  /** An https request to the service; checks its certificate. */
  async call<Body = Envelope<unknown>>(
    method: string,
    path: string,
    { headers = {}, body }: CallOptions = {},
  ): Promise<Response<Body>> {
    const answer = await request(`https://${PAY}${path}`, {
      method: method as 'GET',
      headers,
      dispatcher: this.#agent,
      ...(body === undefined ? {} : { body }),
    })
    const text = await answer.body.text()
    return { status: answer.statusCode, headers: answer.headers, text, body: parsed(text) as Body }
  }

  /** A call signed by a seller's server. */
  signed<Method extends string, Path extends string>(
    { apiKey, secret }: SellerKeys,
    method: Method,
    path: Path,
    value?: object,
  ): Promise<Answer<Called<Method, Path>>> {
    const body = Buffer.from(value === undefined ? '' : JSON.stringify(value))
    const timestamp = String(unixSeconds(systemClock.now()))
    const headers = {
      'X-App-Key': apiKey,
      'X-Timestamp': timestamp,
      'X-Signature': signRequest(secret, timestamp, { method, target: path, body }),
    }
    if (value === undefined) return this.call(method, path, { headers })
    const keyed = { ...headers, 'Content-Type': 'application/json', 'Idempotency-Key': randomUUID() }
    return this.call(method, path, { headers: keyed, body })
  }

  /** A post of the bank-mail relay of about this size. */
  relayed(secret: string, bytes: number): Promise<Response<Relayed>> {
    const raw = Buffer.from(`Subject: x\r\n\r\n${'x'.repeat(Math.floor(bytes * 0.75))}`).toString('base64')
    const body = JSON.stringify({ envelope_to: `bank+0000000000@${PAY}`, raw })
    const timestamp = String(unixSeconds(systemClock.now()))
    const signature = createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')
    const headers = { 'Content-Type': 'application/json', 'X-Timestamp': timestamp, 'X-Signature': signature }
    return this.call<Relayed>('POST', '/api/v1/webhooks/bank-transfer', { headers, body })
  }

  /** Pays on the hosted page in a browser; returns the title of the last page. */
  async payInBrowser(checkoutUrl: string): Promise<string> {
    const names = `MAP ${PAY} ${this.#payAddress},MAP ${SHOP} ${INTERNET}`
    const browser = await chromium.launch({
      executablePath: '/usr/bin/chromium-headless-shell',
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', `--host-resolver-rules=${names}`],
    })
    try {
      // The browser does not know the authority; every other client here checks the certificate.
      const page = await (await browser.newContext({ ignoreHTTPSErrors: true, locale: 'en' })).newPage()
      await page.goto(checkoutUrl)
      await page.locator('button[name=payment_method][value=test]').click()
      await page.waitForURL(`${this.thanksUrl}**`)
      return await page.title()
    } finally {
      await browser.close()
    }
  }

  async stop(): Promise<void> {
    await this.#agent.destroy()
    await this.receiver.stop()
    this.#thanks.close()
    this.#thanks.closeAllConnections()
    await new Promise<void>((resolve) => this.#smtp.close(() => resolve()))
  }

  #openAgent(): Agent {
    const address = this.#payAddress
    // Later, as a real one answers: a socket that fails at once would have nobody who hears of it.
    const lookup: LookupFunction = (_host, options, done) =>
      process.nextTick(() => {
        if (options.all) done(null, [{ address, family: 4 }])
        else done(null, address, 4)
      })
    return new Agent({ connect: { ca: readFileSync(this.authority.caPath, 'utf8'), lookup }, allowH2: false })
  }
}

/** Where payers and their seller call. */
export type Till = Pick<Internet, 'call' | 'signed'> & { readonly thanksUrl: string }

export interface Payment {
  readonly externalRef: string
  /** When the payer got the confirmation. */
  readonly answeredMs: number
}

/** Between the payments of a payer: without it a few payers reach the limit of an app, 100 calls a second. */
const PAUSE_MS = 100

/** End users who pay one after another, each repeating until it is done. */
export class Payers {
  readonly done: Payment[] = []
  /** Failed attempts of payers, answered or not. */
  readonly refusals: string[] = []
  /** The longest time without a completed payment. */
  longestGapMs = 0
  readonly #till: Till
  readonly #keys: SellerKeys
  #isStopping = false
  #count = 0
  readonly #running: Promise<unknown>

  constructor(till: Till, keys: SellerKeys, name: string, payers: number) {
    this.#till = till
    this.#keys = keys
    this.#running = Promise.all(Array.from({ length: payers }, () => this.#pay(name)))
    this.#running.catch(() => undefined)
  }

  /** Waits for that many more payments. */
  async waitFor(more: number): Promise<void> {
    const target = this.done.length + more
    while (this.done.length < target) {
      await Promise.race([this.#running, new Promise((resolve) => setTimeout(resolve, 20))])
    }
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#running
  }

  async #pay(name: string): Promise<void> {
    while (!this.#isStopping) {
      this.#count += 1
      const externalRef = `${name}-${this.#count}`
      while (!(await this.#payOnce(externalRef))) await delay(PAUSE_MS)
      const answeredMs = performance.now()
      const last = this.done.at(-1)
      if (last) this.longestGapMs = Math.max(this.longestGapMs, answeredMs - last.answeredMs)
      this.done.push({ externalRef, answeredMs })
      await delay(PAUSE_MS)
    }
  }

  async #payOnce(externalRef: string): Promise<boolean> {
    try {
      const checkout = await openCheckout(this.#till, this.#keys, externalRef)
      const body = JSON.stringify({ payment_method: 'test' })
      const headers = { 'Content-Type': 'application/json' }
      const answer = await this.#till.call('POST', `${new URL(checkout).pathname}/resolve`, { headers, body })
      if (answer.status === 200) return true
      this.refusals.push(`${answer.status} ${answer.text.slice(0, 200)}`)
    } catch (error) {
      this.refusals.push(String(error))
    }
    return false
  }
}

/** Opens a checkout of the first price; returns its link. */
export async function openCheckout(till: Till, keys: SellerKeys, externalRef: string): Promise<string> {
  const answer = await till.signed(keys, 'POST', '/api/v1/checkout-sessions', {
    ...{ external_ref: externalRef, mode: 'subscription', price_id: 'price_1' },
    ...{ success_url: till.thanksUrl, cancel_url: `https://${SHOP}/plans` },
  })
  if (answer.status !== 201 && answer.status !== 200) throw new Error(`${answer.status} ${answer.text.slice(0, 200)}`)
  return answer.body.data.checkout_url
}
