import { bigint, exact, sum, text } from '#db/columns.ts'
import type { Target } from '#db/connect.ts'
import type { Family } from '#embedded/setup.ts'
import { named } from '#db/identifier.ts'
import type { Queries } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import { UNFINISHED_RESTORE } from '#db/unfinished-restore.ts'
import { isMoney } from './money-columns.ts'

type Readable = Pick<Queries, 'all' | 'one' | 'single'>

/** Column names by table. */
export type MoneyColumns = ReadonlyMap<string, readonly string[]>

/** The contents of a database. The sums are of money columns, in smallest units over all currencies. */
export interface Contents {
  readonly rows: Readonly<Record<string, number>>
  readonly sums: Readonly<Record<string, Readonly<Record<string, bigint>>>>
}

const NAME = shape({ name: exact('name', 255) })

export async function readFamily(db: Readable): Promise<{ readonly family: Family; readonly version: string }> {
  const { version } = await db.single(shape({ version: text() }), 'SELECT VERSION() AS version')
  return { family: version.includes('MariaDB') ? 'MariaDB' : 'MySQL', version }
}

/** The tables of Paygate with the server's estimate of their rows, by name. */
export async function readTables(db: Readable): Promise<ReadonlyMap<string, number>> {
  const found = await db.all(
    shape({ name: exact('name', 64), estimate: bigint() }),
    `SELECT table_name AS name, COALESCE(table_rows, 0) AS estimate FROM information_schema.tables
     WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' AND table_name <> ? ORDER BY table_name`,
    [UNFINISHED_RESTORE],
  )
  return new Map(found.map(({ name, estimate }) => [name, estimate]))
}

/** The money columns of every table, whichever version made it. */
export async function readMoneyColumns(db: Readable): Promise<MoneyColumns> {
  const found = await db.all(
    shape({ table: exact('table', 64), column: exact('column', 64) }),
    `SELECT table_name AS \`table\`, column_name AS \`column\` FROM information_schema.columns
     WHERE table_schema = DATABASE() AND data_type = 'bigint' ORDER BY table_name, ordinal_position`,
  )
  const money = Map.groupBy(
    found.filter(({ column }) => isMoney(column)),
    ({ table }) => table,
  )
  return new Map([...money].map(([table, columns]) => [table, columns.map(({ column }) => column)]))
}

/** The columns whose sums are known. */
export function moneyColumnsOf({ sums }: Contents): MoneyColumns {
  return new Map(Object.entries(sums).map(([table, columns]) => [table, Object.keys(columns)]))
}

/** The name of the newest migration that was applied; null for a database without any. */
export async function readSchema(db: Readable): Promise<string | null> {
  const tables = await readTables(db)
  // The first version had its own table.
  const bookkeeping = ['migrations', 'schema_migrations'].find((name) => tables.has(name))
  if (bookkeeping === undefined) return null
  const newest = await db.one(NAME, `SELECT name FROM ${bookkeeping} ORDER BY RIGHT(name, 13) DESC LIMIT 1`)
  return newest?.name ?? null
}

/** Whether the database has neither a table nor a view. */
export async function isEmptyDatabase(db: Readable): Promise<boolean> {
  const found = await db.one(
    NAME,
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() LIMIT 1',
  )
  return found === null
}

/** Drops every table but the mark of an unfinished restore. */
export async function dropTables(db: Queries): Promise<void> {
  for (const table of (await readTables(db)).keys()) await db.run(`DROP TABLE ${named(table)}`)
}

const RESTORER = 'restorer'

/**
 * Runs the work with a user of its own on Paygate's own server, who may fill this database and do nothing else. As the server's
 * administrator, the SQL of a forged backup could write to files of the machine, such as by the server's log.
 */
export async function asRestorer<T>(db: Queries, target: Target, work: (restorer: Target) => Promise<T>): Promise<T> {
  await db.run(`CREATE USER IF NOT EXISTS '${RESTORER}'@'localhost'`)
  await db.run(
    `GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON ${named(target.database)}.* TO '${RESTORER}'@'localhost'`,
  )
  const dropUser = (): Promise<unknown> => db.run(`DROP USER '${RESTORER}'@'localhost'`)
  const result = await work({ ...target, user: RESTORER }).catch(async (error: unknown) => {
    // Where the server is gone, this fails too, and the first error says why.
    await dropUser().catch(() => undefined)
    throw error
  })
  await dropUser()
  return result
}

/** Whether there is any app: without one there is nothing to lose. */
export async function hasApps(db: Readable): Promise<boolean> {
  if (!(await readTables(db)).has('apps')) return false
  return (await db.one(shape({ id: bigint() }), 'SELECT id FROM apps LIMIT 1')) !== null
}

/** Counts the rows of every table, and adds up the named columns. */
export async function readContents(db: Readable, money: MoneyColumns): Promise<Contents> {
  const rows: Record<string, number> = {}
  const sums: Record<string, Record<string, bigint>> = {}
  for (const table of (await readTables(db)).keys()) {
    const columns = money.get(table) ?? []
    const totals = columns.map((column) => `COALESCE(SUM(${named(column)}), 0) AS ${named(column)}`)
    const { rowCount, ...totalOf } = await db.single(
      shape({ rowCount: bigint(), ...Object.fromEntries(columns.map((column) => [column, sum()])) }),
      `SELECT ${['COUNT(*) AS rowCount', ...totals].join(', ')} FROM ${named(table)}`,
    )
    rows[table] = rowCount
    if (columns.length > 0) sums[table] = totalOf
  }
  return { rows, sums }
}

/** Tables whose ids are known outside. */
const SEEN_OUTSIDE = [
  'alert_messages',
  'apps',
  'checkout_sessions',
  'customers',
  'events',
  'payments',
  'plans',
  'prices',
  'promotions',
  'receipts',
  'refunds',
  'subscriptions',
  'transactions',
]
/** More rows than a table can get between a backup and the loss of its database. */
const GAP = 10_000_000

/**
 * Makes new ids start far after the newest one, or after 0. The lost database gave out the ids in between: receivers of webhooks drop events
 * whose id they have seen, and sellers go on to open checkouts for prices that are gone.
 */
export async function leaveGaps(db: Queries): Promise<void> {
  const present = await readTables(db)
  for (const table of SEEN_OUTSIDE.filter((name) => present.has(name))) {
    const { last } = await db.single(shape({ last: bigint() }), `SELECT COALESCE(MAX(id), 0) AS last FROM ${table}`)
    await db.run(`ALTER TABLE ${table} AUTO_INCREMENT = ${last + GAP}`)
  }
}
