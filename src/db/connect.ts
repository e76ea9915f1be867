import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { ConnectionOptions, PoolOptions, SslOptions } from 'mysql2'
import { createConnection } from 'mysql2/promise'
import { DataSource } from 'typeorm'
import type { Config } from '#config.ts'
import { startEmbedded } from './embedded.ts'
import { runMigrations } from './migrate.ts'
import { poolOf, sendOver } from './mysql-adapter.ts'
import { queriesOver, type Queries } from './queries.ts'
import { openPool } from './session.ts'
import type { AnyTable } from './table.ts'

/** The database: statements on any connection of the pool. A transaction has one of its own (`inTransaction`). */
export interface Database extends Queries {
  /** For what knows TypeORM alone: the schema and its migrations. */
  readonly source: DataSource
}

export interface OpenDatabase {
  readonly db: Database
  readonly close: () => Promise<void>
}

export interface OpenOptions {
  /** Connections at most; each worker thread has a pool of its own. */
  readonly poolSize?: number
  /** How long a statement may take. */
  readonly statementSeconds?: number
}

interface Target {
  readonly host?: string
  readonly port?: number
  readonly socketPath?: string
  readonly user: string
  readonly password?: string
  readonly database: string
  readonly ssl?: SslOptions
}

const DEFAULT_POOL_SIZE = 10
const DEFAULT_STATEMENT_SECONDS = 10
const CONNECT_TIMEOUT_MS = 5000
/** Of one connection: the server keeps 16 382 for all by default, and of statements whose text varies only the last are worth keeping. */
const MAX_PREPARED = 200
const DEFAULT_PORT = 3306

/**
 * Opens the database of the settings: the server at `BILLING_DATABASE_URL`, or else the embedded one, which is migrated here
 * (a server's database is migrated by `billing-cli migrate` alone). Throws where it cannot be reached.
 */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'home'>,
  tables: readonly AnyTable[],
  options: OpenOptions = {},
): Promise<OpenDatabase> {
  if (config.databaseUrl !== null) {
    const source = await openDataSource(parseDatabaseUrl(config.databaseUrl), tables, options)
    return { db: databaseOn(source), close: () => source.destroy() }
  }
  const embedded = await startEmbedded(config.home)
  try {
    const source = await openDataSource(embedded.connection, tables, options)
    await runMigrations(source)
    const close = async (): Promise<void> => {
      await source.destroy()
      await embedded.release()
    }
    return { db: databaseOn(source), close }
  } catch (error) {
    await embedded.release()
    throw error
  }
}

export function databaseOn(source: DataSource): Database {
  return { ...queriesOver(sendOver(poolOf(source))), source }
}

async function openDataSource(target: Target, tables: readonly AnyTable[], options: OpenOptions): Promise<DataSource> {
  const isMariaDb = (await versionOf(target)).includes('MariaDB')
  const session = { isMariaDb, statementSeconds: options.statementSeconds ?? DEFAULT_STATEMENT_SECONDS }
  const { user, ...place } = target
  const db = new DataSource({
    // With the other family's type, TypeORM writes SQL that the server does not know.
    type: isMariaDb ? 'mariadb' : 'mysql',
    ...place,
    username: user,
    charset: 'utf8mb4',
    timezone: 'Z',
    supportBigNumbers: true,
    bigNumberStrings: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    poolSize: options.poolSize ?? DEFAULT_POOL_SIZE,
    extra: { maxPreparedStatements: MAX_PREPARED },
    // TypeORM asks its driver for one pool: this is where each connection gets its session.
    driver: { createPool: (pool: PoolOptions) => openPool(pool, session) },
    entities: tables.map(({ schema }) => schema),
    synchronize: false,
    logging: false,
  })
  return db.initialize()
}

async function versionOf(target: Target): Promise<string> {
  const connection = await createConnection({
    ...target,
    connectTimeout: CONNECT_TIMEOUT_MS,
  } satisfies ConnectionOptions)
  try {
    const [rows] = await connection.query('SELECT VERSION() AS version')
    return (rows as { version: string }[])[0]?.version ?? ''
  } finally {
    connection.destroy()
  }
}

/**
 * Reads `mysql://user:password@host:port/database`. `?ssl=` is `true` (the server's certificate is checked against the system's
 * authorities and for the host's name), the path of a file with an authority's certificate, or JSON with `ca`, `cert`, `key`;
 * `?socketPath=` takes the place of host and port. Any other parameter is refused: it would be ignored in silence.
 */
export function parseDatabaseUrl(text: string): Target {
  const url = new URL(text)
  for (const name of url.searchParams.keys()) {
    if (name !== 'ssl' && name !== 'socketPath') {
      throw new Error(`BILLING_DATABASE_URL has a parameter that is not known: ${name} (ssl and socketPath are)`)
    }
  }
  const database = decodeURIComponent(url.pathname.slice(1))
  if (url.username === '' || database === '') throw new Error('BILLING_DATABASE_URL needs a user and a database')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const socketPath = url.searchParams.get('socketPath')
  const ssl = parseSsl(url.searchParams.get('ssl'))
  if (ssl?.verifyIdentity && isIP(host)) {
    // The driver would look for "localhost" in the certificate.
    throw new Error('BILLING_DATABASE_URL: with ssl the host must be a name, which the certificate is checked for')
  }
  return {
    ...(socketPath === null ? { host, port: Number(url.port || DEFAULT_PORT) } : { socketPath }),
    user: decodeURIComponent(url.username),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
    database,
    ...(ssl ? { ssl } : {}),
  }
}

function parseSsl(value: string | null): SslOptions | null {
  if (value === null || value === 'false') return null
  const checked: SslOptions = { rejectUnauthorized: true, verifyIdentity: true }
  if (value === 'true') return checked
  if (value.startsWith('/')) return { ...checked, ca: readFileSync(value, 'utf8') }
  if (value.startsWith('{')) return { ...checked, ...(JSON.parse(value) as SslOptions) }
  throw new Error('BILLING_DATABASE_URL: ssl must be true, false, the path of a certificate file, or JSON')
}
