import { AppError } from '#shared/errors.ts'
import { id } from './columns.ts'
import { hasErrno, unlessForbidden } from './database-error.ts'
import type { Queries } from './queries.ts'
import { shape } from './table.ts'

/**
 * Has a row while a backup is being restored, and after a restore that was killed. Stays empty in a database whose user may not drop tables.
 */
export const UNFINISHED_RESTORE = 'unfinished_restore'

const NO_SUCH_TABLE = 1146

/** Whether the database holds only a part of a backup. */
export async function isHalfRestored(db: Pick<Queries, 'one'>): Promise<boolean> {
  try {
    return (await db.one(shape({ id: id() }), `SELECT id FROM ${UNFINISHED_RESTORE} LIMIT 1`)) !== null
  } catch (error) {
    if (hasErrno(error, NO_SUCH_TABLE)) return false
    throw error
  }
}

/** Throws `service_unavailable` while the database holds only a part of a backup: what is missing would look as if it had never been. */
export async function refuseHalfRestored(db: Pick<Queries, 'one'>, again: string): Promise<void> {
  if (await isHalfRestored(db))
    throw new AppError(
      'service_unavailable',
      `a backup is being restored here, or was only in part; if no restore is running, ${again}`,
    )
}

export async function markHalfRestored(db: Pick<Queries, 'run'>): Promise<void> {
  await db.run(`CREATE TABLE IF NOT EXISTS ${UNFINISHED_RESTORE} (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB`)
  await db.run(`INSERT INTO ${UNFINISHED_RESTORE} VALUES (1) ON DUPLICATE KEY UPDATE id = id`)
}

export async function markRestored(db: Pick<Queries, 'run'>): Promise<void> {
  await db.run('DELETE FROM unfinished_restore')
  await unlessForbidden(db.run(`DROP TABLE ${UNFINISHED_RESTORE}`))
}
