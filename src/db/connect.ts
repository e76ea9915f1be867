import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { SslOptions } from 'mysql2'
import type { Config } from '#config/config.ts'
import { addressesOf } from '#shared/database-url.ts'
import { MAX_PREPARED } from './connection.ts'
import { ConnectionPool } from './pool.ts'
import { queriesOver, type Queries, type Send } from './queries.ts'
import { CONNECT_TIMEOUT_MS } from './patience.ts'
import { readingAgain } from './retry.ts'
import { Servers, type ServerAddress } from './servers.ts'
import { sessionOf } from './session.ts'
import { refuseHalfRestored } from './unfinished-restore.ts'

/** The database: statements on any connection of the pool. A transaction uses one connection (`inTransaction`). */
export interface Database extends Queries {
  readonly pool: ConnectionPool
  /** The configured servers, that of the pool first: for connections outside the pool. */
  readonly targets: readonly Target[]
}

export interface OpenDatabase {
  readonly db: Database
  readonly close: () => Promise<void>
}

export interface OpenOptions {
  /** Maximum number of connections. Each worker thread has its own pool. */
  readonly poolSize?: number
  /** Maximum duration of a statement. */
  readonly statementSeconds?: number
  /** Leaves the embedded database's schema as it is. */
  readonly keepsSchema?: boolean
  /** Opens a database even if it holds only a part of a backup. */
  readonly isForRestore?: boolean
}

export interface Target extends ServerAddress {
  readonly user: string
  readonly password?: string
  readonly database: string
  readonly ssl?: SslOptions
}

/** Few: on two cores, six transactions at a time take the database a tenth less time each than ten (`npm run bench -- payment`). */
const DEFAULT_POOL_SIZE = 6
const DEFAULT_STATEMENT_SECONDS = 10
/** Grace period for the answer after the server's own deadline for the statement. */
const ANSWER_SECONDS = 1
const DEFAULT_PORT = 3306

/**
 * Opens the configured database: the server at `BILLING_DATABASE_URL`, or otherwise the embedded one. Migrates the embedded one in
 * development, and in production while it is new; only `billing-cli migrate` migrates any other (R380). Throws if the database cannot be
 * reached, or holds only a part of a backup (R482).
 */
export async function openDatabase(
  config: Pick<Config, 'databaseUrl' | 'home'> & Partial<Pick<Config, 'env'>>,
  options: OpenOptions = {},
): Promise<OpenDatabase> {
  if (config.databaseUrl !== null) {
    const again = 'create the database anew, then run billing-cli backup restore'
    return openWhole(parseDatabaseUrl(config.databaseUrl), options, again)
  }
  const [{ startEmbedded }, { EXPANDING, pendingMigrations, runMigrations }] = await Promise.all([
    import('#embedded/start-embedded.ts'),
    import('./migrate.ts'),
  ])
  const embedded = await startEmbedded(config.home)
  try {
    const again = 'run billing-cli backup restore --into embedded-service again'
    const opened = await openWhole([embedded.connection], options, again)
    const isNew = async () => (await pendingMigrations(opened.db)).length === EXPANDING.length
    if (!options.keepsSchema && (config.env !== 'production' || (await isNew()))) await runMigrations(opened.db)
    const close = async (): Promise<void> => {
      await opened.close()
      embedded.release()
    }
    return { db: opened.db, close }
  } catch (error) {
    embedded.release()
    throw error
  }
}

/** Throws `service_unavailable` if the database holds only a part of a backup; `again` says how to restore it. */
async function openWhole(targets: readonly Target[], options: OpenOptions, again: string): Promise<OpenDatabase> {
  const opened = await openPoolOf(targets, options)
  try {
    if (!options.isForRestore) await refuseHalfRestored(opened.db, again)
    return opened
  } catch (error) {
    await opened.close()
    throw error
  }
}

async function openPoolOf(targets: readonly Target[], options: OpenOptions): Promise<OpenDatabase> {
  const limit = options.poolSize ?? DEFAULT_POOL_SIZE
  const statementSeconds = options.statementSeconds ?? DEFAULT_STATEMENT_SECONDS
  const servers = new Servers(targets, {
    driver: {
      ...targets[0],
      charset: 'utf8mb4',
      timezone: 'Z',
      supportBigNumbers: true,
      bigNumberStrings: false,
      connectTimeout: CONNECT_TIMEOUT_MS,
      maxPreparedStatements: MAX_PREPARED,
      connectionLimit: limit,
    },
    silence: { maxMs: (statementSeconds + ANSWER_SECONDS) * 1000, hasOthers: targets.length > 1 },
    beginSession: sessionOf(statementSeconds, targets.length > 1),
  })
  const pool = new ConnectionPool(servers, limit)
  // Throws for a wrong address now, and keeps the connection for the first statement.
  pool.release(await pool.take())
  const queries = queriesOver(retryReads(pool.send))
  return {
    db: {
      ...queries,
      pool,
      get targets() {
        return servers.addresses
      },
    },
    close: () => pool.end(),
  }
}

/** Retries reads that meet a lost connection or a node without a majority. */
function retryReads(send: Send): Send {
  return async (sql, params) => (sql.startsWith('SELECT') ? readingAgain(() => send(sql, params)) : send(sql, params))
}

/**
 * Parses `mysql://user:password@host:port/database`. The nodes of a cluster are separated by commas: `h1:3306,h2:3306,h3:3306`. `?ssl=` is
 * `true`, the path of a file with an authority's certificate, or JSON with `ca`, `cert`, `key`. The server's certificate is checked for the
 * host's name, and with `true` against the system's authorities. `?socketPath=` replaces host and port. Throws for any other parameter,
 * because it would be ignored.
 */
export function parseDatabaseUrl(text: string): Target[] {
  const targets = addressesOf(text).map(parseAddress)
  if (targets.length > 1 && targets.some(({ socketPath }) => socketPath !== undefined))
    throw new Error('BILLING_DATABASE_URL: socketPath cannot be combined with several hosts')
  return targets
}

function parseAddress(text: string): Target {
  const url = new URL(text)
  for (const name of url.searchParams.keys()) {
    if (name !== 'ssl' && name !== 'socketPath') {
      throw new Error(`BILLING_DATABASE_URL has an unknown parameter: ${name} (supported: ssl, socketPath)`)
    }
  }
  const database = decodeURIComponent(url.pathname.slice(1))
  if (url.username === '' || database === '') throw new Error('BILLING_DATABASE_URL needs a user and a database')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const socketPath = url.searchParams.get('socketPath')
  const ssl = parseSsl(url.searchParams.get('ssl'))
  if (ssl?.verifyIdentity && isIP(host)) {
    // The driver would look for "localhost" in the certificate.
    throw new Error('BILLING_DATABASE_URL: with ssl the host must be a name, because the certificate is checked for it')
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
