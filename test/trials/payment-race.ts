import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { getApp } from '#apps/store.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { openBankPage } from '#checkout/open-bank-page.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { hmacHex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { systemClock, unixSeconds } from '#shared/time.ts'
import { listPaymentsOf } from '#payments/store.ts'
import { findTransaction } from '#transactions/store.ts'
import { addBankAccount, assignBankAccount, enableMethod } from '../support/operators.ts'
import { genuineMail, OUR_MX, TRANSFER } from '../support/bank-mails.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { presentContext, type TestContext } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { aCheckout, aPlan, LIFETIME, MONTHLY, priceId, tokenOf, type TestApp } from '../support/factories.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { startStripePeer, type PeerSession, type StripePeer } from '../support/stripe-peer.ts'
import { until } from '../support/until.ts'
import { aCardSeller, CARD, completionOf } from './card-rig.ts'
import { operator } from '#commands/caller.ts'

export interface RaceOptions {
  /** One after another; every third one buys a lifetime price, half of these through two checkouts of one end user. */
  readonly rounds: number
  readonly seed: number
}

/** Everything that a round needs. */
interface Stage {
  readonly ctx: TestContext
  readonly stripe: StripePeer
  readonly daemons: readonly [DaemonProcess, DaemonProcess]
  readonly app: TestApp
  readonly prices: { readonly month: string; readonly life: string }
  readonly forwardCode: string
  readonly random: () => number
}

/** One payment that is about to be confirmed from several sides. */
interface Contested {
  readonly id: number
  readonly token: string
  readonly amount: number
  /** The card page at Stripe. */
  readonly session: PeerSession
  /** Sends the provider's notification; returns the answer. */
  readonly tellCard: () => Promise<string>
  /** Posts the bank's mail as the relay does; returns the answer. */
  readonly tellBank: () => Promise<string>
}

const RELAY_SECRET = 'relay-secret-of-the-race'
/** The order differs from round to round, since a mail takes longer to read than a notification. */
const LONGEST_HEAD_START_MS = 30
const COPIES = 2

/**
 * Confirms one payment from all sides at the same time: the card's notification and the bank's mail, twice each, at two daemons,
 * and the operator, while the payer's page polls. Throws if it is not completed exactly once, if money is neither applied nor
 * flagged, if a lifetime purchase is applied twice, if anybody gets an error, or if the ledger has a discrepancy.
 */
export async function paymentRace({ rounds, seed }: RaceOptions) {
  const stripe = await startStripePeer(systemClock, [CARD.secretKey])
  const settings = {
    BILLING_STRIPE_API_BASE: stripe.base,
    BILLING_RELAY_SECRET: RELAY_SECRET,
    BILLING_RELAY_AUTHSERV_IDS: OUR_MX,
  }
  const daemons: DaemonProcess[] = []
  try {
    daemons.push(await startDaemonProcess(settings), await startDaemonProcess(settings))
    const stage = await setStage(settings, stripe, [daemons[0]!, daemons[1]!], seed)
    const winners: Record<string, number> = {}
    let doubleLifetimes = 0
    let polls = 0
    for (let round = 0; round < rounds; round += 1) {
      stage.ctx.clock.setToPresent()
      if (round % 6 === 5) {
        await raceForLife(stage, `user-${round}`)
        doubleLifetimes += 1
        continue
      }
      const { winner, polled } = await race(stage, `user-${round}`, round % 3 === 2)
      winners[winner] = (winners[winner] ?? 0) + 1
      polls += polled
    }
    await requireCleanLedger(stage.ctx, `after ${rounds} rounds of seed ${seed}`)
    return { seed, rounds, winners, doubleLifetimes, polls }
  } finally {
    for (const daemon of daemons) await daemon.stop()
    await stripe.stop()
  }
}

async function setStage(
  settings: Readonly<Record<string, string>>,
  stripe: StripePeer,
  daemons: Stage['daemons'],
  seed: number,
): Promise<Stage> {
  const ctx = presentContext(settings)
  const created = await aCardSeller(ctx, { methods: ['bank_transfer'] })
  // Manual transfers are offered besides PayOS (R191).
  await enableMethod(ctx, 'trial', created.app, 'payos', { clientId: 'client', apiKey: 'key', checksumKey: 'checksum' })
  const account = await addBankAccount(ctx, 'trial', { bank: 'ACB', number: TRANSFER.account, holder: 'NGUYEN VAN A' })
  await assignBankAccount(ctx, 'trial', created.app, account.id)
  const app = { ...created, app: await getApp(ctx.db, created.app.id) }
  const plan = await aPlan(ctx, app, { prices: [MONTHLY, LIFETIME] })
  const prices = { month: priceId(plan, 0), life: priceId(plan, 1) }
  return { ctx, stripe, daemons, app, prices, forwardCode: account.forwardCode, random: seededRandom(seed) }
}

async function race(
  stage: Stage,
  externalRef: string,
  isForLife: boolean,
): Promise<{ winner: string; polled: number }> {
  const contested = await contest(stage, externalRef, isForLife ? stage.prices.life : stage.prices.month)
  const { id, token, tellCard, tellBank } = contested
  const polling = poll(stage, token)
  const [operator, ...answers] = await Promise.all([
    headStart(stage, () => complete(stage, id)),
    ...Array.from({ length: COPIES }, () => headStart(stage, tellCard)),
    ...Array.from({ length: COPIES }, () => headStart(stage, tellBank)),
  ])
  const polled = await polling.end()
  for (const answer of answers) {
    if (!/^200 (processed|already_completed|duplicate)$/.test(answer)) throw new Error(`${externalRef}: ${answer}`)
  }
  const processed = answers.filter((answer) => answer === '200 processed').length
  if (processed + Number(operator) !== 1) {
    throw new Error(`${externalRef}: completed by ${processed} notifications and ${Number(operator)} operators`)
  }
  await checkRound(stage, contested, externalRef)
  const winner = operator ? 'operator' : (await findTransaction(stage.ctx.db, id))!.providerCode!
  return { winner, polled }
}

/**
 * The card pays one lifetime purchase and the bank another of the same end user: one is applied, the other flagged. The card page that
 * the bank's payer left open is closed.
 */
async function raceForLife(stage: Stage, externalRef: string): Promise<void> {
  const { ctx, prices } = stage
  const first = await contest(stage, externalRef, prices.life)
  const second = await contest(stage, externalRef, prices.life, 'by transfer alone')
  const answers = await Promise.all([headStart(stage, first.tellCard), headStart(stage, second.tellBank)])
  if (answers.some((answer) => answer !== '200 processed')) throw new Error(`${externalRef}: ${answers.join(', ')}`)
  const flags = await Promise.all(
    [first, second].map(async ({ id }) => (await findTransaction(ctx.db, id))!.flagReason),
  )
  if (flags.filter((flag) => flag === 'already_lifetime').length !== 1 || !flags.includes(null)) {
    throw new Error(`${externalRef}: two lifetime purchases, and the flags are ${JSON.stringify(flags)}`)
  }
  await until(() => second.session.status === 'expired')
  await checkEffects(stage, externalRef, true)
}

/** Opens a checkout that can be paid by card and by transfer, has the payer pay it, and prepares the notifications. */
async function contest(
  stage: Stage,
  externalRef: string,
  price: string,
  paid: 'both ways' | 'by transfer alone' = 'both ways',
): Promise<Contested> {
  const { ctx, app, stripe, daemons, forwardCode } = stage
  const checkout = await aCheckout(ctx, app, { external_ref: externalRef, price_id: price })
  const token = tokenOf(checkout)
  await chooseMethod(ctx, token, 'bank_transfer')
  await openBankPage(ctx, token)
  await chooseMethod(ctx, token, 'card')
  const { id, amount, transferCode } = (await findTransaction(ctx.db, checkout.transaction_id!))!
  const session = stripe.sessions.at(-1)!
  if (paid === 'both ways') stripe.pay(session)
  const seconds = unixSeconds(systemClock.now())
  const event = completionOf(session)
  const transfer = { ...TRANSFER, amount, content: transferCode!, movement: 600_000_000 + id }
  const mail = await genuineMail('ACB', transfer)
  const body = JSON.stringify({
    envelope_to: `bank+${forwardCode}@pay.example`,
    raw: Buffer.from(mail).toString('base64'),
  })
  const headers = {
    'Content-Type': 'application/json',
    'X-Timestamp': String(seconds),
    'X-Signature': hmacHex(RELAY_SECRET, `${seconds}.${body}`),
  }
  return {
    id,
    token,
    amount,
    session,
    tellCard: () => post(`${daemons[0].url}/api/v1/webhooks/card-provider`, event.headers, event.body),
    tellBank: () => post(`${daemons[1].url}/api/v1/webhooks/bank-transfer`, headers, body),
  }
}

async function post(url: string, headers: Readonly<Record<string, string>>, body: Buffer | string): Promise<string> {
  const answer = await request(url, { method: 'POST', headers, body })
  const reply = (await answer.body.json()) as { status?: string; data?: { status: string }; error?: { code: string } }
  return `${answer.statusCode} ${reply.status ?? reply.data?.status ?? reply.error?.code ?? ''}`
}

async function headStart<T>({ random }: Stage, act: () => Promise<T>): Promise<T> {
  await delay(random() * LONGEST_HEAD_START_MS)
  return act()
}

/** Whether the operator completed it; false if it was completed before. */
async function complete({ ctx }: Stage, transactionId: number): Promise<boolean> {
  try {
    await resolveTransaction(ctx, operator('operator'), {
      transactionId,
      action: 'complete',
      note: 'the payer showed a receipt',
    })
    return true
  } catch (error) {
    if (error instanceof AppError && error.code === 'invalid_request') return false
    throw error
  }
}

/** Polls like the payer's page until it is stopped: a completed payment must stay completed. */
function poll({ daemons }: Stage, token: string): { end: () => Promise<number> } {
  const state = { isOver: false, count: 0 }
  const polling = (async () => {
    let last = 'pending'
    for (let isLast = false; !isLast;) {
      isLast = state.isOver
      const { url } = daemons[state.count % 2]!
      const answer = await request(`${url}/checkout/${token}/status`)
      const { status } = (await answer.body.json()) as { status: string }
      state.count += 1
      if (answer.statusCode !== 200 || (last === 'completed' && status !== 'completed')) {
        throw new Error(`a poll was answered ${answer.statusCode} ${status} after ${last}`)
      }
      last = status
    }
    if (last !== 'completed') throw new Error(`all sides have confirmed, but the page says ${last}`)
    return state.count
  })()
  // Awaited at the end; an earlier failure must not count as unhandled.
  polling.catch(() => undefined)
  return {
    end: () => {
      state.isOver = true
      return polling
    },
  }
}

/** Both payments are booked, and one was needed: the transaction is flagged, and one period was granted. */
async function checkRound({ ctx, ...stage }: Stage, { id, amount }: Contested, externalRef: string): Promise<void> {
  const transaction = (await findTransaction(ctx.db, id))!
  const money = (await listPaymentsOf(ctx.db, id)).map((payment) => payment.provider).sort()
  const { status, amountReceived, flagReason } = transaction
  const found = `${status}, ${money.join(' and ')}, received ${amountReceived}, ${flagReason ?? 'no flag'}`
  const expected = `completed, bank_transfer and stripe, received ${2 * amount}, duplicate_payment`
  if (found !== expected) throw new Error(`${externalRef}: ${found}; expected ${expected}`)
  await checkEffects({ ctx, ...stage }, externalRef, transaction.amount === LIFETIME.amount)
}

async function checkEffects({ ctx, app }: Stage, externalRef: string, isForLife: boolean): Promise<void> {
  const [row]: Record<'effects' | 'events' | 'open' | 'revision' | 'life', string | number>[] = await ctx.db.query(
    `SELECT s.revision, s.current_period_end IS NULL AS life,
       (SELECT COUNT(*) FROM payment_applications a WHERE a.subscription_id = s.id) AS effects,
       (SELECT COUNT(*) FROM events e WHERE e.app_id = s.app_id AND e.external_ref = s.external_ref) AS events,
       (SELECT COUNT(*) FROM transactions t WHERE t.app_id = s.app_id AND t.external_ref = s.external_ref
          AND t.status <> 'completed') AS open
     FROM subscriptions s WHERE s.app_id = ? AND s.external_ref = ?`,
    [app.app.id, externalRef],
  )
  const { effects, events, open, revision, life } = row!
  const found = `${effects} effects, ${events} events, ${open} open, revision ${revision}, lifetime ${life}`
  const expected = `1 effects, 1 events, 0 open, revision 1, lifetime ${Number(isForLife)}`
  if (found !== expected) throw new Error(`${externalRef}: ${found}; expected ${expected}`)
}
