import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Stripe } from 'stripe'
import { sha256Hex } from '#shared/crypto.ts'
import { unixSeconds, type Clock } from '#shared/time.ts'
import { parseForm, type FormFields } from './form.ts'
import { listen, stopServer } from './http-server.ts'
import { readForm, type ReadForm, type SessionForm } from './stripe-schema.ts'

/** A request that the peer received. */
export interface StripeCall {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly form: FormFields
  /** 0 if no answer was given. */
  status: number
}

/** A Checkout Session as the peer keeps it: what was asked for, and Stripe's own fields. */
export interface PeerSession {
  readonly id: string
  readonly account: string
  readonly params: SessionForm
  object: 'checkout.session'
  status: 'open' | 'complete' | 'expired'
  payment_status: 'unpaid' | 'paid'
  amount_total: number
  currency: string
  mode: 'payment'
  client_reference_id: string | null
  metadata: Record<string, string>
  payment_intent: string | null
  url: string | null
  created: number
  expires_at: number
}

interface PeerCharge {
  readonly id: string
  readonly intent: string
  readonly account: string
  readonly amount: number
  readonly currency: string
  readonly metadata: Record<string, string>
  readonly created: number
  refunded: number
}

/** `pending`: Stripe has taken it, and the bank has not; `failed`: the bank gave it back, to the seller's balance. */
export type PeerRefundStatus = 'pending' | 'succeeded' | 'failed' | 'canceled'

export interface PeerRefund {
  readonly id: string
  readonly charge: string
  readonly intent: string
  readonly amount: number
  readonly currency: string
  readonly created: number
  readonly account: string
  readonly metadata: Record<string, string>
  status: PeerRefundStatus
  failure_reason: string | null
}

/**
 * What Stripe does next: `down` cuts each connection, `deaf` does what is asked and cuts the connection before it answers, `error`
 * answers 500 to whatever changes something and remembers that under the idempotency key, `busy` 429, `blind` answers 403 to whatever
 * reads, `silent` never answers.
 */
export type StripeMode = 'up' | 'down' | 'deaf' | 'error' | 'busy' | 'blind' | 'silent'

/** A local Stripe that checks what it is sent as strictly as Stripe does, and more. */
export interface StripePeer {
  readonly base: string
  readonly calls: StripeCall[]
  /** Every session, oldest first. */
  readonly sessions: PeerSession[]
  mode: StripeMode
  /** The ids of sessions about which it answers 500. */
  readonly brokenSessions: Set<string>
  /** Refuses customer_email, as Stripe does for addresses it finds wrong. */
  refusesEmail: boolean
  /** The payer pays on Stripe's page; `delayed`: by a method that confirms later. */
  pay(session: PeerSession, how?: 'at once' | 'delayed'): void
  /** A delayed payment arrives. */
  settle(session: PeerSession): void
  /** A delayed payment fails: its intent waits for another payment method. */
  fail(session: PeerSession): void
  /** The seller refunds in the dashboard. Returns the charge, as `charge.refunded` carries it. */
  refund(session: PeerSession, amount?: number): object
  /** Every refund, newest first. */
  readonly refunds: PeerRefund[]
  /** The status of the refunds that are requested from now on. */
  refundStatus: PeerRefundStatus
  /** Ends a refund. Returns it as `refund.updated` and `refund.failed` carry it. */
  endRefund(refund: PeerRefund, status: PeerRefundStatus, reason?: string): object
  stop(): Promise<void>
}

interface Reply {
  readonly status: number
  readonly body: object
}

const API_VERSION = Stripe.API_VERSION
const MIN_SECONDS = 30 * 60
const MAX_SECONDS = 24 * 60 * 60

/** Starts it; each of the secret keys `keys` is an account of its own. Stop it in `afterEach`. */
export async function startStripePeer(clock: Clock, keys: readonly string[]): Promise<StripePeer> {
  const sessions: PeerSession[] = []
  const charges: PeerCharge[] = []
  const refunds: PeerRefund[] = []
  const failed = new Set<string>()
  /** When debits began: their charges have this time, not that of their success. */
  const debits = new Map<string, number>()
  const kept = new Map<string, { fingerprint: string; reply: Reply }>()
  const calls: StripeCall[] = []
  let count = 0
  const newId = (prefix: string): string => `${prefix}_${(count += 1)}${randomBytes(8).toString('hex')}`
  const now = (): number => unixSeconds(clock.now())

  const server = createServer((request, response) => void take(request, response))
  const base = `http://127.0.0.1:${await listen(server)}`

  const peer: StripePeer = {
    base,
    calls,
    sessions,
    mode: 'up',
    brokenSessions: new Set(),
    refusesEmail: false,
    refunds,
    refundStatus: 'succeeded',
    pay(session, how = 'at once') {
      session.status = 'complete'
      session.url = null
      session.payment_intent = newId('pi')
      if (how === 'at once') peer.settle(session)
      else debits.set(session.id, now())
    },
    settle(session) {
      session.payment_status = 'paid'
      charges.push({
        id: newId('ch'),
        intent: session.payment_intent!,
        account: session.account,
        amount: session.amount_total,
        currency: session.currency,
        metadata: session.params.payment_intent_data?.metadata ?? {},
        created: debits.get(session.id) ?? now(),
        refunded: 0,
      })
    },
    fail: (session) => void failed.add(session.id),
    refund(session, amount) {
      const charge = charges.find(({ intent }) => intent === session.payment_intent)!
      addRefund(charge, amount ?? charge.amount - charge.refunded, {}, 'succeeded')
      return chargeObject(charge)
    },
    endRefund(refund, status, reason) {
      const charge = charges.find(({ id }) => id === refund.charge)!
      if (refund.status !== 'failed' && refund.status !== 'canceled' && (status === 'failed' || status === 'canceled'))
        charge.refunded -= refund.amount
      refund.status = status
      refund.failure_reason = reason ?? null
      return refundObject(refund, [])
    },
    stop: () => stopServer(server),
  }
  return peer

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request)
    const url = new URL(request.url ?? '/', base)
    const isPost = request.method === 'POST'
    const form = parseForm(isPost ? body : url.search.slice(1))
    const call = { method: request.method!, path: url.pathname, headers: request.headers, form, status: 0 }
    calls.push(call)
    if (peer.mode === 'silent') return
    if (peer.mode === 'down') return void request.socket.destroy()
    const reply = answerOnce(call, body)
    if (peer.mode === 'deaf') return void request.socket.destroy()
    call.status = reply.status
    response.writeHead(reply.status, { 'Content-Type': 'application/json', 'Request-Id': newId('req') })
    response.end(JSON.stringify(reply.body))
  }

  function answerOnce(call: StripeCall, body: string): Reply {
    const account = accountOf(call)
    if (account === null) return refusal(401, 'invalid_request_error', { message: 'Invalid API Key provided' })
    const protocolError = protocolErrorOf(call)
    if (protocolError) return refusal(400, 'invalid_request_error', { message: protocolError })
    if (peer.mode === 'busy') return refusal(429, 'invalid_request_error', { code: 'rate_limit' })
    if (peer.mode === 'blind' && call.method === 'GET')
      return refusal(403, 'invalid_request_error', { code: 'secret_key_required' })
    const key = call.headers['idempotency-key']
    if (call.method !== 'POST' || key === undefined) return answer(call, account)
    const fingerprint = sha256Hex(`${call.path}\n${body}`)
    const first = kept.get(`${account} ${String(key)}`)
    if (first) {
      if (first.fingerprint !== fingerprint) {
        return refusal(400, 'idempotency_error', { message: 'Keys for idempotent requests must keep their parameters' })
      }
      return first.reply
    }
    const reply = answer(call, account)
    // Stripe keeps the response of what it began to do, failures included, but not of what it refused before.
    if (reply.status < 400 || reply.status >= 500) kept.set(`${account} ${String(key)}`, { fingerprint, reply })
    return reply
  }

  function accountOf(call: StripeCall): string | null {
    const key = /^Bearer (.+)$/.exec(call.headers.authorization as string)?.[1]
    return key !== undefined && keys.includes(key) ? key : null
  }

  function protocolErrorOf(call: StripeCall): string | null {
    if (call.headers['stripe-version'] !== API_VERSION) return 'another API version'
    if (call.headers['x-stripe-client-telemetry'] !== undefined) return 'telemetry was sent'
    if (call.method === 'POST' && call.headers['content-type'] !== 'application/x-www-form-urlencoded') {
      return 'the content type is no form'
    }
    return null
  }

  function answer(call: StripeCall, account: string): Reply {
    if (peer.mode === 'error' && call.method === 'POST')
      return refusal(500, 'api_error', { message: 'An unknown error occurred' })
    const [, resource, id, action] =
      /^\/v1\/(checkout\/sessions|refunds)(?:\/([^/]+))?(?:\/(expire))?$/.exec(call.path) ?? []
    if (resource === 'checkout/sessions') {
      if (id === undefined) return call.method === 'POST' ? createSession(call.form, account) : list([])
      if (peer.brokenSessions.has(id)) return refusal(500, 'api_error', { message: 'An unknown error occurred' })
      const session = sessions.find((candidate) => candidate.id === id && candidate.account === account)
      if (!session) return refusal(404, 'invalid_request_error', { code: 'resource_missing', param: 'session' })
      return action === 'expire' ? expireSession(session) : { status: 200, body: sessionObject(session, call.form) }
    }
    if (resource === 'refunds') {
      if (id !== undefined) return retrieveRefund(id, call.form, account)
      return call.method === 'POST' ? createRefund(call.form, account) : listRefunds(call.form, account)
    }
    return refusal(404, 'invalid_request_error', { message: `Unrecognized request URL (${call.method}: ${call.path})` })
  }

  function createSession(fields: FormFields, account: string): Reply {
    const read = readForm('session', fields)
    if ('error' in read) return refusal(400, 'invalid_request_error', { ...read.error, code: 'parameter_unknown' })
    const { form } = read
    const item = form.line_items[0]
    const { currency, unit_amount: unitAmount } = item.price_data
    if (peer.refusesEmail && form.customer_email) {
      return refusal(400, 'invalid_request_error', { code: 'email_invalid', param: 'customer_email' })
    }
    const wrong = amountErrorOf(unitAmount, currency)
    if (wrong)
      return refusal(400, 'invalid_request_error', { code: wrong, param: 'line_items[0][price_data][unit_amount]' })
    const seconds = (form.expires_at ?? now() + MAX_SECONDS) - now()
    if (seconds < MIN_SECONDS || seconds > MAX_SECONDS) {
      return refusal(400, 'invalid_request_error', {
        param: 'expires_at',
        message: 'must be 30 minutes to 24 hours ahead',
      })
    }
    const id = newId('cs_test')
    const session: PeerSession = {
      id,
      account,
      params: form,
      object: 'checkout.session',
      status: 'open',
      payment_status: 'unpaid',
      amount_total: unitAmount * item.quantity,
      currency,
      mode: 'payment',
      client_reference_id: form.client_reference_id ?? null,
      metadata: form.metadata ?? {},
      payment_intent: null,
      url: `https://checkout.stripe.com/c/pay/${id}`,
      created: now(),
      expires_at: form.expires_at ?? now() + MAX_SECONDS,
    }
    sessions.push(session)
    return { status: 200, body: sessionObject(session, {}) }
  }

  function expireSession(session: PeerSession): Reply {
    expireInTime(session)
    if (session.status !== 'open') {
      return refusal(400, 'invalid_request_error', { message: `Only open sessions can be expired: ${session.status}` })
    }
    session.status = 'expired'
    session.url = null
    return { status: 200, body: sessionObject(session, {}) }
  }

  function sessionObject(session: PeerSession, query: ReadForm): object {
    expireInTime(session)
    const body = sessionFacts(session)
    const expand = query.expand ?? []
    if (!expand.includes('payment_intent.latest_charge') || session.payment_intent === null) return body
    const charge = charges.find(({ intent }) => intent === session.payment_intent)
    const intent = {
      id: session.payment_intent,
      object: 'payment_intent',
      latest_charge: charge ? chargeObject(charge) : null,
      status: charge ? 'succeeded' : unpaidStatusOf(session),
    }
    return { ...body, payment_intent: intent }
  }

  function unpaidStatusOf({ id }: PeerSession): string {
    return failed.has(id) ? 'requires_payment_method' : 'processing'
  }

  function expireInTime(session: PeerSession): void {
    if (session.status === 'open' && now() >= session.expires_at) session.status = 'expired'
  }

  function createRefund(fields: FormFields, account: string): Reply {
    const read = readForm('refund', fields)
    if ('error' in read) return refusal(400, 'invalid_request_error', { ...read.error, code: 'parameter_unknown' })
    const { form } = read
    const charge = charges.find(
      (candidate) => candidate.intent === form.payment_intent && candidate.account === account,
    )
    if (!charge) return refusal(404, 'invalid_request_error', { code: 'resource_missing', param: 'payment_intent' })
    const left = charge.amount - charge.refunded
    if (left === 0) return refusal(400, 'invalid_request_error', { code: 'charge_already_refunded' })
    const amount = form.amount ?? left
    // Stripe has no code for it: "Refund amount ($20.00) is greater than unrefunded amount on charge ($19.99)".
    if (amount > left) return refusal(400, 'invalid_request_error', { param: 'amount' })
    const refund = addRefund(charge, amount, form.metadata ?? {}, peer.refundStatus)
    return { status: 200, body: refundObject(refund, []) }
  }

  function addRefund(
    charge: PeerCharge,
    amount: number,
    metadata: Record<string, string>,
    status: PeerRefundStatus,
  ): PeerRefund {
    if (status === 'pending' || status === 'succeeded') charge.refunded += amount
    const { intent, currency, account } = charge
    const refund: PeerRefund = {
      id: newId('re'),
      charge: charge.id,
      intent,
      amount,
      currency,
      created: now(),
      account,
      metadata,
      status,
      failure_reason: status === 'failed' ? 'expired_or_canceled_card' : null,
    }
    refunds.unshift(refund)
    return refund
  }

  function retrieveRefund(id: string, query: ReadForm, account: string): Reply {
    const refund = refunds.find((candidate) => candidate.id === id && candidate.account === account)
    if (!refund) return refusal(404, 'invalid_request_error', { code: 'resource_missing', param: 'id' })
    return { status: 200, body: refundObject(refund, query.expand ?? []) }
  }

  function listRefunds(query: ReadForm, account: string): Reply {
    const found = refunds.filter(
      (refund) =>
        refund.account === account &&
        (query.payment_intent === undefined || refund.intent === query.payment_intent) &&
        (query.charge === undefined || refund.charge === query.charge) &&
        (query.created?.gte === undefined || refund.created >= Number(query.created.gte)),
    )
    const start = query.starting_after ? found.findIndex(({ id }) => id === query.starting_after) + 1 : 0
    const limit = Number(query.limit ?? 10)
    const page = found.slice(start, start + limit).map((refund) =>
      refundObject(
        refund,
        (query.expand ?? []).map((path) => path.replace(/^data\./, '')),
      ),
    )
    return list(page, found.length > start + limit)
  }

  function refundObject(refund: PeerRefund, expand: readonly string[]): object {
    const { id, amount, currency, created, intent, metadata, status, failure_reason } = refund
    const charge = charges.find((candidate) => candidate.id === refund.charge)!
    return {
      id,
      object: 'refund',
      amount,
      currency,
      created,
      metadata,
      payment_intent: intent,
      charge: expand.includes('charge') ? chargeObject(charge) : charge.id,
      status,
      ...(failure_reason === null ? {} : { failure_reason }),
    }
  }
}

function chargeObject(charge: PeerCharge): object {
  const { id, intent, amount, currency, created, metadata, refunded } = charge
  return {
    id,
    object: 'charge',
    payment_intent: intent,
    amount,
    amount_refunded: refunded,
    currency,
    created,
    metadata,
  }
}

function list(data: object[], hasMore = false): Reply {
  return { status: 200, body: { object: 'list', data, has_more: hasMore, url: '/v1/refunds' } }
}

function refusal(status: number, type: string, detail: object): Reply {
  return { status, body: { error: { type, message: 'refused', ...detail } } }
}

/** The error code of an amount that Stripe refuses; written from its page on currencies, independently of the code under test. */
function amountErrorOf(amount: number, currency: string): string | null {
  const least: Record<string, number> = {
    usd: 50,
    eur: 50,
    gbp: 30,
    jpy: 50,
    hkd: 400,
    mxn: 1000,
    huf: 17500,
    thb: 1000,
  }
  if (amount < (least[currency] ?? 1)) return 'amount_too_small'
  if (amount > (currency === 'idr' ? 999_999_999_999 : 99_999_999)) return 'amount_too_large'
  if (['bhd', 'jod', 'kwd', 'omr', 'tnd'].includes(currency) && amount % 10 !== 0) return 'parameter_invalid_integer'
  return ['isk', 'ugx'].includes(currency) && amount % 100 !== 0 ? 'parameter_invalid_integer' : null
}

/** A notification as Stripe sends it. */
export interface SignedEvent {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

/** A session as Stripe shows it: the `data.object` of its events. */
export function sessionFacts(session: PeerSession): Record<string, unknown> {
  const kept = Object.entries(session).filter(([name]) => name !== 'account' && name !== 'params')
  return Object.fromEntries(kept)
}

let eventNumber = 0

/** Signs an event with the SDK's own signer. `at` are Unix seconds of both event and signature. */
export function signedEvent(
  secret: string,
  at: number,
  type: string,
  object: object,
  id: string = `evt_test_${(eventNumber += 1)}${randomBytes(6).toString('hex')}`,
): SignedEvent {
  const event = { id, object: 'event', api_version: API_VERSION, created: at, type, livemode: false, data: { object } }
  const payload = JSON.stringify(event, null, 2)
  const header = Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: at })
  return {
    body: Buffer.from(payload),
    headers: { 'Content-Type': 'application/json; charset=utf-8', 'Stripe-Signature': header },
  }
}
