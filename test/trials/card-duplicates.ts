import { Agent, request } from 'undici'
import { systemClock } from '#shared/time.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { presentContext, type TestContext } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { aCheckout, aPlan, priceId, tokenOf } from '../support/factories.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { startStripePeer, type SignedEvent } from '../support/stripe-peer.ts'
import { aCardSeller, CARD, completionOf } from './card-rig.ts'
import { chooseAccepted } from './shop.ts'

export interface DuplicatesOptions {
  /** Paid card payments, each of a different end user. */
  readonly payments: number
  /** Copies of each notification. */
  readonly copies: number
  readonly connections: number
  readonly daemons: number
  readonly seed: number
}

/**
 * Sends copies of card notifications, shuffled, over many connections to several daemons at once. Throws if one is not answered
 * 200, if a payment does not have exactly one effect and one set of events, or if the ledger has a discrepancy.
 */
export async function cardDuplicates(options: DuplicatesOptions) {
  const stripe = await startStripePeer(systemClock, [CARD.secretKey])
  const settings = { BILLING_STRIPE_API_BASE: stripe.base }
  const ctx = presentContext(settings)
  const daemons: DaemonProcess[] = []
  const agent = new Agent({ connections: Math.ceil(options.connections / options.daemons), pipelining: 1 })
  try {
    for (let number = 0; number < options.daemons; number += 1) daemons.push(await startDaemonProcess(settings))
    const events = await payAll(ctx, stripe, daemons[0]!, options.payments)
    const copies = shuffled(
      events.flatMap((event) => Array.from({ length: options.copies }, () => event)),
      options.seed,
    )
    const startedMs = performance.now()
    const answers = await sendAll(agent, daemons, copies, options.connections)
    const seconds = (performance.now() - startedMs) / 1000
    await check(ctx, options, answers)
    return {
      seed: options.seed,
      sent: copies.length,
      answers,
      seconds: Math.round(seconds * 10) / 10,
      perSecond: Math.round(copies.length / seconds),
    }
  } finally {
    await agent.close()
    for (const daemon of daemons) await daemon.stop()
    await stripe.stop()
  }
}

/** Opens and pays that many card payments for subscriptions; returns the notification of each. */
async function payAll(
  ctx: TestContext,
  stripe: Awaited<ReturnType<typeof startStripePeer>>,
  daemon: DaemonProcess,
  payments: number,
): Promise<SignedEvent[]> {
  const app = await aCardSeller(ctx)
  const plan = await aPlan(ctx, app)
  const events: SignedEvent[] = []
  for (let number = 0; number < payments; number += 1) {
    const checkout = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: `user-${number}` })
    await chooseAccepted(daemon, tokenOf(checkout), 'card')
    const session = stripe.sessions.at(-1)!
    stripe.pay(session)
    events.push(completionOf(session))
  }
  return events
}

/** The number of each answer: `200 processed`, `200 duplicate`, … */
async function sendAll(
  agent: Agent,
  daemons: readonly DaemonProcess[],
  events: readonly SignedEvent[],
  connections: number,
): Promise<Record<string, number>> {
  const answers: Record<string, number> = {}
  let next = 0
  const send = async (): Promise<void> => {
    while (next < events.length) {
      const number = next++
      const { body, headers } = events[number]!
      const { url } = daemons[number % daemons.length]!
      const path = `${url}/api/v1/webhooks/card-provider`
      const answer = await request(path, { dispatcher: agent, method: 'POST', headers, body })
      const reply = (await answer.body.json()) as { data?: { status: string } }
      const name = `${answer.statusCode} ${reply.data?.status ?? ''}`
      answers[name] = (answers[name] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: connections }, send))
  return answers
}

async function check(
  ctx: TestContext,
  { payments, copies }: DuplicatesOptions,
  answers: Readonly<Record<string, number>>,
): Promise<void> {
  const expected = { '200 processed': payments, '200 duplicate': payments * (copies - 1) }
  if (JSON.stringify(Object.entries(answers).sort()) !== JSON.stringify(Object.entries(expected).sort())) {
    throw new Error(`the answers are ${JSON.stringify(answers)}, not ${JSON.stringify(expected)}`)
  }
  const count = async (sql: string): Promise<number> => {
    const [row]: { count: string }[] = await ctx.db.query(sql)
    return Number(row!.count)
  }
  for (const [what, sql] of [
    ['completed transactions', `SELECT COUNT(*) AS count FROM transactions WHERE status = 'completed'`],
    ['transactions without a flag', 'SELECT COUNT(*) AS count FROM transactions WHERE flag_reason IS NULL'],
    ['payments', 'SELECT COUNT(*) AS count FROM payments'],
    ['effects', 'SELECT COUNT(*) AS count FROM payment_applications'],
    ['events', `SELECT COUNT(*) AS count FROM events WHERE event_type = 'subscription.updated'`],
    ['provider events', 'SELECT COUNT(*) AS count FROM provider_events'],
  ] as const) {
    const found = await count(sql)
    if (found !== payments) throw new Error(`${found} ${what} of ${payments} payments`)
  }
  const { faults } = await verifyLedger(ctx, null)
  if (faults.length > 0) throw new Error(`the ledger has discrepancies: ${JSON.stringify(faults)}`)
}

/** A seeded Fisher–Yates shuffle. */
function shuffled<T>(items: readonly T[], seed: number): T[] {
  const order = [...items]
  const random = seededRandom(seed)
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1))
    ;[order[last], order[other]] = [order[other]!, order[last]!]
  }
  return order
}
