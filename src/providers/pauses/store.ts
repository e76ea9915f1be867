import { bigint, exact, id, int, realTime, words } from '#db/columns.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { table, type Row } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import type { RealTime } from '#shared/time.ts'

/** A pause of an account whose provider did not answer or refused its credentials. */
export const providerPauses = table('provider_pauses', {
  id: id(),
  appId: bigint('app_id'),
  provider: exact('provider', 32),
  providerAccountId: bigint('provider_account_id'),
  /** Failures in a row, each with a pause. */
  failures: int('failures'),
  /** Of the last failure, for operators. */
  reason: words('reason', 191),
  since: realTime('since'),
  pausedUntil: realTime('paused_until'),
})
export type ProviderPause = Row<typeof providerPauses>

/** All pauses, expired or not. An account's pause is deleted once its provider answers. */
export async function listPauses(db: Queries): Promise<ProviderPause[]> {
  return db.all(providerPauses, 'ORDER BY app_id, provider')
}

export async function findPause(db: Queries, providerAccountId: number): Promise<ProviderPause | null> {
  return db.one(providerPauses, 'WHERE provider_account_id = ?', [providerAccountId])
}

/** Begins a pause, unless one is under way: of several failures at once, only the first lengthens the next pause. */
export async function beginPause(tx: Tx, pause: Omit<ProviderPause, 'id'>, now: RealTime): Promise<void> {
  const isNew = await insertedNew('provider_pauses_account', tx.insert(providerPauses, pause))
  if (!isNew) {
    await tx.run(
      `UPDATE provider_pauses SET failures = ?, reason = ?, since = ?, paused_until = ?
       WHERE provider_account_id = ? AND paused_until <= ?`,
      [pause.failures, pause.reason, pause.since, pause.pausedUntil, pause.providerAccountId, now],
    )
  }
}

/** Deletes the pause of an account. */
export async function endPause(tx: Tx, providerAccountId: number): Promise<void> {
  await tx.run('DELETE FROM provider_pauses WHERE provider_account_id = ?', [providerAccountId])
}
