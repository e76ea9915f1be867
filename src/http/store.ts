import { bigint, bytes, exact, id, int, realTime } from '#db/columns.ts'
import { table, type Row } from '#db/table.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import type { RealTime } from '#shared/time.ts'

/** A request with an `Idempotency-Key`, and its first answer once there is one. */
export const idempotencyKeys = table('idempotency_keys', {
  id: id(),
  appId: bigint('app_id'),
  pathHash: exact('path_hash', 64),
  idempotencyKey: exact('idempotency_key', 255),
  requestHash: exact('request_hash', 64),
  leaseToken: exact('lease_token', 64),
  /** By the database's clock, as is `createdAt`. */
  leaseUntil: realTime('lease_until'),
  answerStatus: int('answer_status').nullable(),
  answerBody: bytes('answer_body').nullable(),
  createdAt: realTime('created_at'),
})
export type IdempotencyKey = Row<typeof idempotencyKeys>

/** Which key it is. `pathHash` is of the path and of the end user, each of whom has keys of their own. */
export type KeyScope = Pick<IdempotencyKey, 'appId' | 'pathHash' | 'idempotencyKey'>

/** Whether this request is the first of its key. */
export async function insertIdempotencyKey(tx: Tx, row: Omit<IdempotencyKey, 'id'>): Promise<boolean> {
  return insertedNew('idempotency_keys_app_path_key', tx.insert(idempotencyKeys, row))
}

export async function findIdempotencyKey(db: Queries, scope: KeyScope): Promise<IdempotencyKey | null> {
  const { appId, pathHash, idempotencyKey } = scope
  const named = 'WHERE app_id = ? AND path_hash = ? AND idempotency_key = ?'
  return db.one(idempotencyKeys, named, [appId, pathHash, idempotencyKey])
}

/** Takes over a key whose first request died, or whose answer is too old; false if another request was faster. */
export async function takeOverIdempotencyKey(
  tx: Tx,
  stale: IdempotencyKey,
  fresh: Pick<IdempotencyKey, 'requestHash' | 'leaseToken' | 'leaseUntil' | 'createdAt'>,
): Promise<boolean> {
  return (
    (await tx.update(
      idempotencyKeys,
      { id: stale.id, leaseToken: stale.leaseToken },
      { ...fresh, answerStatus: null, answerBody: null },
    )) === 1
  )
}

/** Stores the answer of the request that leases the key; false if it lost the lease, or has an answer already. */
export async function storeAnswer(
  db: Queries,
  leaseToken: string,
  scope: KeyScope,
  answer: { readonly status: number; readonly body: Buffer },
): Promise<boolean> {
  const leased = { ...scope, leaseToken, answerStatus: null }
  return (await db.update(idempotencyKeys, leased, { answerStatus: answer.status, answerBody: answer.body })) === 1
}

export async function renewIdempotencyKey(
  tx: Tx,
  leaseToken: string,
  scope: KeyScope,
  leaseUntil: RealTime,
): Promise<void> {
  await tx.update(idempotencyKeys, { ...scope, leaseToken, answerStatus: null }, { leaseUntil })
}

/** Releases the key, unless an answer was committed with the work. */
export async function releaseIdempotencyKey(tx: Tx, leaseToken: string, scope: KeyScope): Promise<void> {
  await tx.run(
    `DELETE FROM idempotency_keys
     WHERE app_id = ? AND path_hash = ? AND idempotency_key = ? AND lease_token = ? AND answer_status IS NULL`,
    [scope.appId, scope.pathHash, scope.idempotencyKey, leaseToken],
  )
}

/** Removes up to `limit` keys older than `before`; returns how many. */
export async function deleteOldIdempotencyKeys(tx: Tx, before: RealTime, limit: number): Promise<number> {
  return tx.run('DELETE FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?', [before, limit])
}
