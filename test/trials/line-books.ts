import { operator } from '#commands/caller.ts'
import { getApp } from '#apps/store.ts'
import { resyncNodes } from '#subscriptions/resync-node.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { verifies, type ReceivedWebhook } from '../support/receiver.ts'
import { rows, runJobs, type Work } from './line-load.ts'
import type { LineRig } from './line-rig.ts'
import { compareNode } from './realtime-outage.ts'

export interface LineBooks {
  readonly payments: number
  readonly refunds: number
  readonly webhooks: number
  /** Webhooks that came again, with the same id and the same bytes. */
  readonly repeated: number
  readonly mails: number
  /** Mails that may have been sent: shown to operators. */
  readonly unconfirmed: number
  readonly nodes: number
}

/** Longer than the longest pause of any job: refunds are looked up every six hours. */
const QUIET_HOURS = 7
const QUIET_ROUNDS = 8

/** Lets all that waits come to its end, without faults; operators re-sync the nodes whose write failed. */
export async function comeToRest(work: Work): Promise<void> {
  const { rig } = work
  rig.begin(null)
  for (let round = 0; round < QUIET_ROUNDS; round += 1) {
    rig.clock.advance(`${QUIET_HOURS}h`)
    await runJobs(work)
  }
  // What the last sweeps emitted, beside the delivery of that round.
  await runJobs(work)
  rig.bypass()
  const { ctx } = rig.scenario.service
  const app = await getApp(ctx.db, rig.apps.client.app.id)
  const { failed } = await resyncNodes(ctx, operator('linh'), { app, scope: 'failed' })
  if (failed > 0) throw new Error(`${failed} nodes could not be re-synced`)
}

/** Compares what callers were told, and what the others have, with the database. Throws at the first difference. */
export async function checkBooks(work: Work): Promise<LineBooks> {
  const { rig } = work
  await requireCleanLedger(rig.scenario.service.ctx, 'after the faults')
  const payments = await checkMoney(work)
  const refunds = await checkRefunds(work)
  const { webhooks, repeated } = await checkWebhooks(rig)
  const { mails, unconfirmed } = await checkMails(rig)
  const nodes = await checkNodes(rig)
  return { payments, refunds, webhooks, repeated, mails, unconfirmed, nodes }
}

/** Each purchase has one transaction, one payment, one effect and one event, and nobody else has any. */
async function checkMoney({ journal }: Work): Promise<number> {
  const paid = journal.paid.length + journal.renewed.length
  const counts: readonly [string, number, string][] = [
    ['checkouts', journal.opened, `checkout_sessions WHERE origin <> 'renewal'`],
    ['completed transactions', paid, `transactions WHERE status IN ('completed', 'refunded')`],
    ['transactions in full', paid, 'transactions WHERE amount_received = amount'],
    ['flagged transactions', 0, 'transactions WHERE flag_reason IS NOT NULL'],
    ['payments', paid, 'payments'],
    ['effects', paid, 'payment_applications WHERE transaction_id IS NOT NULL'],
    ['events of payments', paid, `events WHERE event_type = 'subscription.updated'`],
    ['payments with two events of one kind', 0, `(${SAME_EVENTS}) AS same`],
  ]
  for (const [what, expected, from] of counts) await expectCount(what, expected, from)
  for (const { transactionId, ref } of journal.paid)
    await expectCount(`payments of ${ref}`, 1, `allocations WHERE transaction_id = ${transactionId} AND amount > 0`)
  return paid
}

const SAME_EVENTS =
  'SELECT transaction_id FROM events WHERE transaction_id IS NOT NULL GROUP BY transaction_id, event_type HAVING COUNT(*) > 1'

async function expectCount(what: string, expected: number, from: string): Promise<void> {
  const [row] = await rows<{ count: string }>(`SELECT COUNT(*) AS count FROM ${from}`)
  if (Number(row?.count) !== expected) throw new Error(`${row?.count} ${what}, not ${expected}`)
}

/** Each refund is one row that succeeded; those of cards are one refund at Stripe, too. */
async function checkRefunds({ rig, journal }: Work): Promise<number> {
  const { length } = journal.refunded
  await expectCount('refunds', length, 'refunds')
  await expectCount('refunds that went through', length, `refunds WHERE status = 'succeeded'`)
  await expectCount('refunded transactions', length, `transactions WHERE status = 'refunded'`)
  const known = await rows<{ reference: string }>(
    `SELECT r.reference FROM refunds r JOIN payments p ON p.id = r.payment_id WHERE p.provider = 'stripe'`,
  )
  const ours = known.map(({ reference }) => reference).sort()
  const theirs = rig.stripe.refunds.map(({ id }) => id).sort()
  if (ours.join() !== theirs.join()) throw new Error(`refunds ${ours.join()}, and at Stripe ${theirs.join()}`)
  return length
}

/** Each event arrived, under one id, with the same bytes each time, signed. */
async function checkWebhooks({ receiver, apps }: LineRig): Promise<{ webhooks: number; repeated: number }> {
  await expectCount('events that were given up', 0, `events WHERE delivery_status = 'failed'`)
  await expectCount('events that still wait', 0, `events WHERE delivery_status <> 'delivered'`)
  const secrets = new Map(Object.values(apps).map(({ app, webhookSecret }) => [app.id, webhookSecret ?? '']))
  const first = new Map<string, ReceivedWebhook>()
  for (const webhook of receiver.received) {
    const known = first.get(webhook.eventId) ?? webhook
    first.set(webhook.eventId, known)
    if (!known.raw.equals(webhook.raw)) throw new Error(`${webhook.eventId} came with other bytes`)
    if (!verifies(secrets.get(webhook.body.app_id) ?? '', webhook.headers, webhook.raw))
      throw new Error(`${webhook.eventId} came with a wrong signature`)
  }
  const events = await rows<{ id: number | string }>('SELECT id FROM events')
  const missing = events.filter(({ id }) => !first.has(`evt_${id}`))
  if (missing.length > 0) throw new Error(`${missing.length} of ${events.length} events never arrived`)
  if (first.size !== events.length) throw new Error(`${first.size} events arrived, and there are ${events.length}`)
  return { webhooks: events.length, repeated: receiver.received.length - first.size }
}

const STAGE_DAYS = [3, 1, 0]
const IS_UNCONFIRMED = `status = 'claimed' AND handed_over_at IS NOT NULL`

/** Each mail arrived at most once, those recorded as sent once; what is neither is shown to operators. */
async function checkMails({ inbox, clock }: LineRig): Promise<{ mails: number; unconfirmed: number }> {
  const arrived = inbox.messageIds
  const twice = arrived.find((id, index) => arrived.indexOf(id) !== index)
  if (twice !== undefined) throw new Error(`the mail ${twice} arrived twice`)
  let unconfirmed = 0
  for (const kind of ['reminders', 'receipts']) {
    await expectCount(`${kind} left over`, 0, `${kind} WHERE status <> 'sent' AND NOT (${IS_UNCONFIRMED})`)
    unconfirmed += (await rows(`SELECT id FROM ${kind} WHERE ${IS_UNCONFIRMED}`)).length
  }
  const recorded = [
    ...(await rows<{ part: string }>(
      `SELECT CONCAT('<reminder.', subscription_id, '.', UNIX_TIMESTAMP(period_end) DIV 1, '.', stage, '@') AS part FROM reminders WHERE status = 'sent'`,
    )),
    ...(await rows<{ part: string }>(
      `SELECT CONCAT('<receipt.', id, '@') AS part FROM receipts WHERE status = 'sent'`,
    )),
  ]
  const lost = recorded.find(({ part }) => !arrived.some((id) => id.startsWith(part)))
  if (lost) throw new Error(`the mail ${lost.part} is recorded as sent, and did not arrive`)
  if (arrived.length > recorded.length + unconfirmed)
    throw new Error(`${arrived.length} mails arrived, ${recorded.length} are sent and ${unconfirmed} unconfirmed`)
  await checkStages(clock.now())
  return { mails: arrived.length, unconfirmed }
}

/** Each customer has a mail for each stage of the present period that has begun. */
async function checkStages(now: Date): Promise<void> {
  const seconds = Math.floor(now.getTime() / 1000)
  for (const days of STAGE_DAYS) {
    await expectCount(
      `customers without the mail ${days} days before the end`,
      0,
      `subscriptions s JOIN customers c ON c.id = s.customer_id
       WHERE UNIX_TIMESTAMP(s.current_period_end) - ${days} * 86400 <= ${seconds}
       AND NOT EXISTS (SELECT 1 FROM reminders r WHERE r.subscription_id = s.id
         AND r.period_end = s.current_period_end AND r.stage = ${days})`,
    )
  }
}

async function checkNodes({ scenario, realtime, apps }: LineRig): Promise<number> {
  const subscriptions = await rows<{ ref: string }>('SELECT external_ref AS ref FROM subscriptions WHERE app_id = ?', [
    apps.client.app.id,
  ])
  for (const { ref } of subscriptions) await compareNode(scenario, realtime, ref)
  return subscriptions.length
}
