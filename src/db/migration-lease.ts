import { setTimeout as delay } from 'node:timers/promises'
import type { QueryRunner } from 'typeorm'
import { randomHex } from '#shared/crypto.ts'
import { insertedNew } from './database-error.ts'

const LEASE_SECONDS = 15
const RENEW_MS = 5000
const POLL_MS = 100
const NO_SUCH_COLUMN = 1054

/**
 * Runs the work under a lease, which only one process holds. Waits for the lease; returns null if another process has made the work
 * unnecessary. The work calls `renew` before each step; it throws if the lease is lost.
 */
export async function underLease<T>(
  keeper: QueryRunner,
  isUnnecessary: () => Promise<boolean>,
  work: (renew: () => Promise<void>) => Promise<T>,
): Promise<T | null> {
  await createLease(keeper)
  const token = randomHex(16)
  while (!(await takeLease(keeper, token))) {
    if (await isUnnecessary()) return null
    await delay(POLL_MS)
  }
  // A step may take longer than the lease.
  const renewal = setInterval(() => void takeLease(keeper, token).catch(() => false), RENEW_MS)
  try {
    return await work(async () => {
      if (!(await takeLease(keeper, token)))
        throw new Error('another process took over the migration: run billing-cli migrate again')
    })
  } finally {
    clearInterval(renewal)
    await keeper.query('UPDATE schema_lease SET holder = NULL, lease_until = NULL WHERE id = 1 AND holder = ?', [token])
  }
}

async function createLease(keeper: QueryRunner): Promise<void> {
  await keeper.query(`
    CREATE TABLE IF NOT EXISTS schema_lease (
      id INT NOT NULL,
      holder VARCHAR(64) NULL,
      lease_until DATETIME(3) NULL,
      PRIMARY KEY (id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  if (await keeper.hasColumn('schema_lease', 'token')) await refuseVersion01(keeper)
  await insertedNew('PRIMARY', keeper.query('INSERT INTO schema_lease (id) VALUES (1)'))
}

/** Makes version 0.1 fail, which needs this column: it would apply all of its migrations again, because it does not know the new table. */
async function refuseVersion01(keeper: QueryRunner): Promise<void> {
  try {
    await keeper.query('ALTER TABLE schema_lease CHANGE token holder VARCHAR(64) NULL')
  } catch (error) {
    // Another process was faster.
    if ((error as { errno?: unknown }).errno !== NO_SUCH_COLUMN) throw error
  }
}

/** Takes a free lease, or renews our own. */
async function takeLease(keeper: QueryRunner, token: string): Promise<boolean> {
  const { affectedRows } = (await keeper.query(
    `UPDATE schema_lease SET holder = ?, lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND
     WHERE id = 1 AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3) OR holder = ?)`,
    [token, LEASE_SECONDS, token],
  )) as { affectedRows: number }
  return affectedRows === 1
}
