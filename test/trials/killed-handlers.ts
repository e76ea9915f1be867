import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { chooseMethod } from '#checkout/choose-method.ts'
import { receiveCardEvent } from '#providers/card/receive-event.ts'
import { receivePayosNotification } from '#providers/payos/receive-notification.ts'
import { systemClock } from '#shared/time.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { listPaymentsOf } from '#payments/store.ts'
import { enableMethod } from '../support/operators.ts'
import { presentContext, testEnvironment, type TestContext } from '../support/context.ts'
import { aCheckout, aPlan, priceId, tokenOf, type TestApp } from '../support/factories.ts'
import { payosNotification, startPayosPeer } from '../support/payos-peer.ts'
import { startStripePeer } from '../support/stripe-peer.ts'
import { aCardSeller, CARD, completionOf } from './card-rig.ts'
import type { DyingCommand } from './dying-receiver.ts'

export interface KilledOptions {
  /** 1 kills before every statement, 4 before every fourth. */
  readonly every: number
}

const RECEIVER = join(import.meta.dirname, 'dying-receiver.ts')
const KEYS = { clientId: 'client', apiKey: 'api', checksumKey: 'checksum' }

/**
 * Kills the process of a card or PayOS notification with -9 before each of its statements, then repeats the notification. Throws if
 * something is half done after the kill, or not done exactly once after the repetition.
 */
export async function killedHandlers({ every }: KilledOptions) {
  const stripe = await startStripePeer(systemClock, [CARD.secretKey])
  const payos = await startPayosPeer(systemClock, KEYS)
  const settings = { BILLING_STRIPE_API_BASE: stripe.base, BILLING_PAYOS_API_BASE: payos.base }
  const ctx = presentContext(settings)
  try {
    const app = await aCardSeller(ctx)
    await enableMethod(ctx, 'trial', app.app, 'payos', KEYS)
    const price = priceId(await aPlan(ctx, app))
    /** Of an undisturbed run. */
    const statements = { card: 0, payos: 0 }
    let kills = 0
    for (const kind of ['card', 'payos'] as const) {
      for (let diesBefore = 1; ; diesBefore += every) {
        const { transactionId, command } = await paid(ctx, app, price, kind, diesBefore)
        const ended = await receiveAndDie(settings, command)
        await checkWhole(ctx, `${kind}, killed before statement ${diesBefore}`)
        await notifyAgain(ctx, command)
        await checkOnce(ctx, transactionId, `${kind}, notified again after a kill before statement ${diesBefore}`)
        if (ended !== 'killed') {
          statements[kind] = ended.statements
          break
        }
        kills += 1
      }
    }
    return { statements, kills }
  } finally {
    await stripe.stop()
    await payos.stop()
  }

  async function paid(
    context: TestContext,
    app: TestApp,
    price: string,
    kind: DyingCommand['kind'],
    diesBefore: number,
  ) {
    const externalRef = `${kind}-${diesBefore}`
    const checkout = await aCheckout(context, app, { price_id: price, external_ref: externalRef })
    await chooseMethod(context, tokenOf(checkout), kind)
    const notification = kind === 'card' ? cardNotification() : transferNotification()
    const command: DyingCommand = {
      kind,
      diesBefore,
      signature: notification.signature,
      body: notification.body.toString('base64'),
    }
    return { transactionId: checkout.transaction_id!, command }
  }

  function cardNotification(): { signature: string; body: Buffer } {
    const session = stripe.sessions.at(-1)!
    stripe.pay(session)
    const event = completionOf(session)
    return { signature: event.headers['Stripe-Signature']!, body: event.body }
  }

  function transferNotification(): { signature: string; body: Buffer } {
    const link = payos.links.at(-1)!
    const body = payosNotification(KEYS.checksumKey, link, payos.transfer(link, link.amount))
    return { signature: '', body: Buffer.from(JSON.stringify(body)) }
  }
}

/** Runs the receiver in a process; returns its output, or that it was killed. */
async function receiveAndDie(
  settings: Readonly<Record<string, string>>,
  command: DyingCommand,
): Promise<'killed' | { decision: { status: string }; statements: number }> {
  const environment = { PATH: process.env['PATH'] ?? '', ...testEnvironment(settings) }
  const child = spawn(process.execPath, [RECEIVER], { env: environment, stdio: ['pipe', 'pipe', 'pipe'] })
  let printed = ''
  let complained = ''
  child.stdout.on('data', (data: Buffer) => (printed += data.toString()))
  child.stderr.on('data', (data: Buffer) => (complained += data.toString()))
  child.stdin.end(JSON.stringify(command))
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  if (signal === 'SIGKILL') return 'killed'
  if (code !== 0) throw new Error(`the receiver ended with ${code ?? signal ?? ''}: ${printed}${complained}`)
  // The lines of its log are on either side.
  const result = printed.split('\n').find((line) => line.startsWith('{"decision"'))
  if (result === undefined) throw new Error(`the receiver printed no decision: ${printed}`)
  return JSON.parse(result) as { decision: { status: string }; statements: number }
}

async function notifyAgain(ctx: TestContext, command: DyingCommand): Promise<void> {
  const body = Buffer.from(command.body, 'base64')
  ctx.clock.setToPresent()
  const decision =
    command.kind === 'card'
      ? await receiveCardEvent(ctx, { signature: command.signature, body })
      : await receivePayosNotification(ctx, body)
  if (!['processed', 'duplicate', 'already_completed'].includes(decision.status)) {
    throw new Error(`the repetition was ${decision.status}`)
  }
}

async function checkWhole(ctx: TestContext, when: string): Promise<void> {
  const { faults } = await verifyLedger(ctx, null)
  if (faults.length > 0) throw new Error(`${when}: ${JSON.stringify(faults)}`)
}

async function checkOnce(ctx: TestContext, transactionId: number, when: string): Promise<void> {
  await checkWhole(ctx, when)
  const payments = await listPaymentsOf(ctx.db, transactionId)
  const [row]: { status: string; flag: string | null; effects: string; events: string }[] = await ctx.db.query(
    `SELECT status, flag_reason AS flag,
       (SELECT COUNT(*) FROM payment_applications WHERE transaction_id = ?) AS effects,
       (SELECT COUNT(*) FROM events WHERE event_type = 'subscription.updated' AND app_id = t.app_id
         AND external_ref = t.external_ref) AS events
     FROM transactions t WHERE id = ?`,
    [transactionId, transactionId],
  )
  const found = `${row!.status}, ${row!.flag ?? 'no flag'}, ${payments.length} payments, ${row!.effects} effects, ${row!.events} events`
  if (found !== 'completed, no flag, 1 payments, 1 effects, 1 events') throw new Error(`${when}: ${found}`)
}
