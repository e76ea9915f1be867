import type { QueryRunner } from 'typeorm'
import { exactCollation } from './exact-collation.ts'
import type { Migration } from './migration.ts'

/** The methods that have accounts at a provider, and the provider's code. */
const PROVIDERS = [
  { method: 'card', code: 'stripe' },
  { method: 'payos', code: 'payos' },
]

/**
 * An app's credentials at a provider get versions, and sessions and payments name theirs. Existing credentials become version 1. Their old
 * column is dropped last, so that an interrupted run can begin again while it still exists.
 */
export class ProviderAccounts1795200000020 implements Migration {
  readonly work = {
    provider_sessions: ['rebuild', 'copy', 'update', 'copy', 'update', 'rebuild'],
    payments: ['index', 'update', 'update'],
    provider_pauses: ['update', 'rebuild'],
    payment_methods: ['copy', 'copy', 'instant'],
  } as const

  async up(runner: QueryRunner): Promise<void> {
    const exact = `CHARACTER SET utf8mb4 COLLATE ${await exactCollation(runner)}`
    await runner.query(`
      CREATE TABLE IF NOT EXISTS provider_accounts (
        id BIGINT NOT NULL AUTO_INCREMENT,
        app_id BIGINT NOT NULL,
        method VARCHAR(32) ${exact} NOT NULL,
        version INT NOT NULL,
        credentials TEXT NULL,
        created_at DATETIME(3) NOT NULL,
        retired_at DATETIME(3) NULL,
        PRIMARY KEY (id),
        UNIQUE KEY provider_accounts_version (app_id, method, version)
      ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
    if (!(await runner.hasColumn('provider_sessions', 'provider_account_id')))
      await runner.query(`ALTER TABLE provider_sessions
        ADD COLUMN provider_account_id BIGINT NULL,
        ADD KEY provider_sessions_account (provider_account_id, status)`)
    if (!(await runner.hasColumn('payments', 'provider_account_id')))
      await runner.query('ALTER TABLE payments ADD COLUMN provider_account_id BIGINT NULL')
    await addPaymentsKey(runner)
    if (!(await runner.hasColumn('provider_pauses', 'provider_account_id'))) {
      // A pause lasts minutes: the next look-up finds the failure again.
      await runner.query('DELETE FROM provider_pauses')
      await runner.query(`ALTER TABLE provider_pauses
        ADD COLUMN provider_account_id BIGINT NOT NULL,
        DROP KEY provider_pauses_account,
        ADD UNIQUE KEY provider_pauses_account (provider_account_id)`)
    }
    if (!(await runner.hasColumn('payment_methods', 'credentials'))) return
    for (const { method, code } of PROVIDERS) await bringOver(runner, method, code)
    await runner.query('ALTER TABLE provider_sessions MODIFY COLUMN provider_account_id BIGINT NOT NULL')
    await runner.query('ALTER TABLE payment_methods DROP COLUMN credentials')
  }

  down(): Promise<void> {
    throw new Error('versions of credentials cannot be removed: restore a backup')
  }
}

async function addPaymentsKey(runner: QueryRunner): Promise<void> {
  const keys = (await runner.query("SHOW KEYS FROM payments WHERE Key_name = 'payments_provider_account'")) as unknown[]
  if (keys.length === 0)
    await runner.query('ALTER TABLE payments ADD KEY payments_provider_account (provider_account_id)')
}

async function bringOver(runner: QueryRunner, method: string, code: string): Promise<void> {
  await runner.query(
    `INSERT INTO provider_accounts (app_id, method, version, credentials, created_at, retired_at)
     SELECT m.app_id, m.method, 1, m.credentials, m.created_at, NULL FROM payment_methods m
     WHERE m.method = ? AND m.credentials IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM provider_accounts a WHERE a.app_id = m.app_id AND a.method = m.method)`,
    [method],
  )
  // Sessions of an app whose credentials are gone cannot be looked up.
  await runner.query(
    `INSERT INTO provider_accounts (app_id, method, version, credentials, created_at, retired_at)
     SELECT s.app_id, ?, 1, NULL, MIN(s.created_at), MIN(s.created_at) FROM provider_sessions s
     WHERE s.provider = ?
       AND NOT EXISTS (SELECT 1 FROM provider_accounts a WHERE a.app_id = s.app_id AND a.method = ?)
     GROUP BY s.app_id`,
    [method, code, method],
  )
  for (const table of ['provider_sessions', 'payments'])
    await runner.query(
      `UPDATE ${table} x JOIN provider_accounts a ON a.app_id = x.app_id AND a.method = ? AND a.version = 1
       SET x.provider_account_id = a.id WHERE x.provider = ? AND x.provider_account_id IS NULL`,
      [method, code],
    )
}
