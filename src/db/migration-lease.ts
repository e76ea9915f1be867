import { setTimeout as delay } from 'node:timers/promises'
import type { QueryRunner } from 'typeorm'
import { randomHex } from '#shared/crypto.ts'
import { hasErrno, insertedNew } from './database-error.ts'

const LEASE_SECONDS = 15
const RENEW_MS = 5000
const POLL_MS = 100
const NO_SUCH_COLUMN = 1054

/**
 * Runs the work under a lease, which only one process holds. Waits for the lease; returns null if another process has made the work
 * unnecessary. The work calls `renew` before each step; `renew` throws if the lease is lost.
 */
export async function underLease<T>(
  leaseRunner: QueryRunner,
  isUnnecessary: () => Promise<boolean>,
  work: (renew: () => Promise<void>) => Promise<T>,
): Promise<T | null> {
  await createLease(leaseRunner)
  const token = randomHex(16)
  while (!(await takeLease(leaseRunner, token))) {
    if (await isUnnecessary()) return null
    await delay(POLL_MS)
  }
  // A step may take longer than the lease.
  const renewal = setInterval(() => void takeLease(leaseRunner, token).catch(() => false), RENEW_MS)
  try {
    return await work(async () => {
      if (!(await takeLease(leaseRunner, token)))
        throw new Error('another process took over the migration: run billing-cli migrate again')
    })
  } finally {
    clearInterval(renewal)
    await releaseLease(leaseRunner, token)
  }
}

async function createLease(leaseRunner: QueryRunner): Promise<void> {
  await leaseRunner.query(`
    CREATE TABLE IF NOT EXISTS schema_lease (
      id INT NOT NULL,
      holder VARCHAR(64) NULL,
      lease_until DATETIME(3) NULL,
      PRIMARY KEY (id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  if (await leaseRunner.hasColumn('schema_lease', 'token')) await refuseVersion01(leaseRunner)
  await insertedNew('PRIMARY', leaseRunner.query('INSERT INTO schema_lease (id) VALUES (1)'))
}

/**
 * Renames a column that version 0.1 needs, so that version 0.1 fails: it does not know the new table and would apply all of its migrations
 * again.
 */
async function refuseVersion01(leaseRunner: QueryRunner): Promise<void> {
  try {
    await leaseRunner.query('ALTER TABLE schema_lease CHANGE token holder VARCHAR(64) NULL')
  } catch (error) {
    // Another process was faster.
    if (!hasErrno(error, NO_SUCH_COLUMN)) throw error
  }
}

/** A lease that cannot be released expires; what failed before says why. */
async function releaseLease(leaseRunner: QueryRunner, token: string): Promise<void> {
  const release = 'UPDATE schema_lease SET holder = NULL, lease_until = NULL WHERE id = 1 AND holder = ?'
  await leaseRunner.query(release, [token]).catch(() => undefined)
}

/** Takes a free lease, or renews our own; returns false if another process holds it. */
async function takeLease(leaseRunner: QueryRunner, token: string): Promise<boolean> {
  const { affectedRows } = (await leaseRunner.query(
    `UPDATE schema_lease SET holder = ?, lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND
     WHERE id = 1 AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3) OR holder = ?)`,
    [token, LEASE_SECONDS, token],
  )) as { affectedRows: number }
  return affectedRows === 1
}
