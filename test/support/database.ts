import { join } from 'node:path'
import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise'
import { openDatabase, parseDatabaseUrl, type Database } from '#db/connect.ts'
import { startEmbedded } from '#embedded/start-embedded.ts'
import type { Param } from '#db/queries.ts'
import { runMigrations } from '#db/migrate.ts'
import { retrying } from '#db/retry.ts'
import type { AnyTable } from './tables.ts'
import { MYSQL } from './database-server.ts'
import { loaded } from './loaded.ts'
import { isAlive } from './processes.ts'
import { scratchFolder } from './scratch.ts'

/** The database as commands see it, and any statement besides. */
export interface TestDb extends Database {
  readonly query: <T = unknown>(sql: string, params?: unknown[]) => Promise<T>
}

/** The database of this test run, on a real server that is kept between runs. */
export interface TestDatabase {
  readonly db: TestDb
  /** For `Config.databaseUrl` and for `BILLING_DATABASE_URL` of child processes. */
  readonly url: string
  readonly socketPath: string
  readonly name: string
}

interface Started {
  readonly database: TestDatabase
  readonly stop: () => Promise<void>
}

const ROOT = join(import.meta.dirname, '..', '..')
const HOME = join(ROOT, 'var', MYSQL === null ? 'test' : 'test-mysql')
const PREFIX = 'paygate_test_'
const SERVER_FLAGS = [
  // No test cuts the power of the machine, so commits only have to survive the death of the server.
  '--innodb-flush-log-at-trx-commit=2',
  // Holds the databases of all processes of mocha, so that no page is written and read again during a run.
  '--innodb-buffer-pool-size=256M',
]
let started: Started | null = null
loaded.database = true

export function testDatabase(): TestDatabase {
  if (!started) throw new Error('the test database is started by the root hooks: ask for it inside a test or a hook')
  return started.database
}

/** Creates a migrated database for this process, once, and drops those of dead runs. */
export async function startTestDatabase(): Promise<void> {
  started ??= await start()
}

async function start(): Promise<Started> {
  const embedded = await startEmbedded(HOME, { flags: SERVER_FLAGS })
  const { socketPath, user } = embedded.connection
  const name = `${PREFIX}${process.pid}`
  const admin = await createConnection({ socketPath, user })
  await dropLeftoverDatabases(admin)
  await admin.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci`)
  const url = urlOf(socketPath, name)
  const { db, close } = await openTestDb(url)
  await runMigrations(db)
  return {
    database: { db, url, socketPath, name },
    stop: async () => {
      await close()
      if (process.env['KEEP_DB'] === '1') process.stdout.write(`the database is kept: ${url}\n`)
      else await admin.query(`DROP DATABASE ${name}`)
      await admin.end()
      embedded.release()
    },
  }
}

/** Runs work with the database at another address in place of the test database. */
export async function onDatabase<T>(url: string, work: () => Promise<T>): Promise<T> {
  const moveBack = await moveTo(url)
  try {
    return await work()
  } finally {
    await moveBack()
  }
}

/**
 * Takes a database on a server of its own in place of the test database, until the returned function runs. It has the settings of a server
 * outside the tests, and they may be changed: those of the tests' server apply to all files that run at the same time.
 */
export async function moveToOwnServer(): Promise<() => Promise<void>> {
  const { connection, release } = await startEmbedded(scratchFolder('server'))
  const moveBack = await moveTo(urlOf(connection.socketPath, connection.database))
  return async () => {
    await moveBack()
    release()
  }
}

async function moveTo(url: string): Promise<() => Promise<void>> {
  const before = started
  const [target] = parseDatabaseUrl(url)
  if (!target) throw new Error(`no server in ${url}`)
  const { db, close } = await openTestDb(url)
  started = { database: { db, url, socketPath: target.socketPath ?? '', name: target.database }, stop: close }
  await runMigrations(db)
  return async () => {
    started = before
    await close()
  }
}

/** A database as tests see it; the caller closes it. */
export async function openTestDb(url: string): Promise<{ db: TestDb; close: () => Promise<void> }> {
  const { db, close } = await openDatabase({ databaseUrl: url, home: HOME })
  return { db: { ...db, query: (sql, params) => query(db, sql, params) }, close }
}

/** An empty database beside the one of this run. The caller drops it. */
export interface EmptyDatabase {
  readonly db: TestDb
  readonly url: string
  readonly name: string
  readonly drop: () => Promise<void>
}

export async function openEmptyDatabase(suffix: string): Promise<EmptyDatabase> {
  const { db: admin, name: own, socketPath } = testDatabase()
  const name = `${own}_${suffix}`
  const url = urlOf(socketPath, name)
  await admin.query(`CREATE DATABASE ${name}`)
  const { db, close } = await openTestDb(url)
  const drop = async (): Promise<void> => {
    await close()
    await admin.query(`DROP DATABASE ${name}`)
  }
  return { db, url, name, drop }
}

/** Runs a statement on the connections that commands use, and returns what the driver does. */
export async function query<T = unknown>(
  { pool }: Pick<Database, 'pool'>,
  sql: string,
  params: unknown[] = [],
): Promise<T> {
  const connection = await pool.take()
  try {
    return (await (params.length === 0 ? connection.command(sql) : connection.send(sql, params as Param[]))) as T
  } finally {
    pool.release(connection)
  }
}

/** A worker of mocha keeps its database for the next file; a later run drops it as one of a dead run. */
export async function stopTestDatabase(): Promise<void> {
  if (process.env['MOCHA_WORKER_ID'] !== undefined) return
  await started?.stop()
  started = null
}

const EMPTY_FOR_MS = 10_000
const FEW_ROWS = 1000

/** Deletes every row. One query finds the tables that have any. */
export async function emptyTestDatabase(): Promise<void> {
  const { db } = testDatabase()
  const tables = await tableNames(db)
  const probes = tables.map((table) => `(SELECT '${table}' AS name FROM ${table} LIMIT 1)`)
  // A thread or a daemon that is about to end may still write.
  await retrying(
    async () => {
      const filled: { name: string }[] = await db.query(probes.join(' UNION ALL '))
      for (const { name } of filled) await emptyTable(db, name)
    },
    EMPTY_FOR_MS,
    () => undefined,
  )
}

/** Deleting many rows takes a server longer than it may be silent. To truncate a table takes as long as to delete a thousand. */
async function emptyTable(db: TestDb, name: string): Promise<void> {
  const { affectedRows } = await db.query<{ affectedRows: number }>(`DELETE FROM ${name} LIMIT ${FEW_ROWS}`)
  if (affectedRows === FEW_ROWS) await clearTable(db, { name })
}

/** Removes every row of a table, whose next row gets the id 1. */
export async function clearTable({ query }: TestDb, { name }: Pick<AnyTable, 'name'>): Promise<void> {
  await query(`TRUNCATE TABLE ${name}`)
}

/** The next row of a table gets this id, unless a higher one was given. */
export async function giveNextId({ query }: TestDb, { name }: AnyTable, id: number): Promise<void> {
  await query(`ALTER TABLE ${name} AUTO_INCREMENT = ${id}`)
}

/** Whether a transaction waits for a row that another has locked. */
export async function isSomebodyWaiting(): Promise<boolean> {
  return (await countWaiting()) > 0
}

/**
 * How many transactions wait for a row of this database that another has locked: the server has those of other files, too. `INNODB_TRX` would
 * be a tenth of a second old. Above its list of transactions, the status has those of the latest deadlock.
 */
export async function countWaiting(): Promise<number> {
  const { db, name } = testDatabase()
  const [row] = await db.query<{ Status: string }[]>('SHOW ENGINE INNODB STATUS')
  const [, present = ''] = row!.Status.split(/^TRANSACTIONS$/m)
  return present.match(new RegExp(`FOR THIS LOCK TO BE GRANTED:\\n.* table \`${name}\``, 'g'))?.length ?? 0
}

/** The address of another database on the same server. */
export function urlOf(socketPath: string, database: string): string {
  return `mysql://root@localhost/${database}?socketPath=${encodeURIComponent(socketPath)}`
}

let knownTables: string[] | null = null

async function tableNames(db: TestDb): Promise<string[]> {
  if (!knownTables) {
    const rows: { name: string }[] = await db.query(
      `SELECT table_name AS name FROM information_schema.tables
       WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name NOT IN ('migrations', 'schema_lease')`,
    )
    knownTables = rows.map(({ name }) => name)
  }
  return knownTables
}

/** Every row of every table, by the name of the table. */
export async function everyRow(): Promise<Record<string, unknown>> {
  const { db } = testDatabase()
  const rows: Record<string, unknown> = {}
  for (const name of await tableNames(db)) rows[name] = await db.query(`SELECT * FROM ${name}`)
  return rows
}

async function dropLeftoverDatabases(admin: Connection): Promise<void> {
  const [rows] = await admin.query<RowDataPacket[]>('SHOW DATABASES')
  for (const name of rows.map((row) => String(row['Database']))) {
    const owner = Number(new RegExp(`^${PREFIX}(\\d+)`).exec(name)?.[1])
    const isLeftover = owner === process.pid || (owner > 0 && !isAlive(owner))
    // Quoted, because a test makes a name with a dot. Another run may drop it at the same moment.
    if (isLeftover) await admin.query(`DROP DATABASE IF EXISTS \`${name}\``)
  }
}
