import { EntitySchema, IsNull } from 'typeorm'
import { bigint, bytes, exact, id, instant, int, nullable } from '#db/columns.ts'
import { insertedNew } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'

/** A request that carried an `Idempotency-Key`, and its first answer once there is one. */
export interface IdempotencyKey {
  id: number
  appId: number
  pathHash: string
  idempotencyKey: string
  requestHash: string
  leaseToken: string
  leaseUntil: Date
  answerStatus: number | null
  answerBody: Buffer | null
  createdAt: Date
}

export const idempotencyKeys = new EntitySchema<IdempotencyKey>({
  name: 'idempotency_keys',
  columns: {
    id,
    appId: bigint('app_id'),
    pathHash: exact('path_hash', 64),
    idempotencyKey: exact('idempotency_key', 255),
    requestHash: exact('request_hash', 64),
    leaseToken: exact('lease_token', 64),
    leaseUntil: instant('lease_until'),
    answerStatus: nullable(int('answer_status')),
    answerBody: nullable(bytes('answer_body')),
    createdAt: instant('created_at'),
  },
})

type Scope = Pick<IdempotencyKey, 'appId' | 'pathHash' | 'idempotencyKey'>

/** Whether this request is the first of its key. */
export async function insertIdempotencyKey(tx: Tx, row: Omit<IdempotencyKey, 'id'>): Promise<boolean> {
  return insertedNew('idempotency_keys_app_path_key', tx.manager.insert(idempotencyKeys, row))
}

export async function findIdempotencyKey(db: ReadOnly, scope: Scope): Promise<IdempotencyKey | null> {
  return db.manager.findOneBy(idempotencyKeys, scope)
}

/** Takes over a key whose first request never answered, or whose answer is too old; false where another did so first. */
export async function takeOverIdempotencyKey(
  tx: Tx,
  stale: IdempotencyKey,
  fresh: Pick<IdempotencyKey, 'requestHash' | 'leaseToken' | 'leaseUntil'>,
): Promise<boolean> {
  const result = await tx.manager.update(
    idempotencyKeys,
    { id: stale.id, leaseToken: stale.leaseToken },
    { ...fresh, answerStatus: null, answerBody: null, createdAt: tx.now },
  )
  return result.affected === 1
}

/** Keeps the answer of the request that holds the key; false where it holds it no more, or has its answer already. */
export async function storeAnswer(
  { manager }: Pick<Tx, 'manager'>,
  leaseToken: string,
  scope: Scope,
  answer: { readonly status: number; readonly body: Buffer },
): Promise<boolean> {
  const result = await manager.update(
    idempotencyKeys,
    { ...scope, leaseToken, answerStatus: IsNull() },
    { answerStatus: answer.status, answerBody: answer.body },
  )
  return result.affected === 1
}

export async function prolongIdempotencyKey(tx: Tx, leaseToken: string, scope: Scope, leaseUntil: Date): Promise<void> {
  await tx.manager.update(idempotencyKeys, { ...scope, leaseToken, answerStatus: IsNull() }, { leaseUntil })
}

/** Gives the key back, unless an answer was committed with the work. */
export async function deleteIdempotencyKey(tx: Tx, leaseToken: string, scope: Scope): Promise<void> {
  await tx.manager.delete(idempotencyKeys, { ...scope, leaseToken, answerStatus: IsNull() })
}

/** Removes up to `limit` keys older than `before`; returns how many. */
export async function deleteOldIdempotencyKeys(tx: Tx, before: Date, limit: number): Promise<number> {
  const result = await tx.manager.query<{ affectedRows: number }>(
    'DELETE FROM idempotency_keys WHERE created_at < ? ORDER BY created_at LIMIT ?',
    [before, limit],
  )
  return result.affectedRows
}
