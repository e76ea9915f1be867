import { APP_SECRET_COLUMNS, type AppSecretColumn } from '#apps/store.ts'
import { bigint, id, int, text } from '#db/columns.ts'
import { shape } from '#db/table.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'

/** One sealed secret, and where it is stored. */
export type SealedSecret =
  | {
      readonly table: 'apps'
      readonly id: number
      readonly apiKey: string
      readonly column: AppSecretColumn
      readonly sealed: string
    }
  | {
      readonly table: 'provider_accounts'
      readonly id: number
      readonly appId: number
      readonly method: string
      readonly version: number
      readonly sealed: string
    }

/** The sealed secrets of `limit` apps after `afterId`, and the id to continue from; null if there are no more. */
export async function listAppSecrets(
  db: Queries,
  afterId: number,
  limit: number,
): Promise<{ secrets: SealedSecret[]; nextAfterId: number | null }> {
  const sealed = text().nullable()
  const rows = await db.all(
    shape({
      id: id(),
      apiKey: text(),
      api_secret: sealed,
      earlier_api_secrets: sealed,
      webhook_secret: sealed,
      next_webhook_secret: sealed,
      realtime_service_account: sealed,
    }),
    `SELECT id, api_key AS apiKey, ${APP_SECRET_COLUMNS.join(', ')} FROM apps WHERE id > ? ORDER BY id LIMIT ?`,
    [afterId, limit],
  )
  const secrets = rows.flatMap((row) =>
    APP_SECRET_COLUMNS.flatMap((column): SealedSecret[] => {
      const secret = row[column]
      return secret === null ? [] : [{ table: 'apps', id: row.id, apiKey: row.apiKey, column, sealed: secret }]
    }),
  )
  return { secrets, nextAfterId: nextAfter(rows, limit) }
}

/** As `listAppSecrets`, for the credentials at providers, in every version. */
export async function listMethodSecrets(
  db: Queries,
  afterId: number,
  limit: number,
): Promise<{ secrets: SealedSecret[]; nextAfterId: number | null }> {
  const rows = await db.all(
    shape({ id: id(), appId: bigint(), method: text(), version: int(), credentials: text().nullable() }),
    'SELECT id, app_id AS appId, method, version, credentials FROM provider_accounts WHERE id > ? ORDER BY id LIMIT ?',
    [afterId, limit],
  )
  const secrets = rows.flatMap(({ credentials, ...row }): SealedSecret[] =>
    credentials === null ? [] : [{ table: 'provider_accounts', ...row, sealed: credentials }],
  )
  return { secrets, nextAfterId: nextAfter(rows, limit) }
}

/** Stores the same secret under another key; false if it was changed since it was read. */
export async function replaceSealed(tx: Tx, secret: SealedSecret, sealed: string): Promise<boolean> {
  const column = secret.table === 'apps' ? secret.column : 'credentials'
  return (
    (await tx.run(`UPDATE ${secret.table} SET ${column} = ? WHERE id = ? AND ${column} = ?`, [
      sealed,
      secret.id,
      secret.sealed,
    ])) === 1
  )
}

function nextAfter(rows: readonly { readonly id: number }[], limit: number): number | null {
  const last = rows.at(-1)
  return last && rows.length === limit ? last.id : null
}
