import { stub, useFakeTimers } from 'sinon'
import { createProgram, leadingWord } from '#cli/program.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { hmacHex } from '#shared/crypto.ts'
import { addMs, formatTimestamp, HOUR_MS, unixSeconds } from '#shared/time.ts'
import { startService, type CallOptions, type Response, type SellerKeys, type TestService } from '../support/api.ts'
import {
  BANK_MAILS,
  bankMail,
  OUR_MX,
  receivedBy,
  signed,
  type MailBank,
  type Transfer,
} from '../support/bank-mails.ts'
import { TestClock, testEnvironment } from '../support/context.ts'
import type { TestDb } from '../support/database.ts'
import {
  payosNotification,
  startPayosPeer,
  type PayosPeer,
  type PeerLink,
  type PeerTransfer,
} from '../support/payos-peer.ts'
import {
  sessionFacts,
  signedEvent,
  startStripePeer,
  type PeerSession,
  type StripePeer,
} from '../support/stripe-peer.ts'
import type { Shown } from '../cli/shown.ts'
import type { Called, Envelope, Redirect, Relayed } from '../support/answers.ts'
import { deliverDue } from '../support/deliver-due.ts'

/** The credentials of the dump's sellers at their providers. All of them are invented. */
export const STRIPE = { secretKey: 'sk_test_news', webhookSecret: 'whsec_news' } as const
export const PAYOS = { clientId: 'client-news', apiKey: 'api-news', checksumKey: 'checksum-news' } as const
const RELAY_SECRET = 'relay-secret-of-the-dump'

export type Method = 'card' | 'payos' | 'bank_transfer' | 'test'

/** A seller's app: `id` as the command line takes it. */
export interface SellerApp extends SellerKeys {
  readonly id: string
}

export interface Checkout {
  readonly token: string
  readonly transactionId: number | null
}

/** A running service with its providers. Everything goes through public interfaces: HTTP, the command line, mails and notifications. */
export interface World {
  readonly service: TestService
  readonly stripe: StripePeer
  readonly payos: PayosPeer
  /** `billing-cli … --json` in this process, on this world's clock. Throws if the command fails. */
  readonly cli: <First extends string, Second extends string = ''>(
    ...words: readonly [First, Second?, ...string[]]
  ) => Promise<Shown<First, Second>>
  /** A call of the API that must succeed; returns its `data`. */
  readonly api: <Method extends 'get' | 'post' | 'put' | 'patch', Path extends string>(
    app: SellerApp,
    method: Method,
    path: Path,
    body?: object,
  ) => Promise<Called<Uppercase<Method>, Path>>
  readonly checkout: (app: SellerApp, externalRef: string, body: object) => Promise<Checkout>
  /** The payer chooses the method on `path` (`/checkout/…`, `/renew/…`); returns the address of the redirect. */
  readonly choose: (path: string, method: Method) => Promise<string>
  /** Pays at the address that `choose` returned, optionally another amount. */
  readonly settle: (address: string, method: Method, amount?: number) => Promise<void>
  /** Chooses and pays. */
  readonly pay: (path: string, method: Method, amount?: number) => Promise<void>
  /** Reports a transfer with this text to the bank account; returns the answer to its mail. */
  readonly transfer: (content: string, amount: number, changes?: TransferOptions) => Promise<Relayed>
  /** The code on the bank page at the address. */
  readonly transferCode: (address: string) => Promise<string>
  readonly renewPath: (app: SellerApp, externalRef: string) => Promise<string>
  /** Moves the clock of the service and of the command line. */
  readonly at: (timestamp: string) => void
  /** The daemon's jobs: expiry, reminders, polling of providers, webhooks. */
  readonly sweep: () => Promise<void>
  readonly stop: () => Promise<void>
}

export interface TransferOptions {
  readonly bank?: MailBank
  readonly account?: string
  /** The address that the mail is forwarded to. */
  readonly to?: string
  /** The number of the movement, to report one again. */
  readonly movement?: number
  /** Replaces the bank's usual mail. */
  readonly mail?: string
}

export interface WorldOptions {
  readonly now: string
  /** Another database than the test's own. */
  readonly database?: { readonly url: string; readonly db: TestDb }
  readonly settings?: Readonly<Record<string, string>>
  /** The default address of bank mails, and the account that they credit. */
  readonly bank: () => { readonly to: string; readonly account: string }
}

export async function openWorld({ now, database, settings = {}, bank: receiving }: WorldOptions): Promise<World> {
  const clock = new TestClock(now)
  // The command line uses the machine's clock.
  const date = useFakeTimers({ now: clock.now(), toFake: ['Date'] })
  const stripe = await startStripePeer(clock, [STRIPE.secretKey])
  const payos = await startPayosPeer(clock, PAYOS)
  const environment = {
    BILLING_STRIPE_API_BASE: stripe.base,
    BILLING_PAYOS_API_BASE: payos.base,
    BILLING_RELAY_SECRET: RELAY_SECRET,
    BILLING_RELAY_AUTHSERV_IDS: OUR_MX,
    BILLING_RELAY_ADDRESS: 'bank+{code}@pay.example',
    ...(database ? { BILLING_DATABASE_URL: database.url } : {}),
    ...settings,
  }
  const service = await startService(environment, clock, database?.db)
  const { ctx } = service
  // Nine digits that a world of another time does not use.
  let movements = Math.floor(unixSeconds(clock.now()) / 10)
  const post = <Body>(path: string, raw: string | Buffer, headers: CallOptions['headers'] = {}) =>
    service.call<Body>('POST', path, { raw, headers: { 'Content-Type': 'application/json', ...headers } })

  const world: World = {
    service,
    stripe,
    payos,
    cli: (...words) =>
      runInProcess(words as readonly string[], { ...testEnvironment(environment), BILLING_BASE_URL: service.url }),
    async api(app, method: 'get' | 'post' | 'put' | 'patch', path: string, body?: object) {
      const seller = service.seller(app)
      const answer = method === 'get' ? await seller.get(path) : await seller[method](path, body)
      return expectSuccess(answer, `${method} ${path}`).body.data as never
    },
    async checkout(app, externalRef, body) {
      const urls = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
      const input = { external_ref: externalRef, mode: 'subscription', ...urls, ...body }
      const made = await world.api(app, 'post', '/api/v1/checkout-sessions', input)
      return { token: made.checkout_url.slice(-64), transactionId: made.transaction_id }
    },
    async choose(path, method) {
      const target = path.startsWith('/checkout/') ? `${path}/resolve` : path
      const answer = await post<Envelope<Redirect>>(target, JSON.stringify({ payment_method: method }))
      return expectSuccess(answer, `${method} of ${path}`).body.data.redirect_url
    },
    async settle(address, method, amount) {
      if (method === 'card') await payByCard(sessionAt(stripe, address))
      if (method === 'payos') await payByPayos(linkAt(payos, address), amount)
      if (method === 'bank_transfer') {
        const code = await world.transferCode(address)
        await world.transfer(code, amount ?? (await paymentAt(address)).due)
      }
    },
    async pay(path, method, amount) {
      await world.settle(await world.choose(path, method), method, amount)
    },
    async transfer(content, amount, changes = {}) {
      const { bank = 'ACB', to, account, movement = (movements += 1), mail } = { ...receiving(), ...changes }
      const raw = mail ?? (await mailOfNow(clock, bank, { amount, content, account, movement }))
      const body = JSON.stringify({ envelope_to: to, raw: Buffer.from(raw).toString('base64') })
      const timestamp = String(unixSeconds(clock.now()))
      const signature = hmacHex(RELAY_SECRET, `${timestamp}.${body}`)
      const headers = { 'X-Timestamp': timestamp, 'X-Signature': signature }
      return expectSuccess(await post<Relayed>('/api/v1/webhooks/bank-transfer', body, headers), 'bank mail').body
    },
    async transferCode(address) {
      expectSuccess(await service.call('GET', new URL(address, service.url).pathname), 'bank page')
      return (await paymentAt(address)).code
    },
    async renewPath(app, externalRef) {
      const rows: { token: string }[] = await ctx.db.query(
        'SELECT renewal_token AS token FROM subscriptions WHERE app_id = ? AND external_ref = ?',
        [app.id, externalRef],
      )
      return `/renew/${rows[0]!.token}`
    },
    at(timestamp) {
      if (timestamp < formatTimestamp(clock.now())) throw new Error(`${timestamp} is past`)
      clock.set(timestamp)
      date.setSystemTime(clock.now())
    },
    async sweep() {
      await expireDue(ctx)
      await sendDueReminders(ctx)
      await world.cli('reconcile')
      await deliverDue(ctx)
    },
    async stop() {
      date.restore()
      await service.stop()
      await stripe.stop()
      await payos.stop()
    },
  }
  return world

  async function payByCard(session: PeerSession): Promise<void> {
    stripe.pay(session)
    const at = unixSeconds(clock.now())
    const event = signedEvent(STRIPE.webhookSecret, at, 'checkout.session.completed', sessionFacts(session))
    expectSuccess(await post('/api/v1/webhooks/card-provider', event.body, event.headers), 'card event')
  }

  async function payByPayos(link: PeerLink, amount = link.amount): Promise<void> {
    const transfer: PeerTransfer = payos.transfer(link, amount)
    const body = JSON.stringify(payosNotification(PAYOS.checksumKey, link, transfer))
    expectSuccess(await post('/api/v1/webhooks/bank-transfer-provider', body), 'PayOS notification')
  }

  async function paymentAt(address: string): Promise<{ code: string; due: number }> {
    const rows: { code: string; due: string }[] = await ctx.db.query(
      `SELECT t.transfer_code AS code, t.amount - t.amount_received AS due FROM transactions t
       JOIN checkout_sessions c ON c.transaction_id = t.id WHERE c.token = ?`,
      [/[0-9a-f]{64}/.exec(address)?.[0]],
    )
    return { code: rows[0]!.code, due: Number(rows[0]!.due) }
  }
}

/** The bank's mail about a transfer of this minute. */
function mailOfNow(clock: TestClock, bank: MailBank, transfer: Transfer): Promise<string> {
  const [day, time] = formatTimestamp(addMs(clock.now(), 7 * HOUR_MS)).split(' ') as [string, string]
  const [year, month, date] = day.split('-') as [string, string, string]
  const body = BANK_MAILS[bank]
    .body(transfer)
    .replaceAll('130926-13:37:09', `${date}${month}${year.slice(2)}-${time}`)
    .replaceAll('13/09/2026', `${date}/${month}/${year}`)
    .replaceAll('16/09/2026 09:49', `${date}/${month}/${year} ${time.slice(0, 5)}`)
  return genuineMailOf(bank, bankMail(bank, transfer, {}, body))
}

/** A mail of the bank, as our mail server forwards it. */
export async function genuineMailOf(bank: MailBank, mail: string): Promise<string> {
  return receivedBy(OUR_MX, await signed(mail, BANK_MAILS[bank].domain))
}

export function sessionAt({ sessions }: StripePeer, address: string): PeerSession {
  const session = sessions.find(({ url }) => url === address)
  if (!session) throw new Error(`no card session at ${address}`)
  return session
}

export function linkAt({ links }: PayosPeer, address: string): PeerLink {
  const link = links.find(({ id }) => address.endsWith(`/${id}`))
  if (!link) throw new Error(`no PayOS link at ${address}`)
  return link
}

function expectSuccess<Body>(answer: Response<Body>, what: string): Response<Body> {
  if (answer.status >= 300) throw new Error(`${what} answered ${answer.status}: ${answer.text}`)
  return answer
}

/** Runs the command tree in this process and captures its output, which saves a process per command. */
async function runInProcess(words: readonly string[], env: Readonly<Record<string, string>>): Promise<never> {
  Object.assign(process.env, env)
  const print = stub(console, 'log')
  try {
    const program = await createProgram(leadingWord(words))
    await program.parseAsync([...words, '--json'], { from: 'user' })
    return JSON.parse(print.args.flat().join('\n')) as never
  } finally {
    print.restore()
  }
}
