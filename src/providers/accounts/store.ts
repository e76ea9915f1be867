import { bigint, exact, id, int, realTime, text } from '#db/columns.ts'
import { where } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import { shape, table, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import { PAYABLE } from '#providers/store.ts'
import type { RealTime } from '#shared/time.ts'

/**
 * An app's credentials at a provider, by version. What was opened under a version is looked up, closed and refunded with it; the version
 * that is not retired opens new sessions. `credentials` is encrypted JSON, null once it was forgotten.
 */
export const providerAccounts = table('provider_accounts', {
  id: id(),
  appId: bigint('app_id'),
  method: exact('method', 32),
  version: int('version'),
  credentials: text('credentials').nullable(),
  createdAt: realTime('created_at'),
  retiredAt: realTime('retired_at').nullable(),
})
export type ProviderAccountRow = Row<typeof providerAccounts>

/** The encryption context of the credentials of an app's payment method, in every version. */
export function credentialsPlace(appId: number, method: string): string {
  return `payment_methods.credentials:${appId}:${method}`
}

export async function insertProviderAccount(tx: Tx, row: Omit<ProviderAccountRow, 'id'>): Promise<number> {
  return tx.insert(providerAccounts, row)
}

export async function findProviderAccount(db: Queries, accountId: number): Promise<ProviderAccountRow | null> {
  return db.one(providerAccounts, 'WHERE id = ?', [accountId])
}

/** The versions of an app's method, the newest first. */
export async function listVersions(db: Queries, appId: number, method: string): Promise<ProviderAccountRow[]> {
  return db.all(providerAccounts, 'WHERE app_id = ? AND method = ? ORDER BY version DESC', [appId, method])
}

export async function retireProviderAccount(tx: Tx, accountId: number): Promise<void> {
  await tx.update(providerAccounts, { id: accountId, retiredAt: null }, { retiredAt: tx.now })
}

/** Erases the credentials, so that nothing can be asked about what was opened under them. */
export async function eraseCredentials(tx: Tx, accountId: number): Promise<void> {
  await tx.update(providerAccounts, { id: accountId }, { credentials: null })
}

/** Whether part of a payment can still be refunded, or is being refunded. */
const IS_REFUNDABLE = `p.amount > (
  SELECT COALESCE(SUM(r.amount), 0) FROM refunds r WHERE r.payment_id = p.id AND r.status = 'succeeded')`

/**
 * The accounts of a method that are in use: those that open new sessions, and those with sessions that may be paid, payments that may be
 * refunded, or refunds made after `mayFailFrom`. By app, the newest first; `appId` null for all apps.
 */
export async function listAccountsInUse(
  db: Queries,
  method: string,
  { appId, mayFailFrom }: { readonly appId: number | null; readonly mayFailFrom: RealTime },
): Promise<ProviderAccountRow[]> {
  const { sql, params } = where(
    ['a.method = ?', method],
    appId === null ? null : ['a.app_id = ?', appId],
    ['a.credentials IS NOT NULL'],
    [
      `(a.retired_at IS NULL
        OR EXISTS (SELECT 1 FROM provider_sessions s WHERE s.provider_account_id = a.id AND s.status IN (?))
        OR EXISTS (SELECT 1 FROM payments p WHERE p.provider_account_id = a.id AND ${IS_REFUNDABLE})
        OR EXISTS (SELECT 1 FROM payments p JOIN refunds r ON r.payment_id = p.id
          WHERE p.provider_account_id = a.id AND r.created_at > ?))`,
      PAYABLE,
      mayFailFrom,
    ],
  )
  return db.all(providerAccounts.as('a'), `${sql} ORDER BY a.app_id, a.version DESC`, params)
}

const ACCOUNT_USE = shape({ openSessions: bigint(), refundablePayments: bigint() })

/** How much still depends on an account. */
export async function countAccountUse(db: Queries, accountId: number): Promise<Row<typeof ACCOUNT_USE>> {
  return db.single(
    ACCOUNT_USE,
    `SELECT
       (SELECT COUNT(*) FROM provider_sessions WHERE provider_account_id = ? AND status IN (?)) AS openSessions,
       (SELECT COUNT(*) FROM payments p WHERE p.provider_account_id = ? AND ${IS_REFUNDABLE}) AS refundablePayments`,
    [accountId, PAYABLE, accountId],
  )
}
