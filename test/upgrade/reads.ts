import type { Transaction } from '../../client/src/types.ts'
import type { SellerApp, World } from './world.ts'

/** What an app's seller and its operators read: an upgrade must not change any of it. */
export interface AppReads {
  readonly subscriptions: readonly Readonly<Record<string, unknown>>[]
  readonly transactions: readonly Readonly<Record<string, unknown>>[]
  /** Received and refunded by currency. */
  readonly sums: readonly Readonly<Record<string, unknown>>[]
  /** Amounts on flagged transactions that wait for an operator, by currency. */
  readonly flagged: Readonly<Record<string, number>>
  /** Number of events by type. */
  readonly events: Readonly<Record<string, number>>
}

const SUBSCRIPTION = [
  'plan_ref',
  'price_id',
  'customer_id',
  'status',
  'current_period_end',
  'in_trial',
  'trial_ends_at',
]
const TRANSACTION = [
  ...['transaction_id', 'external_ref', 'mode', 'plan_ref', 'price_id', 'paygate_customer_id', 'amount'],
  ...['amount_received', 'currency', 'status', 'provider_code', 'flagged', 'flag_reason', 'created_at', 'completed_at'],
]

/** Reads an app through the API if it takes signed calls, and through the command line. */
export async function readApp(world: World, app: SellerApp): Promise<AppReads> {
  const { db } = world.service.ctx
  const anchors: { ref: string; day: number | null }[] = await db.query(
    'SELECT external_ref AS ref, anchor_day AS day FROM subscriptions WHERE app_id = ? ORDER BY external_ref',
    [app.id],
  )
  const subscriptions = []
  for (const { ref, day } of anchors) {
    const shown = await readSubscription(world, app, ref)
    subscriptions.push({ external_ref: ref, ...only(shown, SUBSCRIPTION), anchor_day: day })
  }
  const listed = await world.cli('transaction', 'list', '--app', app.id, '--limit', '1000')
  const { revenue } = await world.cli('stats', app.id)
  const events: { type: string; count: string }[] = await db.query(
    'SELECT event_type AS type, COUNT(*) AS count FROM events WHERE app_id = ? GROUP BY event_type ORDER BY event_type',
    [app.id],
  )
  return {
    subscriptions,
    transactions: listed.map((row: object) => only(row, TRANSACTION)),
    sums: revenue.map((row: object) => only(row, ['currency', 'received', 'refunded', 'net'])),
    flagged: flaggedSums(listed),
    events: Object.fromEntries(events.map(({ type, count }) => [type, Number(count)])),
  }
}

async function readSubscription(world: World, app: SellerApp, ref: string): Promise<object> {
  const path = `/api/v1/subscriptions/${encodeURIComponent(ref)}` as const
  return app.secret === '' ? world.cli('subscription', 'show', app.id, ref) : world.api(app, 'get', path)
}

interface Flagged {
  readonly flag_reason: string
  readonly amount: number
  readonly amount_received: number
  readonly currency: string
}

function flaggedSums(transactions: readonly Transaction[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const transaction of transactions.filter(({ flagged }) => flagged)) {
    const { flag_reason: reason, amount, amount_received: received, currency } = transaction as Flagged
    const waiting = reason === 'duplicate_payment' ? Math.max(received - amount, 0) : received
    sums[currency] = (sums[currency] ?? 0) + waiting
  }
  return sums
}

function only(row: object, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(fields.map((field) => [field, (row as Record<string, unknown>)[field]]))
}
