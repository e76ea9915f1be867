import { connect, type Socket } from 'node:net'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { presentContext, type TestContext } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { paid } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { until } from '../support/until.ts'
import { aShopWithWebhooks, openCheckouts } from './shop.ts'

export interface StopOptions {
  /** How often a daemon is started, loaded and stopped. */
  readonly stops: number
  /** Kept connections, each with a request under way at any time. */
  readonly connections: number
  readonly seed: number
}

const DEADLINE_MS = 30_000
/** The average number of answered requests per connection when the signal is sent. */
const REQUESTS_BEFORE = 4
/** Far more than can be answered before the signal. */
const PAYMENTS_PER_CONNECTION = 12

/**
 * Repeatedly stops a daemon with SIGTERM while payments arrive over kept connections. Throws if it does not exit 0 in time, cuts off
 * a request, keeps a lease or loses an answered payment; the next daemon must deliver the rest, and the ledger must be clean.
 */
export async function stopUnderLoad({ stops, connections, seed }: StopOptions) {
  const random = seededRandom(seed)
  const receiver = await Receiver.start()
  const ctx = presentContext()
  const shop = await aShopWithWebhooks(ctx, receiver)
  const total = { answered: 0, cutOff: 0, slowestStopMs: 0, leftToNext: 0 }
  try {
    for (let stop = 0; stop < stops; stop += 1) {
      const tokens = await openCheckouts(ctx, shop, `stop-${stop}`, connections * PAYMENTS_PER_CONNECTION)
      const round = await stopOnce(receiver, tokens, connections, random)
      total.answered += round.paid.length
      total.cutOff += round.cutOff
      total.slowestStopMs = Math.max(total.slowestStopMs, round.stopMs)
      if (round.cutOff > 0) throw new Error(`seed ${seed}, stop ${stop}: ${round.cutOff} requests were cut off`)
      await checkStopped(ctx, round.paid)
    }
    total.leftToNext = await deliverRest(ctx, receiver)
    await requireCleanLedger(ctx, `after ${stops} stops of seed ${seed}`)
    return { seed, stops, ...total }
  } finally {
    await receiver.stop()
  }
}

interface Round {
  /** Tokens of the payments answered 200. */
  readonly paid: string[]
  readonly cutOff: number
  readonly stopMs: number
}

async function stopOnce(
  receiver: Receiver,
  tokens: string[],
  connections: number,
  random: () => number,
): Promise<Round> {
  const daemon = await startDaemonProcess()
  const answered: string[] = []
  const load = { cutOff: 0 }
  try {
    const clients = await Promise.all(Array.from({ length: connections }, () => openClient(daemon)))
    answered.push(await payFirst(receiver, clients[0]!, tokens.shift()!))
    const loading = Promise.all(
      clients.map(async (client) => {
        for (let token = tokens.shift(); token; token = tokens.shift()) {
          const status = await client.pay(token)
          if (status === 'closed') return
          if (status === 'cut off') load.cutOff += 1
          else if (status !== 200) throw new Error(`a payment was answered ${status}`)
          else answered.push(token)
        }
        throw new Error('the daemon was stopped, but keeps accepting requests')
      }),
    )
    const enough = connections * REQUESTS_BEFORE * random()
    await Promise.race([until(() => answered.length >= enough), loading])
    const startedMs = performance.now()
    const code = await daemon.stop()
    const stopMs = Math.round(performance.now() - startedMs)
    if (code !== 0) throw new Error(`the daemon ended with ${code ?? 'a signal'} after ${stopMs} ms`)
    if (stopMs > DEADLINE_MS) throw new Error(`the daemon ended after ${stopMs} ms`)
    await loading
    return { paid: answered, cutOff: load.cutOff, stopMs }
  } finally {
    await daemon.kill()
  }
}

/** Pays, and waits for a webhook: the sender starts later than the daemon listens, and the stop must meet it at work. */
async function payFirst(receiver: Receiver, client: Client, token: string): Promise<string> {
  const arrived = receiver.received.length
  const status = await client.pay(token)
  if (status !== 200) throw new Error(`the first payment was answered ${status}`)
  await until(() => receiver.received.length > arrived)
  return token
}

interface Client {
  /** The status of the answer; `closed`: the connection was closed before the request; `cut off`: it was closed during the request. */
  pay(token: string): Promise<number | 'closed' | 'cut off'>
}

/** A client that keeps its connection, and sends nothing more after an answer with `Connection: close`. */
async function openClient({ url }: DaemonProcess): Promise<Client> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  socket.on('error', () => undefined)
  let mustClose = false
  return {
    async pay(token) {
      if (mustClose || socket.readableEnded || socket.destroyed) {
        socket.destroy()
        return 'closed'
      }
      const body = JSON.stringify({ payment_method: 'test' })
      const head = ['Host: localhost', 'Content-Type: application/json', `Content-Length: ${body.length}`]
      socket.write(`POST /checkout/${token}/resolve HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`)
      const answer = await readAnswer(socket)
      if (answer === null) return 'cut off'
      mustClose = /^connection: close\r?$/im.test(answer)
      return Number(answer.split(' ')[1])
    },
  }
}

/** One answer with a `Content-Length`; null if the connection ended before it was complete. */
function readAnswer(socket: Socket): Promise<string | null> {
  return new Promise((resolve) => {
    let received = ''
    const finish = (answer: string | null): void => {
      socket.off('data', onData).off('close', onClose).off('end', onClose)
      resolve(answer)
    }
    const onClose = (): void => finish(null)
    const onData = (chunk: Buffer): void => {
      received += chunk.toString('latin1')
      const end = received.indexOf('\r\n\r\n')
      if (end < 0) return
      const length = Number(/^content-length: (\d+)/im.exec(received)?.[1])
      if (received.length >= end + 4 + length) finish(received)
    }
    socket.on('data', onData).once('close', onClose).once('end', onClose)
  })
}

async function checkStopped(ctx: TestContext, paid: readonly string[]): Promise<void> {
  const [leases]: { count: string }[] = await ctx.db.query('SELECT COUNT(*) AS count FROM events WHERE lease <> 0')
  if (Number(leases!.count) > 0) throw new Error(`the daemon kept ${leases!.count} leases`)
  if (paid.length === 0) return
  const [done]: { count: string }[] = await ctx.db.query(
    `SELECT COUNT(*) AS count FROM checkout_sessions c JOIN transactions t ON t.id = c.transaction_id
     WHERE t.status = 'completed' AND c.token IN (?)`,
    [paid],
  )
  if (Number(done!.count) !== paid.length) throw new Error(`${done!.count} of ${paid.length} payments are complete`)
}

/** Starts one more daemon, which delivers the rest; every event must arrive once, since no attempt was interrupted. */
async function deliverRest(ctx: TestContext, receiver: Receiver): Promise<number> {
  const before = receiver.received.length
  const [row]: { count: string }[] = await ctx.db.query('SELECT COUNT(*) AS count FROM events')
  const daemon = await startDaemonProcess()
  try {
    await receiver.waitFor(Number(row!.count))
  } finally {
    await daemon.stop()
  }
  const distinct = new Set(receiver.received.map(({ eventId }) => eventId)).size
  if (distinct !== Number(row!.count) || receiver.received.length !== distinct) {
    throw new Error(`${row!.count} events, ${distinct} of them delivered, by ${receiver.received.length} webhooks`)
  }
  return distinct - before
}

/**
 * Stops a daemon while a webhook receiver does not answer. After one signal it must exit in time with the lease released, so that the
 * next daemon delivers; after a second signal it must exit at once.
 */
export async function stopOnHungReceiver({ timeoutMs }: { readonly timeoutMs: number }) {
  const receiver = await Receiver.start()
  const ctx = presentContext()
  const { app, price } = await aShopWithWebhooks(ctx, receiver)
  const settings = { BILLING_WEBHOOK_TIMEOUT_MS: String(timeoutMs), BILLING_WEBHOOK_RETRY_MINUTES: '0.01' }
  const daemons: DaemonProcess[] = []
  const hang = async (externalRef: string): Promise<DaemonProcess> => {
    receiver.answer = () => undefined
    const arrived = receiver.received.length
    await paid(ctx, app, { external_ref: externalRef, price_id: price })
    const daemon = await startDaemonProcess(settings)
    daemons.push(daemon)
    await receiver.waitFor(arrived + 1)
    return daemon
  }
  try {
    const patient = await hang('patient')
    const startedMs = performance.now()
    const code = await patient.stop()
    const stopMs = Math.round(performance.now() - startedMs)
    if (code !== 0 || stopMs > DEADLINE_MS)
      throw new Error(`the daemon ended with ${code ?? 'a signal'} in ${stopMs} ms`)
    await checkStopped(ctx, [])
    receiver.answer = 200
    await deliverAgain(ctx, receiver, settings)
    const hasty = await hang('hasty')
    const first = hasty.stop()
    await until(() => hasty.logged.some((line) => line.includes('"stopping"')))
    const secondMs = performance.now()
    let secondCode: number | null | undefined
    void first.then((exitCode) => (secondCode = exitCode))
    // A signal within a second of the first is the same one, sent to a group of processes.
    await until(() => {
      void hasty.stop()
      return secondCode !== undefined
    })
    const secondSignalMs = Math.round(performance.now() - secondMs)
    if (secondCode !== 1 || secondSignalMs > timeoutMs / 2) {
      throw new Error(`at a second signal the daemon ended with ${String(secondCode)} in ${secondSignalMs} ms`)
    }
    await requireCleanLedger(ctx, 'after two stops on a receiver that hung')
    return { stopMs, secondSignalMs }
  } finally {
    for (const daemon of daemons) await daemon.kill()
    await receiver.stop()
  }
}

async function deliverAgain(
  ctx: TestContext,
  receiver: Receiver,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const daemon = await startDaemonProcess(settings)
  try {
    await receiver.waitFor(receiver.received.length + 1)
    if (receiver.received.at(-1)!.attempt !== 2) throw new Error('the hanging attempt was not counted')
    const isDelivered = async (): Promise<boolean> => {
      const rows: object[] = await ctx.db.query(`SELECT id FROM events WHERE delivery_status <> 'delivered'`)
      return rows.length === 0
    }
    await until(isDelivered)
  } finally {
    await daemon.stop()
  }
}
