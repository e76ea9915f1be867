import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource } from 'typeorm'
import { Apps1795200000001 } from '#migrations/1795200000001-apps.ts'
import { PlansAndCustomers1795200000002 } from '#migrations/1795200000002-plans-and-customers.ts'
import { Subscriptions1795200000003 } from '#migrations/1795200000003-subscriptions.ts'
import { Payments1795200000004 } from '#migrations/1795200000004-payments.ts'
import { EventsAndOperations1795200000005 } from '#migrations/1795200000005-events-and-operations.ts'
import { Resolutions1795200000006 } from '#migrations/1795200000006-resolutions.ts'
import { SubscriptionsByRef1795200000007 } from '#migrations/1795200000007-subscriptions-by-ref.ts'
import { RefusedAddresses1795200000008 } from '#migrations/1795200000008-refused-addresses.ts'
import { ForwardingRequests1795200000009 } from '#migrations/1795200000009-forwarding-requests.ts'
import { LastDeliveries1795200000010 } from '#migrations/1795200000010-last-deliveries.ts'
import { BankAccountOwners1795200000011 } from '#migrations/1795200000011-bank-account-owners.ts'
import { BankMailReviews1795200000012 } from '#migrations/1795200000012-bank-mail-reviews.ts'
import { CustomersOfEndUsers1795200000013 } from '#migrations/1795200000013-customers-of-end-users.ts'
import { ClientSettings1795200000014 } from '#migrations/1795200000014-client-settings.ts'
import { LookUpFailures1795200000015 } from '#migrations/1795200000015-look-up-failures.ts'
import { DailyMails1795200000016 } from '#migrations/1795200000016-daily-mails.ts'
import { OpenCheckouts1795200000017 } from '#migrations/1795200000017-open-checkouts.ts'
import { Quotes1795200000018 } from '#migrations/1795200000018-quotes.ts'
import { MoneyLedger1795200000019 } from '#migrations/1795200000019-money-ledger.ts'
import { ProviderAccounts1795200000020 } from '#migrations/1795200000020-provider-accounts.ts'
import { CommitTokens1795200000021 } from '#migrations/1795200000021-commit-tokens.ts'
import { ReminderRetries1795200000022 } from '#migrations/1795200000022-reminder-retries.ts'
import { PageSettings1795200000023 } from '#migrations/1795200000023-page-settings.ts'
import { DeliveryLeases1795200000024 } from '#migrations/1795200000024-delivery-leases.ts'
import { AppLooks1795200000025 } from '#migrations/1795200000025-app-looks.ts'
import { Receipts1795200000026 } from '#migrations/1795200000026-receipts.ts'
import { SearchKeys1795200000027 } from '#migrations/1795200000027-search-keys.ts'
import { CheaperDeliveries1795200000028 } from '#migrations/1795200000028-cheaper-deliveries.ts'
import { BegunDeliveries1795200000030 } from '#migrations/1795200000030-begun-deliveries.ts'
import { EndedAssignments1795200000031 } from '#migrations/1795200000031-ended-assignments.ts'
import { VerifiedEmails1795200000032 } from '#migrations/1795200000032-verified-emails.ts'
import { CustomerSearch1795200000033 } from '#migrations/1795200000033-customer-search.ts'
import type { Migration } from '#migrations/migration.ts'
import { randomHex } from '#shared/crypto.ts'
import { readClusterNode } from './cluster.ts'
import { exact } from './columns.ts'
import { insertedNew } from './database-error.ts'
import type { Queries } from './queries.ts'
import { dropConnection, liftDeadlines } from './session.ts'
import { shape } from './table.ts'

type Readable = Pick<Queries, 'all'>
export type Migrations = readonly (new () => Migration)[]

/** Every change of the schema, in order. */
export const MIGRATIONS: Migrations = [
  Apps1795200000001,
  PlansAndCustomers1795200000002,
  Subscriptions1795200000003,
  Payments1795200000004,
  EventsAndOperations1795200000005,
  Resolutions1795200000006,
  SubscriptionsByRef1795200000007,
  RefusedAddresses1795200000008,
  ForwardingRequests1795200000009,
  LastDeliveries1795200000010,
  BankAccountOwners1795200000011,
  BankMailReviews1795200000012,
  CustomersOfEndUsers1795200000013,
  ClientSettings1795200000014,
  LookUpFailures1795200000015,
  DailyMails1795200000016,
  OpenCheckouts1795200000017,
  Quotes1795200000018,
  MoneyLedger1795200000019,
  ProviderAccounts1795200000020,
  CommitTokens1795200000021,
  ReminderRetries1795200000022,
  PageSettings1795200000023,
  DeliveryLeases1795200000024,
  AppLooks1795200000025,
  Receipts1795200000026,
  SearchKeys1795200000027,
  CheaperDeliveries1795200000028,
  BegunDeliveries1795200000030,
  EndedAssignments1795200000031,
  VerifiedEmails1795200000032,
  CustomerSearch1795200000033,
]

const LEASE_SECONDS = 15
const RENEW_MS = 5000
const POLL_MS = 100
const NO_SUCH_TABLE = 1146

/** The names of the migrations that are not applied, in order. Reads only. */
export async function pendingMigrations(db: Readable, migrations: Migrations = MIGRATIONS): Promise<string[]> {
  const applied = await appliedMigrations(db)
  return migrations.map(({ name }) => name).filter((name) => !applied.has(name))
}

/**
 * Brings the schema up to date; returns the names of the migrations that this call applied. Of several processes that run it at once,
 * one migrates under a lease and the others wait. The lease of a process that died expires after 15 s.
 */
export async function runMigrations(
  db: Readable & { readonly dataSource: () => Promise<DataSource> },
  migrations: Migrations = MIGRATIONS,
): Promise<string[]> {
  if ((await pendingMigrations(db, migrations)).length === 0) return []
  const source = await db.dataSource()
  await refuseRollingUpgrade(source)
  await createBookkeeping(source)
  const token = randomHex(16)
  while (!(await takeLease(source, token))) {
    if ((await pendingMigrations(db, migrations)).length === 0) return []
    await delay(POLL_MS)
  }
  // For a migration that takes longer than the lease. A lost lease is noticed before the next migration.
  const renewal = setInterval(() => void takeLease(source, token).catch(() => false), RENEW_MS)
  try {
    return await applyPending(source, token, await pendingMigrations(db, migrations), migrations)
  } finally {
    clearInterval(renewal)
    await source.query('UPDATE schema_lease SET token = NULL, lease_until = NULL WHERE id = 1 AND token = ?', [token])
  }
}

/** With RSU the other nodes of a cluster would record a migration as applied without getting it. */
async function refuseRollingUpgrade(db: DataSource): Promise<void> {
  const node = await readClusterNode((sql) => db.query<unknown[]>(sql))
  if (node && node.schemaMethod !== 'TOI')
    throw new Error(
      `wsrep_osu_method of this node is ${node.schemaMethod}, so that it alone would be migrated: SET GLOBAL wsrep_osu_method = 'TOI', then run migrate again`,
    )
}

async function appliedMigrations(db: Readable): Promise<Set<string>> {
  try {
    const rows = await db.all(shape({ name: exact('name', 191) }), 'SELECT name FROM schema_migrations')
    return new Set(rows.map(({ name }) => name))
  } catch (error) {
    if ((error as { errno?: unknown }).errno === NO_SUCH_TABLE) return new Set()
    throw error
  }
}

async function createBookkeeping(db: DataSource): Promise<void> {
  await db.query(`
    CREATE TABLE IF NOT EXISTS schema_migrations (
      name VARCHAR(191) NOT NULL,
      applied_at DATETIME(3) NOT NULL,
      PRIMARY KEY (name)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  await db.query(`
    CREATE TABLE IF NOT EXISTS schema_lease (
      id INT NOT NULL,
      token VARCHAR(64) NULL,
      lease_until DATETIME(3) NULL,
      PRIMARY KEY (id)
    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci`)
  await insertedNew('PRIMARY', db.query('INSERT INTO schema_lease (id) VALUES (1)'))
}

/** Takes a free lease, or renews our own. */
async function takeLease(db: DataSource, token: string): Promise<boolean> {
  const { affectedRows }: { affectedRows: number } = await db.query(
    `UPDATE schema_lease SET token = ?, lease_until = UTC_TIMESTAMP(3) + INTERVAL ? SECOND
     WHERE id = 1 AND (lease_until IS NULL OR lease_until < UTC_TIMESTAMP(3) OR token = ?)`,
    [token, LEASE_SECONDS, token],
  )
  return affectedRows === 1
}

async function applyPending(
  db: DataSource,
  token: string,
  pending: readonly string[],
  migrations: Migrations,
): Promise<string[]> {
  const runner = db.createQueryRunner()
  const applied: string[] = []
  try {
    await liftDeadlines(runner, db.options.type === 'mariadb')
    for (const Migration of migrations.filter(({ name }) => pending.includes(name))) {
      if (!(await takeLease(db, token))) throw new Error('another process took over the migration: run it again')
      await new Migration().up(runner)
      await runner.query('INSERT INTO schema_migrations (name, applied_at) VALUES (?, UTC_TIMESTAMP(3))', [
        Migration.name,
      ])
      applied.push(Migration.name)
    }
    return applied
  } finally {
    await dropConnection(runner)
  }
}
