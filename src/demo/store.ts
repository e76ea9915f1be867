import { apps } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { bigint } from '#db/columns.ts'
import type { Queries } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import { DEMO_KEY } from './mark.ts'

/**
 * The only place that deletes rows of money, and only those of the demo, whose money is not real: the caller has made sure by `closeDemo`
 * that the app is the demo, and by `hasOutsideMoney` that no provider or bank knows of it. The audit log stays.
 */
const HANGING = [
  ['delivery_attempts', 'id', 'event_id IN (SELECT id FROM events WHERE app_id = ?)'],
  ['prices', 'id', 'plan_id IN (SELECT id FROM plans WHERE app_id = ?)'],
  ['realtime_writes', 'subscription_id', 'app_id = ?'],
] as const
const OF_THE_APP = [
  ...['app_logos', 'payment_methods', 'provider_accounts', 'provider_pauses', 'bank_account_assignments'],
  ...[
    'events',
    'reminders',
    'receipts',
    'daily_mails',
    'idempotency_keys',
    'checkout_sessions',
    'allocations',
    'refunds',
    'approvals',
  ],
  ...['payments', 'payment_applications', 'transaction_changes', 'transactions', 'trial_grants', 'subscriptions'],
  ...['promotion_uses', 'promotions', 'end_users', 'customers', 'plans'],
]
const ROWS: readonly (readonly [table: string, key: string, condition: string])[] = [
  ...HANGING,
  ...OF_THE_APP.map((table) => [table, 'id', 'app_id = ?'] as const),
  ['apps', 'id', 'id = ?'],
]
const BATCH = 500

/** Disables the demo and locks its row; false if the app is not the demo, or not a sandbox. */
export async function closeDemo(tx: Tx, appId: number): Promise<boolean> {
  const changes = { disabledAt: tx.now, updatedAt: tx.now }
  return (await tx.update(apps, { id: appId, apiKey: DEMO_KEY, isSandbox: true }, changes)) === 1
}

/** Whether a provider or a bank knows of the app: it was used with another method than `provider`, which moves no money. */
export async function hasOutsideMoney(db: Queries, appId: number, provider: string): Promise<boolean> {
  const found = await db.one(
    shape({ found: bigint() }),
    `SELECT 1 AS found FROM payments WHERE app_id = ? AND provider <> ?
     UNION ALL SELECT 1 FROM allocations l JOIN payments p ON p.id = l.payment_id WHERE l.app_id = ? AND p.provider <> ?
     UNION ALL SELECT 1 FROM provider_sessions WHERE app_id = ?
     UNION ALL SELECT 1 FROM provider_events WHERE app_id = ?
     UNION ALL SELECT 1 FROM bank_mails WHERE app_id = ? LIMIT 1`,
    [appId, provider, appId, provider, appId, appId, appId],
  )
  return found !== null
}

/**
 * Deletes all rows of the demo except the audit log's; returns how many of each table. Deletes by id, since a condition without an index
 * would lock other apps' rows.
 */
export async function deleteDemo(tx: Tx, appId: number): Promise<Record<string, number>> {
  const deleted: Record<string, number> = {}
  for (const [table, key, condition] of ROWS) {
    const rows = await tx.all(
      shape({ id: bigint() }),
      `SELECT ${key} AS id FROM ${table} WHERE ${condition} ORDER BY ${key}`,
      [appId],
    )
    for (let from = 0; from < rows.length; from += BATCH) {
      const ids = rows.slice(from, from + BATCH).map(({ id }) => id)
      await tx.run(`DELETE FROM ${table} WHERE ${key} IN (?)`, [ids])
    }
    deleted[table] = rows.length
  }
  return deleted
}
