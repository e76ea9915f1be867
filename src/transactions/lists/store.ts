import { id } from '#db/columns.ts'
import { following, where, type PageRequest } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import {
  shownTransactions,
  type ProviderCode,
  type ShownTransaction,
  type TransactionStatus,
} from '#transactions/store.ts'

export interface TransactionFilter extends PageRequest {
  /** Null: of all apps. */
  readonly appId: number | null
  readonly externalRef: string | null
  readonly status: TransactionStatus | null
  readonly flagged: boolean | null
  /** Opened from then on, in the app's own time. */
  readonly since?: Date | null
  /** Opened before then, in the app's own time. */
  readonly until?: Date | null
  readonly provider?: ProviderCode | null
}

/**
 * Transactions, newest first: those of one app by its own time, those of all apps by their ids, because the times of several clocks do not
 * compare, and no index has them.
 */
export async function listTransactionRows(db: Queries, filter: TransactionFilter): Promise<ShownTransaction[]> {
  const { appId, externalRef, status, flagged, since, until, provider, after } = filter
  const listed = where(
    appId === null ? null : ['app_id = ?', appId],
    externalRef === null ? null : ['external_ref = ?', externalRef],
    status === null ? null : ['status = ?', status],
    flagged === null ? null : [`flag_reason IS ${flagged ? 'NOT ' : ''}NULL`],
    since ? ['created_at >= ?', since] : null,
    until ? ['created_at < ?', until] : null,
    provider ? ['provider_code = ?', provider] : null,
    appId === null ? after && ['id < ?', after.id] : following(after, ['created_at', 'id'], 'desc'),
  )
  return db.all(
    shownTransactions,
    `${await indexOf(db, filter)}${listed.sql} ORDER BY ${appId === null ? '' : 'created_at DESC, '}id DESC LIMIT ?`,
    [...listed.params, filter.limit],
  )
}

/** Without this hint, servers read all transactions, or those of the app, in the order of the list, and skip those that do not match. */
async function indexOf(db: Queries, { appId, externalRef, status, flagged }: TransactionFilter): Promise<string> {
  if (appId !== null && externalRef !== null) return 'FORCE INDEX (transactions_app_ref) '
  if (flagged && (await areFewFlagged(db))) return 'FORCE INDEX (transactions_flagged) '
  if (appId === null) return ''
  return status === null ? 'FORCE INDEX (transactions_app_created) ' : 'FORCE INDEX (transactions_app_status) '
}

const FEW = 100

async function areFewFlagged(db: Queries): Promise<boolean> {
  const flagged = await db.all(
    shape({ id: id() }),
    'SELECT id FROM transactions FORCE INDEX (transactions_flagged) WHERE flag_reason IS NOT NULL LIMIT ?',
    [FEW + 1],
  )
  return flagged.length <= FEW
}
