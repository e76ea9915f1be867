import { bigint, exact, id, int } from '#db/columns.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { shape, table } from '#db/table.ts'
import type { Tx } from '#commands/transaction.ts'
import { formatDay, type RealTime } from '#shared/time.ts'

/** How many mails of an app were sent, or are being sent, in a UTC day: compared with the daily limit. */
export const dailyMails = table('daily_mails', {
  id: id(),
  appId: bigint('app_id'),
  /** `YYYY-MM-DD` */
  day: exact('day', 10),
  mails: int('mails'),
})

/**
 * Reserves up to `requested` mails of the app's `limit` of `day`; returns how many the limit allowed. Locks the count, so that two daemons
 * cannot both send the last mail of a day.
 */
export async function reserveMails(
  tx: Tx,
  appId: number,
  day: string,
  requested: number,
  limit: number,
): Promise<number> {
  const lockCount = () => tx.one(dailyMails, 'WHERE app_id = ? AND day = ? FOR UPDATE', [appId, day])
  let count = await lockCount()
  if (!count) {
    await insertedNew('daily_mails_app_day', tx.insert(dailyMails, { appId, day, mails: 0 }))
    count = await lockCount()
  }
  const mails = count?.mails ?? 0
  const allowed = Math.max(0, Math.min(requested, limit - mails))
  if (allowed > 0) await tx.update(dailyMails, { appId, day }, { mails: mails + allowed })
  return allowed
}

/** Returns the reservation of a mail that did not leave; `countedOn` null: it had none. */
export async function returnReservedMail(
  tx: Tx,
  { appId, countedOn }: { readonly appId: number; readonly countedOn: string | null },
): Promise<void> {
  if (countedOn === null) return
  await tx.run('UPDATE daily_mails SET mails = mails - 1 WHERE app_id = ? AND day = ? AND mails > 0', [
    appId,
    countedOn,
  ])
}

/** Apps that have reached their limit of `day`; null is no limit. */
export async function listAppsAtLimit(
  db: Queries,
  day: string,
  limits: { readonly live: number | null; readonly sandbox: number | null },
): Promise<number[]> {
  const rows = await db.all(
    shape({ id: id() }),
    `SELECT a.id FROM daily_mails d JOIN apps a ON a.id = d.app_id
     WHERE d.day = ? AND d.mails >= CASE WHEN a.is_sandbox = 1 THEN ? ELSE ? END`,
    [day, limits.sandbox, limits.live],
  )
  return rows.map((row) => row.id)
}

/** Removes up to `limit` counts of days before that of `before`; returns how many. */
export async function deleteOldDailyMails(tx: Tx, before: RealTime, limit: number): Promise<number> {
  return tx.run('DELETE FROM daily_mails WHERE day < ? ORDER BY day LIMIT ?', [formatDay(before), limit])
}
