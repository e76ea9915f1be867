import type { ConnectionOptions } from 'mysql2'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { messageOf } from '#shared/errors.ts'
import { readClusterNode, type ClusterNode } from './cluster.ts'
import { CONNECT_TIMEOUT_MS, parseDatabaseUrl, type Target } from './connect.ts'
import { nameOf } from './servers.ts'

/** The state of a server of `BILLING_DATABASE_URL`. `node` is null outside a cluster, `failure` is null if it answered. */
export interface ServerReport {
  readonly place: string
  readonly node: ClusterNode | null
  readonly failure: string | null
}

/** Asks each server over a new connection. */
export async function inspectServers(databaseUrl: string): Promise<ServerReport[]> {
  return Promise.all(
    parseDatabaseUrl(databaseUrl).map(async (target) => {
      try {
        return { place: nameOf(target), node: await askNode(target), failure: null }
      } catch (error) {
        return { place: nameOf(target), node: null, failure: messageOf(error) }
      }
    }),
  )
}

async function askNode(target: Target): Promise<ClusterNode | null> {
  const connection = await createConnection({
    ...target,
    connectTimeout: CONNECT_TIMEOUT_MS,
  } satisfies ConnectionOptions)
  try {
    return await readClusterNode(async (sql) => (await connection.query<RowDataPacket[]>(sql))[0])
  } finally {
    connection.destroy()
  }
}
