import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { presentContext } from '../support/context.ts'
import { startDaemonProcess } from '../support/daemon-process.ts'
import { aCheckout, anApp, aPlan, priceId, tokenOf } from '../support/factories.ts'
import { head, sendRaw } from '../support/raw-http.ts'

export interface AbuseOptions {
  /** Connections that send a header a byte at a time. */
  readonly slowSockets: number
  /** Connections that send a body a byte at a time. */
  readonly slowBodies: number
}

const BASE_URL = 'https://pay.example'
const EVIL = 'evil.example'
/** Headers must be complete after 10 s, a whole request after 30 s; the server checks each second. */
const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
const SLACK_MS = 5000
const HONEST_MS = 2000
const DRIP_MS = 400
const PIPELINED = 20

/**
 * Attacks a daemon over HTTP. Throws if a slow sender keeps its connection beyond the deadline or makes others wait, if
 * a request is read as two, if a link is made from `Host`, if a token leads elsewhere, or if anything answers 5xx.
 */
export async function httpAbuse({ slowSockets, slowBodies }: AbuseOptions) {
  const ctx = presentContext()
  const daemon = await startDaemonProcess({ BILLING_BASE_URL: BASE_URL })
  try {
    const app = await anApp(ctx)
    const token = tokenOf(await aCheckout(ctx, app, { price_id: priceId(await aPlan(ctx, app)) }))
    const slow = Promise.all([
      ...Array.from({ length: slowSockets }, () => drip(daemon.url, 'GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ')),
      ...Array.from({ length: slowBodies }, () => drip(daemon.url, slowBodyHead(token), REQUEST_MS)),
    ])
    slow.catch(() => undefined)
    const honest = watchHonest(daemon.url, token)
    /** Hostile requests that had no effect: refused, or answered as if they were not hostile. */
    let repelled = 0
    try {
      await checkPipelining(daemon.url)
      repelled += await checkSmuggling(daemon.url)
      repelled += await checkHosts(daemon.url, token)
      repelled += await checkTokens(daemon.url, token)
      const cutMs = await slow
      await requireCleanLedger(ctx, 'after the abuse')
      return {
        slowSockets,
        slowestCutMs: Math.round(Math.max(...cutMs)),
        slowestHonestMs: Math.round(await honest.end()),
        repelled,
      }
    } finally {
      await honest.end()
    }
  } finally {
    const code = await daemon.stop()
    if (code !== 0) throw new Error(`the daemon ended with ${code ?? 'a signal'}`)
  }
}

function slowBodyHead(token: string): string {
  return `POST /checkout/${token}/resolve HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n`
}

/** Sends the beginning and then a byte at a time; returns after how many milliseconds it is cut off. */
async function drip(url: string, beginning: string, deadlineMs: number = HEADERS_MS): Promise<number> {
  const socket = await open(url)
  const startedMs = performance.now()
  let received = ''
  let isClosed = false
  socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  socket.on('close', () => (isClosed = true))
  socket.write(beginning)
  while (!isClosed) {
    await delay(DRIP_MS)
    socket.write('a')
    if (performance.now() - startedMs > deadlineMs + SLACK_MS) {
      socket.destroy()
      throw new Error(`a slow sender was not cut off in ${deadlineMs + SLACK_MS} ms`)
    }
  }
  if (received !== '' && !received.startsWith('HTTP/1.1 408 ')) throw new Error(`a slow sender received ${received}`)
  return performance.now() - startedMs
}

async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  // A cut-off connection may be reset.
  return socket.on('error', () => undefined)
}

/** Polls the state of a checkout, as a payer's page does; returns the time of the slowest answer. */
function watchHonest(url: string, token: string): { end: () => Promise<number> } {
  let isOver = false
  const watching = (async () => {
    let slowestMs = 0
    while (!isOver) {
      const startedMs = performance.now()
      const answer = await request(`${url}/checkout/${token}/status`)
      await answer.body.dump()
      if (answer.statusCode !== 200) throw new Error(`an honest caller was answered ${answer.statusCode}`)
      slowestMs = Math.max(slowestMs, performance.now() - startedMs)
      await delay(50)
    }
    if (slowestMs > HONEST_MS) throw new Error(`an honest caller waited ${Math.round(slowestMs)} ms`)
    return slowestMs
  })()
  watching.catch(() => undefined)
  return {
    end: () => {
      isOver = true
      return watching
    },
  }
}

/** Many requests in one packet are answered one by one, in order. */
async function checkPipelining(url: string): Promise<void> {
  const socket = await open(url)
  let received = ''
  socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  const requests = Array.from({ length: PIPELINED }, (_, index) => {
    const path = index % 2 === 0 ? '/healthz' : '/nowhere'
    return `GET ${path} HTTP/1.1\r\nHost: a\r\n${index === PIPELINED - 1 ? 'Connection: close\r\n' : ''}\r\n`
  })
  socket.write(requests.join(''))
  await closed
  const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => match[1])
  const expected = requests.map((_, index) => (index % 2 === 0 ? '200' : '404'))
  if (statuses.join() !== expected.join()) throw new Error(`pipelined requests were answered ${statuses.join()}`)
}

/** What a proxy and a server may parse differently, as one request or two: refused, and the rest is never read. */
async function checkSmuggling(url: string): Promise<number> {
  const hidden = 'GET /healthz HTTP/1.1\r\nHost: hidden\r\n\r\n'
  const lengths: readonly (readonly string[])[] = [
    [`Content-Length: ${hidden.length + 5}`, 'Transfer-Encoding: chunked'],
    ['Transfer-Encoding: chunked', 'Content-Length: 0'],
    ['Content-Length: 5', `Content-Length: ${hidden.length + 5}`],
    ['Content-Length: 5, 5'],
    ['Content-Length: +5'],
    ['Content-Length: 0x5'],
    ['Content-Length: -1'],
    ['Content-Length : 5'],
    ['Transfer-Encoding: xchunked'],
    ['Transfer-Encoding: chunked, identity'],
    ['Transfer-Encoding : chunked'],
    ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
    ['X: a\nTransfer-Encoding: chunked'],
    ['X: a\rTransfer-Encoding: chunked'],
    [' Transfer-Encoding: chunked', 'Content-Length: 5'],
  ]
  for (const headers of lengths) {
    const lines = ['POST /api/v1/webhooks/card-provider HTTP/1.1', 'Host: a', ...headers]
    const socket = await open(url)
    let received = ''
    socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
    socket.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n0\r\n\r\n${hidden}`, 'latin1'))
    await closed
    const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => match[1])
    if (statuses.join() !== '400') throw new Error(`${JSON.stringify(headers)} was answered ${statuses.join()}`)
  }
  return lengths.length
}

/** Links use the base address only, whatever `Host` says. */
async function checkHosts(url: string, token: string): Promise<number> {
  const page = `/checkout/${token}`
  const hosts = [
    [['Host', EVIL]],
    [
      ['Host', 'a'],
      ['X-Forwarded-Host', EVIL],
      ['X-Forwarded-Proto', 'http'],
      ['Forwarded', `host=${EVIL}`],
    ],
    [['Host', `a:80@${EVIL}`]],
    [['Host', `${EVIL}/?`]],
    [['Host', '']],
  ]
  for (const headers of hosts) {
    for (const target of [page, `http://${EVIL}${page}`, `${page}/bank`, `/renew/${'0'.repeat(64)}`]) {
      const lines = [...headers, ['Connection', 'close']].map(([name, value]) => `${name}: ${value}`)
      const answer = await sendRaw(url, `GET ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
      const content = JSON.stringify([answer.headers, answer.text])
      if (answer.status >= 500 || answer.status === 0) throw new Error(`${target} was answered ${answer.status}`)
      if (content.includes(EVIL))
        throw new Error(`${target} with ${JSON.stringify(headers)} contains ${EVIL}: ${content}`)
    }
  }
  const form = 'payment_method=test'
  const fields = [
    ['Host', EVIL],
    ['Content-Type', 'application/x-www-form-urlencoded'],
    ['Content-Length', String(form.length)],
    ['Connection', 'close'],
  ].map(([name, value]) => `${name}: ${value}`)
  const paid = await sendRaw(url, `POST ${page}/resolve HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n${form}`)
  const { location } = paid.headers
  if (paid.status !== 303 || location !== 'https://shop.example/ok') {
    throw new Error(`a payment under a wrong host was answered ${paid.status} ${String(location)}`)
  }
  const without = await sendRaw(url, `GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n`)
  const twice = await sendRaw(url, `GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n`)
  if (without.status !== 400 || twice.status >= 500) throw new Error(`no host: ${without.status}, two: ${twice.status}`)
  return hosts.length * 4 + 2
}

/** An invalid token leads nowhere. */
async function checkTokens(url: string, token: string): Promise<number> {
  const tokens = [
    ...['..', '%2e%2e', '..%2f..%2fhealthz', '..%5c..%5chealthz', '.%00.', '%00', '%ff', '%', '%zz', '%c0%ae%c0%ae'],
    ...["' OR 1=1 -- ".replaceAll(' ', '%20'), '%27%20OR%20%271%27=%271', '%F0%9F%92%B8', '*', '%25', '%250a'],
    ...[token.toUpperCase(), `${token}0`, token.slice(1), `${token}%00`, `${token}%20`, `%20${token}`, `${token};x=1`],
    ...[`${token}%0d%0aX-Injected:%201`, `${token}%2f`, 'a'.repeat(8000), '0'.repeat(64), `${token},${token}`],
  ]
  const paths = tokens.flatMap((each) => [
    ...['', '/status', '/bank', '/qr.svg'].map((rest) => `/checkout/${each}${rest}`),
    ...['', '/opt-out'].map((rest) => `/renew/${each}${rest}`),
  ])
  const more = [
    '//checkout',
    `//${EVIL}/checkout/${token}`,
    `/checkout/${token}/../../healthz`,
    '/assets/..%2fcheckout.eta',
  ]
  for (const path of [...paths, ...more]) {
    const answer = await sendRaw(url, head(`GET ${path}`, []))
    const isRefused = answer.status >= 400 && answer.status < 500
    if (!isRefused || 'x-injected' in answer.headers) throw new Error(`${path} was answered ${answer.status}`)
  }
  return paths.length + more.length
}
