import { getApp, type App } from '#apps/store.ts'
import { findSessionOfTransaction } from '#checkout/store.ts'
import type { Context } from '#context.ts'
import { findClockOffsetAt, listAuditEntries } from '#commands/store.ts'
import { databaseNow } from '#db/database-now.ts'
import {
  listAllocationsOfTransaction,
  listPaymentsOf,
  listRefundedShares,
  listRefundsOfPayment,
  listRefundsOfTransaction,
  type Allocation,
  type Payment,
  type Refund,
} from '#payments/store.ts'
import { hasFailedLater } from '#payments/refund-state.ts'
import { listProviderSessionsOf } from '#providers/store.ts'
import { listRemindersOf } from '#mails/reminders/store.ts'
import { mailState } from '#mails/claims/store.ts'
import { toRealTime } from '#apps/app-time.ts'
import { formatId } from '#shared/ids.ts'
import { englishMoney } from '#shared/money.ts'
import { formatTimestamp, formatUtc, type AppTime, type RealTime } from '#shared/time.ts'
import { findLineOfTransaction, findSubscriptionOfEndUser, type LedgerLine } from '#subscriptions/store.ts'
import { presentTransaction } from '#transactions/present.ts'
import {
  getShownTransaction,
  listChanges,
  listProviderEvents,
  type ProviderEvent,
  type Transaction,
  type TransactionChange,
} from '#transactions/store.ts'
import { listReceiptsOf } from '#transactions/receipts/store.ts'
import { listAttempts } from '#webhooks/attempts/store.ts'
import type { EventType } from '#webhooks/events.ts'
import { listEventsOfTransaction, type Event } from '#webhooks/store.ts'

/** One thing that happened; `at` is real time, in UTC. The text marks times of a test clock. */
export interface TimelineEntry {
  readonly at: string
  /** `checkout`, `money`, `provider`, `effect`, `event`, `webhook`, `mail`, `audit` */
  readonly part: string
  readonly text: string
}

/** What happened to a transaction: the money received, its effect, what was sent to whom, and who decided. */
export interface TransactionTimeline {
  readonly app: {
    readonly app_id: number
    readonly name: string
    readonly sandbox: boolean
    /** How far the test clock was ahead of real time when the transaction was created and completed. */
    readonly clock_offset_seconds: number
  }
  readonly transaction: ReturnType<typeof presentTransaction>
  readonly timeline: readonly TimelineEntry[]
}

interface Moment {
  readonly at: RealTime
  readonly part: string
  readonly text: string
}

/** Gathers all that is known of a transaction; throws `not_found`. */
export async function getTransactionTimeline(ctx: Context, transactionId: number): Promise<TransactionTimeline> {
  const transaction = await getShownTransaction(ctx.db, transactionId)
  const app = await getApp(ctx.db, transaction.appId)
  const parts = await Promise.all([
    checkoutMoments(ctx, app, transaction),
    providerMoments(ctx, transaction),
    moneyMoments(ctx, transaction),
    effectMoments(ctx, app, transaction),
    eventMoments(ctx, app, transaction),
    reminderMoments(ctx, app, transaction),
    receiptMoments(ctx, transaction),
    auditMoments(ctx, transaction),
  ])
  const moments = parts.flat().sort((a, b) => a.at.getTime() - b.at.getTime())
  return {
    app: {
      app_id: app.id,
      name: app.name,
      sandbox: app.isSandbox,
      clock_offset_seconds: Math.round(app.clockOffsetMs / 1000),
    },
    transaction: presentTransaction(transaction),
    timeline: moments.map(({ at, part, text }) => ({ at: formatTimestamp(at), part, text })),
  }
}

async function checkoutMoments(ctx: Context, app: App, transaction: Transaction): Promise<Moment[]> {
  const session = await findSessionOfTransaction(ctx.db, transaction.id)
  const opened = session
    ? `${session.origin} ${formatId('cs', session.id)} opened for ${transaction.externalRef}: ${englishMoney(transaction.amount, transaction.currency)}, link until ${ownTime(app, session.expiresAt)}`
    : `opened for ${transaction.externalRef}: ${englishMoney(transaction.amount, transaction.currency)}`
  // The test clock may have been moved since.
  const offset = app.isSandbox ? await findClockOffsetAt(ctx.db, app.id, transaction.createdAt) : null
  const clock = offset === null ? app : { clockOffsetMs: offset }
  return [{ at: toRealTime(clock, transaction.createdAt), part: 'checkout', text: opened }]
}

async function providerMoments(ctx: Context, { id }: Transaction): Promise<Moment[]> {
  const [events, sessions] = await Promise.all([listProviderEvents(ctx.db, id), listProviderSessionsOf(ctx.db, id)])
  return [
    ...sessions.map((session) => ({
      at: session.createdAt,
      part: 'provider',
      text: `opened at ${session.provider} (${session.reference ?? 'no answer yet'}), now ${session.status}`,
    })),
    ...events.filter(isFirstReport).map((event) => ({
      at: event.receivedAt,
      part: 'provider',
      text: `${receivedText(event)}${event.note === null ? '' : ` (${event.note})`}`,
    })),
  ]
}

/** A bank mail is recorded under two ids: that of the message and that of the money. */
function isFirstReport(event: ProviderEvent, index: number, all: readonly ProviderEvent[]): boolean {
  const isSame = (other: ProviderEvent): boolean =>
    other.receivedAt.getTime() === event.receivedAt.getTime() && receivedText(other) === receivedText(event)
  return all.findIndex(isSame) === index
}

function receivedText({ provider, eventType, outcome }: ProviderEvent): string {
  const isMail = eventType.startsWith('bank_mail.')
  if (outcome === 'applied')
    return isMail ? 'bank e-mail received and booked' : `${provider} reported the payment: ${eventType}`
  return `${isMail ? 'bank e-mail received' : `${provider} sent ${eventType}`}: ${outcome}`
}

async function moneyMoments(ctx: Context, { id, currency }: Transaction): Promise<Moment[]> {
  const [payments, allocations, refunds] = await Promise.all([
    listPaymentsOf(ctx.db, id),
    listAllocationsOfTransaction(ctx.db, id),
    listRefundsOfTransaction(ctx.db, id),
  ])
  const known = new Map(payments.map((payment) => [payment.id, payment]))
  const moved = allocations.flatMap((allocation) => {
    const payment = known.get(allocation.paymentId)
    const text = payment && allocationText(allocation, payment, currency)
    return text ? [{ at: allocation.at, part: 'money', text: `${text}${byWhom(allocation)}` }] : []
  })
  const all = [...refunds, ...(await listMadeAgain(ctx, refunds))]
  return [...moved, ...all.flatMap((refund) => refundMoments(refund, currency))]
}

type ShownRefund = Refund & { readonly taken: number; readonly provider: string }

/** The refunds by `payment refund` of money that failed refunds of the transaction left unallocated (R131). */
async function listMadeAgain(ctx: Context, refunds: readonly ShownRefund[]): Promise<ShownRefund[]> {
  const failed = refunds.filter(hasFailedLater)
  const again = new Map<number, ShownRefund>()
  for (const { paymentId, provider, endedAt } of failed)
    for (const refund of await listRefundsOfPayment(ctx.db, paymentId)) {
      const isLater = endedAt !== null && refund.createdAt >= endedAt
      if (isLater && (await listRefundedShares(ctx.db, refund.id)).length === 0)
        again.set(refund.id, { ...refund, taken: refund.amount, provider })
    }
  return [...again.values()]
}

/** Null if the refund has an entry of its own. */
function allocationText({ cause, amount, paymentId }: Allocation, payment: Payment, currency: string): string | null {
  const { provider, reference, paidAt } = payment
  const money = englishMoney(Math.abs(amount), currency)
  const named = `payment ${paymentId} by ${provider}, reference ${reference}, paid ${formatUtc(paidAt)}`
  switch (cause) {
    case 'booked':
      return `received ${money}: ${named}`
    case 'matched':
      return `matched ${money}: ${named}`
    case 'moved':
      return `moved ${money} ${amount < 0 ? 'away from' : 'to'} this transaction: ${named}`
    case 'refund':
    case 'refund_failed':
      return null
  }
}

function refundMoments(refund: ShownRefund, currency: string): Moment[] {
  const { id, taken, provider, status, reference, failure, createdAt, endedAt } = refund
  const money = `${englishMoney(taken, currency)} of payment ${refund.paymentId} by ${provider}`
  const named = reference === null ? '' : `, reference ${reference}`
  const outcome = status === 'failed' ? `failed (${failure ?? 'no reason given'})` : status
  const ordered = `refund ${id} of ${money} ordered${byWhom(refund)}, now ${status}`
  const ended = `refund ${id} of ${money} ${outcome}${named}`
  // One that ended at once has one entry.
  if (endedAt?.getTime() === createdAt.getTime())
    return [{ at: createdAt, part: 'money', text: `${ended}${byWhom(refund)}` }]
  const moments = [{ at: createdAt, part: 'money', text: ordered }]
  if (endedAt) moments.push({ at: endedAt, part: 'money', text: ended })
  return moments
}

function byWhom({ actor, note }: { readonly actor: string | null; readonly note: string | null }): string {
  return actor === null ? '' : `, by ${actor} ("${note ?? ''}")`
}

async function effectMoments(ctx: Context, app: App, transaction: Transaction): Promise<Moment[]> {
  const line = await findLineOfTransaction(ctx.db, transaction.id)
  const changes = await listChanges(ctx.db, transaction.id)
  const completion = await plainCompletion(ctx, transaction, changes)
  return [...changes, ...completion].map((change) => ({
    at: change.at,
    part: change.kind === 'bank_page' ? 'checkout' : 'effect',
    text: `${changeText(app, change, transaction, line)}${byWhom(change)}`,
  }))
}

/** Events that may be written before the transaction completes, or long after. */
const OTHER_EVENTS: readonly string[] = ['transaction.flagged', 'transaction.refunded'] satisfies EventType[]

/** A completion without a decision or a flag is recorded by no change, but its own event was written at the same time. */
async function plainCompletion(
  ctx: Context,
  { id, completedAt }: Transaction,
  changes: readonly TransactionChange[],
): Promise<Pick<TransactionChange, 'at' | 'kind' | 'flagReason' | 'actor' | 'note'>[]> {
  if (completedAt === null || changes.some(({ kind }) => kind === 'completed')) return []
  const events = await listEventsOfTransaction(ctx.db, id)
  const own = events.find(({ eventType }) => !OTHER_EVENTS.includes(eventType))
  return own ? [{ at: own.writtenAt, kind: 'completed', flagReason: null, actor: null, note: null }] : []
}

function changeText(
  app: App,
  { kind, flagReason }: Pick<TransactionChange, 'kind' | 'flagReason'>,
  { transferCode }: Transaction,
  line: LedgerLine | null,
): string {
  switch (kind) {
    case 'completed':
      return line ? effectText(app, line) : 'completed, nothing applied to a subscription'
    case 'refunded':
      return 'ended as refunded'
    case 'flagged':
      return `flagged ${flagReason ?? ''}`
    case 'unflagged':
      return `flag ${flagReason ?? ''} cleared`
    case 'bank_page':
      return `bank page opened, transfer code ${transferCode ?? '-'}`
  }
}

function effectText(app: App, { kind, endBefore, endAfter }: LedgerLine): string {
  const before = endBefore ? ownTime(app, endBefore) : 'none'
  return `completed; period ${kind}: ${before} → ${endAfter ? ownTime(app, endAfter) : 'lifetime'}`
}

/** A time by the app's own clock. It is marked if the test clock was moved, since the entries are in real time. */
function ownTime({ clockOffsetMs }: App, instant: AppTime): string {
  return `${formatUtc(instant)}${clockOffsetMs === 0 ? '' : ' (test clock)'}`
}

async function eventMoments(ctx: Context, app: App, { id }: Transaction): Promise<Moment[]> {
  const moments: Moment[] = []
  for (const event of await listEventsOfTransaction(ctx.db, id)) {
    moments.push({
      at: event.writtenAt,
      part: 'event',
      text: `${formatId('evt', event.id)} ${event.eventType}: ${standingOf(event, app)}`,
    })
    for (const attempt of await listAttempts(ctx.db, event.id)) {
      const result = attempt.error ?? `acknowledged with ${attempt.httpStatus ?? '-'}`
      moments.push({
        at: attempt.startedAt,
        part: 'webhook',
        text: `${formatId('evt', event.id)} attempt ${attempt.attempt}: ${result} in ${attempt.durationMs} ms`,
      })
    }
  }
  return moments
}

function unconfiguredReason({ webhookUrl, webhookSecret }: App): string {
  if (webhookUrl === null) return 'the app has no webhook URL'
  return webhookSecret === null ? 'the app has no webhook secret' : 'the app had no webhook URL or secret then'
}

/** Summarizes the attempts, because their own entries disappear: attempts are deleted after 400 days. */
function standingOf({ deliveryStatus, deliveredAt, attempts }: Event, app: App): string {
  if (deliveryStatus === 'not_configured') return `not sent (${unconfiguredReason(app)})`
  const at = deliveryStatus === 'delivered' && deliveredAt ? ` ${formatUtc(deliveredAt)}` : ''
  return attempts === 0 ? deliveryStatus : `${deliveryStatus}${at}, attempts: ${attempts}`
}

async function reminderMoments(ctx: Context, app: App, transaction: Transaction): Promise<Moment[]> {
  const subscription =
    transaction.mode === 'subscription' ? await findSubscriptionOfEndUser(ctx.db, transaction.endUserId) : null
  if (!subscription) return []
  const now = await databaseNow(ctx, ctx.db)
  return (await listRemindersOf(ctx.db, [subscription.id])).map((reminder) => ({
    at: reminder.claimedAt,
    part: 'mail',
    text: `${reminder.stage === 0 ? 'expired notice' : `${reminder.stage}-day reminder`} for ${ownTime(app, reminder.periodEnd)}: ${mailState(reminder, now)}`,
  }))
}

async function receiptMoments(ctx: Context, { id, currency }: Transaction): Promise<Moment[]> {
  const now = await databaseNow(ctx, ctx.db)
  return (await listReceiptsOf(ctx.db, [id])).map((receipt) => ({
    at: receipt.sentAt ?? receipt.createdAt,
    part: 'mail',
    text: `receipt ${receipt.id} of ${englishMoney(receipt.amount, currency)} ${receipt.kind}: ${mailState(receipt, now)}`,
  }))
}

async function auditMoments(ctx: Context, { id }: Transaction): Promise<Moment[]> {
  const entries = await listAuditEntries(ctx.db, { subject: `transaction ${id}`, limit: 100 })
  return entries.map((entry) => ({
    at: entry.at,
    part: 'audit',
    text: `${entry.actor}: ${entry.action}${entry.reason === null ? '' : ` ("${entry.reason}")`}`,
  }))
}
