import { randomUUID } from 'node:crypto'
import { operator } from '#commands/caller.ts'
import { isDatabaseBusy } from '#db/database-error.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { sendDueReceipts } from '#mails/receipts/send-due-receipts.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { reconcilePayments } from '#providers/engine/reconcile-payments.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { AppError } from '#shared/errors.ts'
import { unixSeconds } from '#shared/time.ts'
import { finishPendingWrites } from '#subscriptions/finish-pending-writes.ts'
import { relayMail, transferFor } from '../bank-mail/bank-shop.ts'
import { PAYOS_KEYS } from '../providers/payos-shop.ts'
import { tokenIn } from '../renewals/scene.ts'
import type { Answer, Response } from '../support/api.ts'
import { genuineMail } from '../support/bank-mails.ts'
import { testDatabase } from '../support/database.ts'
import { payosNotification } from '../support/payos-peer.ts'
import { sessionFacts, signedEvent } from '../support/stripe-peer.ts'
import { CARD } from './card-rig.ts'
import type { LineName } from './line-program.ts'
import type { AppName, LineRig } from './line-rig.ts'
import type { Envelope, Redirect } from '../support/answers.ts'
import { deliverDue } from '../support/deliver-due.ts'

/** A purchase that was answered as paid, or whose money is at the provider. */
export interface Purchase {
  readonly app: AppName
  readonly ref: string
  readonly transactionId: number
  readonly amount: number
}

/** What was done, as callers know it from the answers. */
export interface Journal {
  /** The `Idempotency-Key` calls that opened a checkout. */
  opened: number
  readonly paid: Purchase[]
  readonly renewed: string[]
  readonly refunded: Purchase[]
  /** Mails whose renewal link was followed, or left alone. */
  mailsRead: number
  /** Answers other than success, each followed by another call. */
  readonly refusals: Record<string, number>
  slowestMs: number
}

/** What a step of the load works with. */
export interface Work {
  readonly rig: LineRig
  readonly journal: Journal
  /** Decides what the load does, apart from the faults. */
  readonly random: () => number
}

export function newJournal(): Journal {
  return { opened: 0, paid: [], renewed: [], refunded: [], mailsRead: 0, refusals: {}, slowestMs: 0 }
}

const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
const JSON_TYPE = { 'Content-Type': 'application/json' }
const LINH = operator('linh')
/** As many seconds of simulated time. */
const MOST_TRIES = 90
/** Answers after which the caller may call again; pages answer without a code. 409 says that its first call is still running. */
const RETRYABLE = /^(502 (provider_error)?|503 (service_unavailable)?|429 (rate_limited)?|409 idempotency_conflict)$/

/**
 * What happens between two moves of the clock: purchases, renewals, a refund, and each of the daemon's jobs. `line` is the faulty one, so
 * that something passes through it.
 */
export async function workOnce(work: Work, step: number, line: LineName | null): Promise<void> {
  const { random } = work
  const way = line === 'Stripe' ? 0 : line === 'PayOS' ? 1 : Math.floor(random() * 3)
  const purchases = [
    buyAsClient(work, `client-${Math.floor(random() * 30)}`),
    [payByCard, payByPayos, payByTransfer][way]!(work, `payer-${step}`),
    ...(step % 4 === 0 || line === 'mail server' ? [subscribe(work, `customer-${step}`)] : []),
  ]
  await inParallel([...purchases, ...renewals(work), ...refunds(work)])
  await runJobs(work)
}

/** Runs each of the daemon's jobs to its end, again while it fails, as the daemon does. */
export async function runJobs({ rig, journal }: Work): Promise<void> {
  const { ctx } = rig.scenario.service
  await inParallel([
    again(rig, journal, () => deliverDue(ctx)),
    again(rig, journal, async () => {
      await sendDueReceipts(ctx)
      await sendDueReminders(ctx)
    }),
    again(rig, journal, () => expireDue(ctx)),
    again(rig, journal, async () => {
      await finishPendingWrites(ctx)
      await reconcilePayments(ctx, { withRefundLists: true })
    }),
  ])
}

/** All end before an error of one is thrown, so that nothing of a step runs on in the next one. */
async function inParallel(works: readonly Promise<unknown>[]): Promise<void> {
  for (const ended of await Promise.allSettled(works)) if (ended.status === 'rejected') throw ended.reason
}

async function buyAsClient(work: Work, ref: string): Promise<void> {
  const { scenario, apps } = work.rig
  const headers = newKey()
  const body = { external_ref: ref, mode: 'subscription', price_id: apps.client.price, ...URLS }
  const answer = await insist(work, () => scenario.as(ref).post('/api/v1/checkout-sessions', body, headers))
  const checkout = await opened(work, 'client', ref, answer)
  await payByTest(work, checkout)
}

/** A customer who gets mails. */
async function subscribe(work: Work, ref: string): Promise<void> {
  const { scenario, apps } = work.rig
  const seller = scenario.service.seller(apps.sandbox)
  const [customerKey, key] = [{ headers: newKey() }, { headers: newKey() }]
  const person = { name: 'An Nguyen', email: `${ref}@example.com` }
  const customer = await insist(work, () => seller.post('/api/v1/customers', person, customerKey))
  const body = { external_ref: ref, mode: 'subscription', price_id: apps.sandbox.price, ...URLS }
  const named = { ...body, customer_id: customer.body.data.id }
  const answer = await insist(work, () => seller.post('/api/v1/checkout-sessions', named, key))
  await payByTest(work, await opened(work, 'sandbox', ref, answer))
}

interface Opened extends Purchase {
  readonly token: string
}

/** An answer of success means that the row is there. */
async function opened({ journal }: Work, app: AppName, ref: string, { body }: Response): Promise<Opened> {
  const { transaction_id: transactionId, checkout_url } = body.data as { transaction_id: number; checkout_url: string }
  const row = await transactionRow(transactionId)
  if (row?.external_ref !== ref) throw new Error(`${ref} was told of transaction ${transactionId}, which is not there`)
  journal.opened += 1
  return { app, ref, transactionId, amount: Number(row.amount), token: checkout_url.slice(-64) }
}

async function payByTest(work: Work, checkout: Opened): Promise<void> {
  await choose(work, checkout, 'test')
  await paid(work, checkout)
}

async function paid({ journal }: Work, { app, ref, transactionId, amount }: Opened): Promise<void> {
  const row = await transactionRow(transactionId)
  if (row?.status !== 'completed') throw new Error(`transaction ${transactionId} of ${ref} is ${row?.status}, not paid`)
  journal.paid.push({ app, ref, transactionId, amount })
}

async function openLive(work: Work, ref: string): Promise<Opened> {
  const { scenario, apps } = work.rig
  const body = { external_ref: ref, mode: 'subscription', price_id: apps.live.price, ...URLS }
  const options = { headers: newKey() }
  const call = () => scenario.service.seller(apps.live).post('/api/v1/checkout-sessions', body, options)
  return opened(work, 'live', ref, await insist(work, call))
}

/** Half of Stripe's notifications are lost: a look-up finds the payment. */
async function payByCard(work: Work, ref: string): Promise<void> {
  const { stripe, clock, scenario } = work.rig
  const checkout = await openLive(work, ref)
  const url = await choose(work, checkout, 'card')
  const session = stripe.sessions.find((candidate) => candidate.url === url)
  if (!session) throw new Error(`${ref} was sent to ${url}, which Stripe does not know`)
  stripe.pay(session)
  if (work.random() < 0.5) return void work.journal.paid.push(checkout)
  const id = `evt_${checkout.transactionId}`
  await insist(work, () => {
    const facts = sessionFacts(session)
    const { body, headers } = signedEvent(
      CARD.webhookSecret,
      unixSeconds(clock.now()),
      'checkout.session.completed',
      facts,
      id,
    )
    return scenario.service.call('POST', '/api/v1/webhooks/card-provider', { raw: body, headers })
  })
  await paid(work, checkout)
}

async function payByPayos(work: Work, ref: string): Promise<void> {
  const { payos, scenario } = work.rig
  const checkout = await openLive(work, ref)
  const url = await choose(work, checkout, 'payos')
  const link = payos.links.find(({ id }) => url.endsWith(`/${id}`))
  if (!link) throw new Error(`${ref} was sent to ${url}, which PayOS does not know`)
  const transfer = payos.transfer(link, checkout.amount)
  if (work.random() < 0.5) return void work.journal.paid.push(checkout)
  const raw = JSON.stringify(payosNotification(PAYOS_KEYS.checksumKey, link, transfer))
  const path = '/api/v1/webhooks/bank-transfer-provider'
  await insist(work, () => scenario.service.call('POST', path, { raw, headers: JSON_TYPE }))
  await paid(work, checkout)
}

async function payByTransfer(work: Work, ref: string): Promise<void> {
  const { scenario, forwardCode } = work.rig
  const checkout = await openLive(work, ref)
  const page = await choose(work, checkout, 'bank_transfer')
  await insist(work, () => scenario.service.call('GET', page))
  const row = await transactionRow(checkout.transactionId)
  const transfer = transferFor({ transferCode: row?.transfer_code ?? null } as Parameters<typeof transferFor>[0])
  const mail = await genuineMail('ACB', { ...transfer, amount: checkout.amount })
  await insist(work, () => relayMail(scenario.service, mail, `bank+${forwardCode}@pay.example`))
  await paid(work, checkout)
}

/** Returns where the payer is led. */
async function choose(work: Work, { token }: Opened, method: string): Promise<string> {
  const raw = JSON.stringify({ payment_method: method })
  const { service } = work.rig.scenario
  const answer = await insist(work, () =>
    service.call<Envelope<Redirect>>('POST', `/checkout/${token}/resolve`, { raw, headers: JSON_TYPE }),
  )
  return answer.body.data.redirect_url
}

/** Every other customer who got a mail pays by the link in it. */
function renewals(work: Work): Promise<void>[] {
  const { inbox } = work.rig
  const fresh = inbox.mails.slice(work.journal.mailsRead)
  work.journal.mailsRead = inbox.mails.length
  const reminders = fresh.filter(({ parsed }) => parsed.messageId?.startsWith('<reminder.'))
  return reminders.filter(() => work.random() < 0.5).map((mail) => renew(work, tokenIn(mail)))
}

async function renew(work: Work, token: string): Promise<void> {
  const before = await subscriptionRow(token)
  const raw = JSON.stringify({ payment_method: 'test', period_end: before.end })
  const { service } = work.rig.scenario
  const answer = await insist(
    work,
    () => service.call('POST', `/renew/${token}`, { raw, headers: JSON_TYPE }),
    // An earlier call was answered 503 and had paid: the page that the payer saw is out of date.
    ({ body }) => body.error?.field === 'period_end',
  )
  const after = await subscriptionRow(token)
  if (!(after.end > before.end)) throw new Error(`a renewal was answered ${answer.status}, and nothing was extended`)
  work.journal.renewed.push(before.ref)
}

/** Now and then the operator refunds what a payer paid some steps ago. */
function refunds(work: Work): Promise<void>[] {
  const { paid, refunded } = work.journal
  if (work.random() > 0.25) return []
  const candidate = paid.find((purchase) => purchase.app === 'live' && !refunded.includes(purchase))
  return candidate ? [refund(work, candidate)] : []
}

async function refund({ rig, journal }: Work, purchase: Purchase): Promise<void> {
  const { transactionId } = purchase
  const row = await transactionRow(transactionId)
  // The notification was lost, and nobody has looked yet.
  if (row?.status !== 'completed') return
  const manual = row.provider_code === 'stripe' ? {} : { reference: `manual ${transactionId}` }
  const command = { transactionId, action: 'refund', note: 'asked for', ...manual } as const
  await again(rig, journal, async () => {
    if ((await refundsOf(transactionId)) === 0) await resolveTransaction(rig.scenario.service.ctx, LINH, command)
  })
  journal.refunded.push(purchase)
}

async function refundsOf(transactionId: number): Promise<number> {
  const [row] = await rows<{ count: string }>(
    `SELECT COUNT(*) AS count FROM refunds r JOIN allocations a ON a.payment_id = r.payment_id
     WHERE a.transaction_id = ? AND r.amount > 0`,
    [transactionId],
  )
  return Number(row?.count)
}

/** Calls until it is answered with success. Each call after a refusal is a second later, as `Retry-After` says. */
async function insist<Data>(
  { rig, journal }: Work,
  call: () => Promise<Answer<Data>>,
  isDone: (answer: Answer<Data>) => boolean = () => false,
): Promise<Answer<Data>> {
  for (let tries = 1; tries <= MOST_TRIES; tries += 1) {
    const startedMs = performance.now()
    const answer = await call()
    journal.slowestMs = Math.max(journal.slowestMs, Math.round(performance.now() - startedMs))
    if (answer.status < 300 || isDone(answer)) return answer
    const refusal = `${answer.status} ${answer.body.error?.code ?? ''}`
    if (!RETRYABLE.test(refusal)) throw new Error(`a call was answered ${refusal}: ${answer.text.slice(0, 300)}`)
    journal.refusals[refusal] = (journal.refusals[refusal] ?? 0) + 1
    rig.clock.advance('1s')
  }
  throw new Error(`a call was refused ${MOST_TRIES} times`)
}

/** Work without an HTTP answer, repeated while the database is what failed. */
async function again(rig: LineRig, journal: Journal, work: () => Promise<unknown>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await work()
      return
    } catch (error) {
      if (error instanceof AppError || !isDatabaseBusy(error) || tries > MOST_TRIES) throw error
      journal.refusals['job'] = (journal.refusals['job'] ?? 0) + 1
      rig.clock.advance('1s')
    }
  }
}

const newKey = () => ({ 'Idempotency-Key': randomUUID() })

/** Over a connection without faults. */
export function rows<Row>(sql: string, params: unknown[] = []): Promise<Row[]> {
  return testDatabase().db.query<Row[]>(sql, params)
}

interface TransactionRow {
  readonly external_ref: string
  readonly status: string
  readonly amount: string | number
  readonly transfer_code: string | null
  readonly provider_code: string | null
}

async function transactionRow(id: number): Promise<TransactionRow | undefined> {
  const [row] = await rows<TransactionRow>('SELECT * FROM transactions WHERE id = ?', [id])
  return row
}

async function subscriptionRow(token: string): Promise<{ ref: string; end: string }> {
  const [row] = await rows<{ ref: string; end: string }>(
    `SELECT external_ref AS ref, DATE_FORMAT(current_period_end, '%Y-%m-%d %H:%i:%s') AS end FROM subscriptions WHERE renewal_token = ?`,
    [token],
  )
  if (!row) throw new Error('a mail carries a link that is not there')
  return row
}
