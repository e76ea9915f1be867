import { createHmac, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { unixSeconds, type Clock } from '#shared/time.ts'
import { listen, stopServer } from './http-server.ts'

/** The form of a new payment link. */
interface PayosLinkForm {
  readonly orderCode: number
  readonly amount: number
  readonly description: string
  readonly cancelUrl: string
  readonly returnUrl: string
  readonly expiredAt?: number
  readonly signature: string
}

/** A request that the peer received. */
export interface PayosCall {
  readonly method: string
  readonly path: string
  readonly body: PayosLinkForm | null
}

export interface PeerTransfer {
  readonly reference: string
  readonly amount: number
  readonly transactionDateTime: string
}

/** A payment link as the peer keeps it. */
export interface PeerLink {
  readonly id: string
  readonly orderCode: number
  readonly amount: number
  readonly description: string
  readonly expiredAt: number | null
  readonly createdAt: string
  readonly transfers: PeerTransfer[]
  status: 'PENDING' | 'PAID' | 'UNDERPAID' | 'CANCELLED' | 'EXPIRED'
  /** Its transfers are not listed yet; the sum counts them. */
  listsNothing?: boolean
}

/** The credentials of one merchant. */
export interface PayosKeys {
  readonly clientId: string
  readonly apiKey: string
  readonly checksumKey: string
}

/**
 * What PayOS does next: `down` cuts each connection, `deaf` does what is asked and cuts the connection before it answers, `error` answers
 * 500, `missigned` signs its answers wrongly, `silent` never answers.
 */
export type PayosMode = 'up' | 'down' | 'deaf' | 'error' | 'missigned' | 'silent'

/** A local PayOS that checks signatures, fields and order codes as PayOS does. */
export interface PayosPeer {
  readonly base: string
  readonly calls: PayosCall[]
  readonly links: PeerLink[]
  mode: PayosMode
  /** A bank transfer arrives for the link. */
  transfer(link: PeerLink, amount: number, reference?: string): PeerTransfer
  stop(): Promise<void>
}

interface Reply {
  readonly status: number
  readonly body: object
}

const CREATE_FIELDS = new Set([
  'orderCode',
  'amount',
  'description',
  'cancelUrl',
  'returnUrl',
  'expiredAt',
  'signature',
])

export async function startPayosPeer(clock: Clock, keys: PayosKeys): Promise<PayosPeer> {
  const links: PeerLink[] = []
  const calls: PayosCall[] = []
  const server = createServer((request, response) => void take(request, response))
  const port = await listen(server)

  const peer: PayosPeer = {
    base: `http://127.0.0.1:${port}`,
    calls,
    links,
    mode: 'up',
    transfer(link, amount, reference = `FT${randomBytes(5).toString('hex').toUpperCase()}`) {
      const transfer = { reference, amount, transactionDateTime: vietnamTime(clock.now()) }
      link.transfers.push(transfer)
      const paid = link.transfers.reduce((sum, one) => sum + one.amount, 0)
      link.status = paid >= link.amount ? 'PAID' : 'UNDERPAID'
      return transfer
    },
    stop: () => stopServer(server),
  }
  return peer

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await text(request)
    const body = sent === '' ? null : (JSON.parse(sent) as PayosLinkForm)
    calls.push({ method: request.method!, path: request.url!, body })
    if (peer.mode === 'silent') return
    if (peer.mode === 'down') return void request.socket.destroy()
    const reply = answer(request, body)
    if (peer.mode === 'deaf') return void request.socket.destroy()
    response.writeHead(reply.status, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify(reply.body))
  }

  function answer(request: IncomingMessage, body: PayosLinkForm | null): Reply {
    const { headers, method, url } = request
    if (headers['x-client-id'] !== keys.clientId || headers['x-api-key'] !== keys.apiKey) {
      return { status: 401, body: { code: '401', desc: 'Unauthorized' } }
    }
    if (headers['x-partner-code'] !== undefined) return refusal('20', 'no partner is known')
    if (peer.mode === 'error') return { status: 500, body: { code: '500', desc: 'boom' } }
    if (method === 'POST' && url === '/v2/payment-requests' && body) return create(body)
    const [, id, action] = /^\/v2\/payment-requests\/([^/]+)(\/cancel)?$/.exec(url!) ?? []
    const link = links.find((candidate) => candidate.id === id || String(candidate.orderCode) === id)
    if (!link) return refusal('101', 'Mã thanh toán không tồn tại')
    if (method === 'GET' && action === undefined) return signed(described(link))
    return method === 'POST' && action === '/cancel' ? cancel(link) : refusal('20', 'unknown call')
  }

  function create(body: PayosLinkForm): Reply {
    const { amount, cancelUrl, description, orderCode, returnUrl, signature, expiredAt } = body
    const data = `amount=${amount}&cancelUrl=${cancelUrl}&description=${description}&orderCode=${orderCode}&returnUrl=${returnUrl}`
    if (signature !== hmac(keys.checksumKey, data)) return refusal('201', 'Mã kiểm tra (signature) không hợp lệ')
    const unknown = Object.keys(body).find((field) => !CREATE_FIELDS.has(field))
    if (unknown !== undefined) return refusal('20', `unknown field ${unknown}`)
    if (!Number.isSafeInteger(orderCode) || orderCode <= 0) return refusal('20', 'orderCode')
    if (!Number.isSafeInteger(amount) || amount <= 0) return refusal('20', 'amount')
    if (description.length > 9) return refusal('20', 'Mô tả tối đa 9 kí tự')
    if (!/^https?:/.test(cancelUrl) || !/^https?:/.test(returnUrl)) return refusal('20', 'url')
    if (expiredAt !== undefined && !(expiredAt > unixSeconds(clock.now()))) return refusal('20', 'expiredAt')
    if (links.some((link) => link.orderCode === orderCode)) return refusal('231', 'Đơn thanh toán đã tồn tại')
    const link: PeerLink = {
      id: randomBytes(16).toString('hex'),
      orderCode,
      amount,
      description,
      expiredAt: expiredAt ?? null,
      createdAt: `${vietnamTime(clock.now()).replace(' ', 'T')}+07:00`,
      transfers: [],
      status: 'PENDING',
    }
    links.push(link)
    return signed({
      bin: '970422',
      accountNumber: 'V3CAS0001',
      accountName: 'CONG TY',
      amount,
      description,
      orderCode,
      currency: 'VND',
      paymentLinkId: link.id,
      status: link.status,
      expiredAt: link.expiredAt,
      checkoutUrl: `https://pay.payos.vn/web/${link.id}`,
      qrCode: '00020101021238',
    })
  }

  function described(link: PeerLink): object {
    const paid = link.transfers.reduce((sum, { amount }) => sum + amount, 0)
    const isOver = link.expiredAt !== null && unixSeconds(clock.now()) >= link.expiredAt
    if (link.status === 'PENDING' && isOver) link.status = 'EXPIRED'
    return {
      id: link.id,
      orderCode: link.orderCode,
      amount: link.amount,
      amountPaid: paid,
      amountRemaining: Math.max(0, link.amount - paid),
      status: link.status,
      createdAt: link.createdAt,
      transactions: (link.listsNothing === true ? [] : link.transfers).map((transfer) => ({
        ...transfer,
        accountNumber: 'V3CAS0001',
        description: link.description,
        virtualAccountName: null,
        virtualAccountNumber: 'V3CAS0001',
        counterAccountBankId: null,
        counterAccountBankName: null,
        counterAccountName: 'NGUYEN VAN PAYER',
        counterAccountNumber: '0123456789',
      })),
      cancellationReason: null,
      canceledAt: null,
    }
  }

  function cancel(link: PeerLink): Reply {
    if (link.status === 'PAID') return refusal('102', 'Đơn đã thanh toán')
    link.status = 'CANCELLED'
    return signed(described(link))
  }

  function signed(data: object): Reply {
    const signature = peer.mode === 'missigned' ? '00' : signOfData(keys.checksumKey, data)
    return { status: 200, body: { code: '00', desc: 'success', data, signature } }
  }

  function refusal(code: string, desc: string): Reply {
    return { status: 200, body: { code, desc } }
  }
}

/** PayOS's checksum over `data`, written from its documentation apart from the code under test. */
export function signOfData(checksumKey: string, data: object): string {
  const fields = (Object.entries(data) as [string, Field][]).filter(([, value]) => value !== undefined)
  const sorted = fields.sort(([a], [b]) => (a < b ? -1 : 1))
  const text = sorted.map(([key, value]) => `${key}=${flat(value)}`).join('&')
  return hmac(checksumKey, text)
}

type Field = string | number | boolean | object[] | null | undefined

function flat(value: Field): string {
  if (value === null || value === 'null' || value === 'undefined') return ''
  if (!Array.isArray(value)) return String(value)
  const sorted = value.map((one) => Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))))
  return JSON.stringify(sorted)
}

function hmac(key: string, text: string): string {
  return createHmac('sha256', key).update(text).digest('hex')
}

function vietnamTime(instant: Date): string {
  return new Date(instant.getTime() + 7 * 3_600_000).toISOString().slice(0, 19).replace('T', ' ')
}

/** The body of PayOS's notification about a transfer; `changes` go into `data` before it is signed. */
export function payosNotification(
  checksumKey: string,
  link: PeerLink,
  transfer: PeerTransfer,
  changes: object = {},
): { code: string; desc: string; success: boolean; data: Record<string, unknown>; signature: string } {
  const data = {
    orderCode: link.orderCode,
    amount: transfer.amount,
    description: link.description,
    accountNumber: 'V3CAS0001',
    reference: transfer.reference,
    transactionDateTime: transfer.transactionDateTime,
    currency: 'VND',
    paymentLinkId: link.id,
    code: '00',
    desc: 'Thành công',
    counterAccountBankId: null,
    counterAccountBankName: null,
    counterAccountName: 'NGUYEN VAN PAYER',
    counterAccountNumber: '0123456789',
    virtualAccountName: null,
    virtualAccountNumber: 'V3CAS0001',
    ...changes,
  }
  return { code: '00', desc: 'success', success: true, data, signature: signOfData(checksumKey, data) }
}
