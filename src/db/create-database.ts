import { createConnection, type ConnectionOptions } from 'mysql2/promise'
import { isLoopbackHost } from '#shared/loopback.ts'
import { parseDatabaseUrl, type Target } from './connect.ts'
import { named } from './identifier.ts'
import { CONNECT_TIMEOUT_MS } from './patience.ts'

/** Whether a database can be used. `missing`: the server accepts the user but has no such database; `denied`: it refuses the user. */
export type DatabaseState = 'usable' | 'missing' | 'denied'

/** Asks the first server of the address. Throws if that server cannot be reached. */
export async function databaseState(url: string): Promise<DatabaseState> {
  const [target] = parseDatabaseUrl(url) as [Target]
  try {
    await withConnection(target, () => Promise.resolve())
    return 'usable'
  } catch (error) {
    const { code } = error as { code?: string }
    if (code === 'ER_BAD_DB_ERROR') return 'missing'
    if (code === 'ER_ACCESS_DENIED_ERROR' || code === 'ER_DBACCESS_DENIED_ERROR') return 'denied'
    throw error
  }
}

/** Creates the database as the user of the address, who needs the privilege to do so. */
export async function createDatabase(url: string): Promise<void> {
  const [{ database, ...server }] = parseDatabaseUrl(url) as [Target]
  await withConnection(server, (query) => query(createStatement(database)))
}

/**
 * The statements with which the server's root creates the database and its user, with the privileges that Paygate needs. An existing user
 * keeps the password. In a GRANT, `_` and `%` of a name stand for any characters unless they are escaped.
 */
export function provisionStatements(url: string): string {
  const [{ database, user, password = '' }] = parseDatabaseUrl(url) as [Target]
  const accounts = ['localhost', '127.0.0.1', '::1'].map((host) => `${quoted(user)}@${quoted(host)}`)
  const lines = accounts.flatMap((account) => [
    `CREATE USER IF NOT EXISTS ${account} IDENTIFIED BY ${quoted(password)}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON ${named(database.replace(/[_%]/g, '\\$&'))}.* TO ${account}`,
  ])
  return `${[createStatement(database), ...lines].join(';\n')};\n`
}

/** Asks a server for its port, as a line for its command line. */
export const PORT_STATEMENT = 'SELECT @@port;\n'

/** The port of the server, if the address names one on this machine; null for a server on another machine or a socket. */
export function localPort(url: string): number | null {
  const [{ host, port = null }] = parseDatabaseUrl(url) as [Target]
  return host !== undefined && isLoopbackHost(host) ? port : null
}

function createStatement(database: string): string {
  return `CREATE DATABASE IF NOT EXISTS ${named(database)} CHARACTER SET utf8mb4`
}

async function withConnection(
  options: ConnectionOptions,
  work: (query: (sql: string) => Promise<unknown>) => Promise<unknown>,
): Promise<void> {
  const connection = await createConnection({ ...options, connectTimeout: CONNECT_TIMEOUT_MS })
  try {
    await work((sql) => connection.query(sql))
  } finally {
    await connection.end()
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}
