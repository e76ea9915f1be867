import { getApp, type App } from '#apps/store.ts'
import { findSessionOfTransaction } from '#checkout/store.ts'
import type { Context } from '#context.ts'
import { listAuditEntries } from '#commands/store.ts'
import { listProviderSessionsOf } from '#providers/store.ts'
import { listRemindersOf } from '#renewals/store.ts'
import { realTime } from '#apps/app-time.ts'
import { notFound } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull, type AppTime, type RealTime } from '#shared/time.ts'
import { findApplicationOfTransaction, findSubscriptionOfEndUser } from '#subscriptions/store.ts'
import { presentTransaction } from '#transactions/present.ts'
import { findTransaction, listPayments, listProviderEvents, type Transaction } from '#transactions/store.ts'
import { listAttempts, listEventsOfTransaction, type Event } from '#webhooks/store.ts'

/** One thing that happened; `at` is real time, in UTC. */
export interface StoryLine {
  readonly at: string
  /** `checkout`, `money`, `provider`, `effect`, `event`, `webhook`, `mail`, `audit` */
  readonly part: string
  readonly text: string
}

/** A payment's whole story (issue of support: what came, what it did, who was told, who decided). */
export interface TransactionStory {
  readonly app: { readonly app_id: number; readonly name: string; readonly sandbox: boolean }
  readonly transaction: Record<string, unknown>
  readonly timeline: readonly StoryLine[]
}

interface Moment {
  readonly at: RealTime
  readonly part: string
  readonly text: string
}

/** Gathers all that is known of a transaction into one timeline; throws `not_found`. */
export async function tellTransaction(ctx: Context, transactionId: number): Promise<TransactionStory> {
  const transaction = await findTransaction(ctx.db, transactionId)
  if (!transaction) throw notFound(`transaction ${transactionId}`)
  const app = await getApp(ctx.db, transaction.appId)
  const parts = await Promise.all([
    checkoutMoments(ctx, app, transaction),
    moneyMoments(ctx, transaction),
    effectMoments(ctx, app, transaction),
    toldMoments(ctx, transaction),
    mailMoments(ctx, transaction),
    auditMoments(ctx, transaction),
  ])
  const moments = parts.flat().sort((a, b) => a.at.getTime() - b.at.getTime())
  return {
    app: { app_id: app.id, name: app.name, sandbox: app.isSandbox },
    transaction: presentTransaction(transaction),
    timeline: moments.map(({ at, part, text }) => ({ at: formatTimestamp(at), part, text })),
  }
}

async function checkoutMoments(ctx: Context, app: App, transaction: Transaction): Promise<Moment[]> {
  const session = await findSessionOfTransaction(ctx.db, transaction.id)
  const opened = session
    ? `${session.origin} ${formatId('cs', session.id)} opened for ${transaction.externalRef}: ${transaction.amount} ${transaction.currency}, link until ${formatTimestamp(session.expiresAt)}`
    : `opened for ${transaction.externalRef}: ${transaction.amount} ${transaction.currency}`
  const bankPage = transaction.bankPageOpenedAt
    ? [
        {
          at: realTime(app, transaction.bankPageOpenedAt),
          part: 'checkout',
          text: `bank page opened, transfer code ${transaction.transferCode ?? '-'}`,
        },
      ]
    : []
  return [{ at: realTime(app, transaction.createdAt), part: 'checkout', text: opened }, ...bankPage]
}

async function moneyMoments(ctx: Context, { id }: Transaction): Promise<Moment[]> {
  const [payments, events, sessions] = await Promise.all([
    listPayments(ctx.db, id),
    listProviderEvents(ctx.db, id),
    listProviderSessionsOf(ctx.db, id),
  ])
  return [
    ...sessions.map((session) => ({
      at: session.createdAt,
      part: 'provider',
      text: `opened at ${session.provider} (${session.reference ?? 'no answer yet'}), now ${session.status}`,
    })),
    ...events.map((event) => ({
      at: event.receivedAt,
      part: 'provider',
      text: `${event.provider} told ${event.eventType}: ${event.outcome}${event.note === null ? '' : ` (${event.note})`}`,
    })),
    ...payments.flatMap((payment) => [
      {
        at: payment.receivedAt,
        part: 'money',
        text: `received ${payment.amount} ${payment.currency} by ${payment.provider}, reference ${payment.reference}, paid ${formatTimestamp(payment.paidAt)}`,
      },
      ...(payment.refundedAt
        ? [
            {
              at: payment.refundedAt,
              part: 'money',
              text: `refunded ${payment.amount} ${payment.currency}, reference ${payment.refundReference ?? '-'}`,
            },
          ]
        : []),
    ]),
  ]
}

async function effectMoments(ctx: Context, app: App, transaction: Transaction): Promise<Moment[]> {
  const application = await findApplicationOfTransaction(ctx.db, transaction.id)
  const flagged = transaction.flaggedAt
    ? [{ at: realTime(app, transaction.flaggedAt), part: 'effect', text: `flagged ${transaction.flagReason ?? ''}` }]
    : []
  const completed = transaction.completedAt
    ? [
        {
          at: realTime(app, transaction.completedAt),
          part: 'effect',
          text: application ? effectText(application) : 'completed, nothing applied to a subscription',
        },
      ]
    : []
  return [...completed, ...flagged]
}

function effectText(application: {
  readonly kind: string
  readonly endBefore: AppTime | null
  readonly endAfter: AppTime | null
}): string {
  const before = formatTimestampOrNull(application.endBefore) ?? 'none'
  return `completed; period ${application.kind}: ${before} -> ${formatTimestampOrNull(application.endAfter) ?? 'lifetime'}`
}

async function toldMoments(ctx: Context, { id }: Transaction): Promise<Moment[]> {
  const moments: Moment[] = []
  for (const event of await listEventsOfTransaction(ctx.db, id)) {
    moments.push({
      at: event.writtenAt,
      part: 'event',
      text: `${formatId('evt', event.id)} ${event.eventType}: ${standingOf(event)}`,
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

/** Tells the outcome by itself: the single attempts are not kept for ever. */
function standingOf({ deliveryStatus, deliveredAt, attempts }: Event): string {
  const at = deliveryStatus === 'delivered' && deliveredAt ? ` ${formatTimestamp(deliveredAt)}` : ''
  return attempts === 0 ? deliveryStatus : `${deliveryStatus}${at}, attempts: ${attempts}`
}

async function mailMoments(ctx: Context, transaction: Transaction): Promise<Moment[]> {
  const subscription =
    transaction.mode === 'subscription' ? await findSubscriptionOfEndUser(ctx.db, transaction.endUserId) : null
  if (!subscription) return []
  const reminders = await listRemindersOf(ctx.db, [subscription.id])
  return reminders.map((reminder) => ({
    at: reminder.claimedAt,
    part: 'mail',
    text: `${reminder.stage === 0 ? 'expired notice' : `${reminder.stage}-day reminder`} for ${formatTimestamp(reminder.periodEnd)}: ${reminder.status}`,
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
