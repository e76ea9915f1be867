import { AppError } from '#shared/errors.ts'
import { exact } from './columns.ts'
import type { Queries } from './queries.ts'
import { shape } from './table.ts'

/** Exists while a backup is being restored into the service's own database, and after a restore that was killed. */
export const UNFINISHED_RESTORE = 'unfinished_restore'

/** Whether the database holds only a part of a backup. */
export async function isHalfRestored(db: Pick<Queries, 'one'>): Promise<boolean> {
  const found = await db.one(
    shape({ name: exact('name', 64) }),
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?',
    [UNFINISHED_RESTORE],
  )
  return found !== null
}

/** Throws `service_unavailable` while the database holds only a part of a backup: what is missing would look as if it had never been. */
export async function refuseHalfRestored(db: Pick<Queries, 'one'>): Promise<void> {
  if (await isHalfRestored(db))
    throw new AppError(
      'service_unavailable',
      'a backup was restored here only in part: run billing-cli backup restore --into embedded-service again',
    )
}

export async function markHalfRestored(db: Pick<Queries, 'run'>): Promise<void> {
  await db.run(`CREATE TABLE IF NOT EXISTS ${UNFINISHED_RESTORE} (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB`)
}

export async function markRestored(db: Pick<Queries, 'run'>): Promise<void> {
  await db.run(`DROP TABLE ${UNFINISHED_RESTORE}`)
}
