import type { ConnectionOptions } from 'mysql2'
import { createConnection, type RowDataPacket } from 'mysql2/promise'
import { messageOf } from '#shared/errors.ts'
import { readClusterNode, type Ask, type ClusterNode } from './cluster.ts'
import { readGroupMember, type GroupMember } from './group-member.ts'
import { parseDatabaseUrl, type Database, type Target } from './connect.ts'
import { CONNECT_TIMEOUT_MS } from './patience.ts'
import { serverName } from './servers.ts'
import { isGroupCutOff } from './session.ts'

/** The state of a server of `BILLING_DATABASE_URL`. `node` and `member` are null outside such a cluster, `failure` is null if it answered. */
export interface ServerReport {
  readonly place: string
  /** Of MariaDB Galera. */
  readonly node: ClusterNode | null
  /** Of MySQL Group Replication. */
  readonly member: GroupMember | null
  readonly failure: string | null
}

/** Asks each server over a new connection. */
export async function inspectServers(databaseUrl: string): Promise<ServerReport[]> {
  return Promise.all(
    parseDatabaseUrl(databaseUrl).map(async (target) => {
      const place = serverName(target)
      try {
        return { place, ...(await askServer(target)), failure: null }
      } catch (error) {
        return { place, node: null, member: null, failure: messageOf(error) }
      }
    }),
  )
}

async function askServer(target: Target): Promise<Pick<ServerReport, 'node' | 'member'>> {
  const connection = await createConnection({
    ...target,
    connectTimeout: CONNECT_TIMEOUT_MS,
  } satisfies ConnectionOptions)
  try {
    const ask: Ask = async (sql) => (await connection.query<RowDataPacket[]>(sql))[0]
    return { node: await readClusterNode(ask), member: await readGroupMember(ask) }
  } finally {
    connection.destroy()
  }
}

/** Whether the server in use is known to be a member of a group without a majority. Sends no statement to a server without a group. */
export async function isWithoutMajority({ pool }: Pick<Database, 'pool'>): Promise<boolean> {
  const connection = await pool.take()
  try {
    return connection.cluster === 'group' && (await isGroupCutOff(connection))
  } finally {
    pool.release(connection)
  }
}
