import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase, type OpenDatabase, type OpenOptions } from '#db/connect.ts'
import { testDatabase, urlOf } from '../support/database.ts'
import { errorPacket, MYSQL } from '../support/line.ts'

/**
 * What happens to a statement on its way: it passes; it is lost; its answer is lost; the connection hangs; it is refused, as by a cluster
 * node that is cut off from the majority, or with another error; it is killed (`KILL QUERY`) before it runs; or it runs, and is answered
 * as killed.
 */
export type Fate = 'pass' | 'lost' | 'answer lost' | 'hang' | 'refused' | 'killed' | 'run, answered as killed' | Errno
/** A server's error. A deadlock (1213) rolls the transaction back; after the others it goes on without the statement. */
export type Errno = keyof typeof ERRORS

/** A proxy of a database server whose connections break on demand. */
export interface LossyServer {
  readonly socketPath: string
  /** At 127.0.0.1, if the proxy listens on TCP. */
  readonly port: number
  /** The server's UNIX socket; a change applies to new connections. */
  target: string
  /** Decides what happens to each statement, by its text. */
  fateOf: (statement: string) => Fate
  /** Decides whether a statement can be prepared. */
  fateOfPreparing: (statement: string) => 'pass' | Errno
  /** As a server whose machine is suspended: it accepts connections, and nothing comes back. */
  isFrozen: boolean
  /** The most commands that a client sent before it had the answer to the first. */
  mostPacketsAtOnce: number
  /** The server's numbers of the connections that are open. */
  readonly threadIds: ReadonlySet<number>
  close(): Promise<void>
}

const ERRORS = {
  1047: ['08S01', 'WSREP has not yet prepared node for application use'],
  1205: ['HY000', 'Lock wait timeout exceeded; try restarting transaction'],
  1213: ['40001', 'Deadlock found when trying to get lock; try restarting transaction'],
  1290: ['HY000', 'The MariaDB server is running with the --read-only option so it cannot execute this statement'],
  1317: ['70100', 'Query execution was interrupted'],
  1461: ['42000', "Can't create more than max_prepared_stmt_count statements (current value: 16382)"],
  1969: ['70100', 'Query execution was interrupted (max_statement_time exceeded)'],
} as const

const QUERY = 0x03
const PREPARE = 0x16
const EXECUTE = 0x17
/** Ends a prepared statement, without an answer. */
const CLOSE = 0x19

/** The proxy listens on a UNIX socket, or with `byTcp` on a port. */
export async function lossyServer(target: string, byTcp = false): Promise<LossyServer> {
  const socketPath = join(tmpdir(), `lossy-${process.pid}-${Math.random().toString(36).slice(2)}.sock`)
  const sockets = new Set<Socket>()
  const threadIds = new Set<number>()
  const server = createServer((client) => {
    const upstream = createConnection(lossy.target)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
    const cut = (): void => {
      client.destroy()
      upstream.destroy()
    }
    client.on('close', cut)
    upstream.on('close', cut)
    let threadId: number | null = null
    upstream.once('data', (greeting) => threadIds.add((threadId = threadIdOf(greeting))))
    upstream.on('close', () => threadId !== null && threadIds.delete(threadId))
    let fate: Fate = 'pass'
    let hasPrefix = false
    /** The text last sent to be prepared, and the prepared statements by the server's number. */
    let preparing: string | null = null
    const prepared = new Map<number, string>()
    const textOf = (packet: Buffer): string | null => {
      if (packet[4] === QUERY) return packet.subarray(hasNoAttributes(packet) ? 7 : 5).toString('utf8')
      return packet[4] === EXECUTE ? (prepared.get(packet.readUInt32LE(5)) ?? null) : null
    }
    /** Packets that came together are forwarded one by one, each after the previous answer, so that it is known whose answer is lost. */
    let waiting: Buffer = Buffer.alloc(0)
    let isAnswered = true
    const passNext = (): void => {
      const packet = isAnswered ? firstPacket(waiting) : null
      if (!packet) {
        if (waiting.length > 0) lossy.mostPacketsAtOnce = Math.max(lossy.mostPacketsAtOnce, 2)
        return
      }
      lossy.mostPacketsAtOnce = Math.max(lossy.mostPacketsAtOnce, 1)
      waiting = waiting.subarray(packet.length)
      if (packet[4] === PREPARE) {
        preparing = packet.subarray(5).toString('utf8')
        if (fate === 'pass') fate = lossy.fateOfPreparing(preparing)
      }
      if (packet[4] === QUERY) hasPrefix = hasNoAttributes(packet)
      const statement = textOf(packet)
      if (fate === 'pass' && statement !== null) fate = lossy.fateOf(statement)
      if (fate === 1213) {
        isAnswered = false
        upstream.write(rollback(hasPrefix))
      } else if (isError(fate)) {
        preparing = null
        client.write(errorOf(fate))
        fate = 'pass'
      } else if (fate === 'lost') cut()
      else if (fate !== 'hang') {
        isAnswered = packet[4] === CLOSE
        upstream.write(packet)
      }
      passNext()
    }
    client.on('data', (sent) => {
      if (lossy.isFrozen) return
      // Packets of the login are not statements.
      waiting = Buffer.concat([waiting, sent])
      passNext()
    })
    upstream.on('data', (answer) => {
      if (lossy.isFrozen) return
      if (preparing !== null && answer[4] === 0) prepared.set(answer.readUInt32LE(5), preparing)
      preparing = null
      isAnswered = true
      if (fate === 'answer lost') cut()
      else if (fate === 'run, answered as killed' || fate === 1213) {
        const error = errorOf(fate === 1213 ? fate : 1317)
        fate = 'pass'
        client.write(error)
      } else if (fate === 'pass') client.write(answer)
      passNext()
    })
  })
  if (byTcp) server.listen(0, '127.0.0.1')
  else server.listen(socketPath)
  await once(server, 'listening')
  const address = server.address()
  const lossy: LossyServer = {
    socketPath,
    port: typeof address === 'object' && address !== null ? address.port : 0,
    target,
    fateOf: () => 'pass',
    fateOfPreparing: () => 'pass',
    threadIds,
    isFrozen: false,
    mostPacketsAtOnce: 0,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return lossy
}

/** It stands behind the version, which ends with a zero. */
function threadIdOf(greeting: Buffer): number {
  return greeting.readUInt32LE(greeting.indexOf(0, 5) + 1)
}

/** To MySQL the driver sends the number of a query's attributes before its text, and of their sets. */
function hasNoAttributes(query: Buffer): boolean {
  return query[5] === 0 && query[6] === 1
}

/** The first packet, if it has arrived completely. */
function firstPacket(bytes: Buffer): Buffer | null {
  const length = MYSQL.packetLength(bytes)
  return length === null ? null : bytes.subarray(0, length)
}

function isError(fate: Fate): fate is 'refused' | 'killed' | Errno {
  return typeof fate === 'number' || fate === 'refused' || fate === 'killed'
}

function errorOf(fate: 'refused' | 'killed' | Errno): Buffer {
  const errno = fate === 'refused' ? 1047 : fate === 'killed' ? 1317 : fate
  const [state, message] = ERRORS[errno]
  return errorPacket(errno, state, message)
}

function rollback(hasPrefix: boolean): Buffer {
  const body = Buffer.concat([Buffer.from(hasPrefix ? [QUERY, 0, 1] : [QUERY]), Buffer.from('ROLLBACK')])
  return Buffer.concat([Buffer.from([body.length, 0, 0, 0]), body])
}

/** A database over a connection that breaks on demand. */
export interface LossyDatabase {
  readonly line: LossyServer
  readonly db: OpenDatabase['db']
  readonly close: () => Promise<void>
}

/** The test database behind a lossy server. Its statements may take 1.5 s, which a busy machine does not reach. */
export async function openLossyDatabase(
  options: OpenOptions = { poolSize: 2, statementSeconds: 1.5 },
): Promise<LossyDatabase> {
  const { socketPath, name } = testDatabase()
  const line = await lossyServer(socketPath)
  const config = { databaseUrl: urlOf(line.socketPath, name), home: '' }
  const { db, close } = await openDatabase(config, options)
  return {
    line,
    db,
    async close() {
      await close()
      await line.close()
    },
  }
}

/** The first COMMIT from now on meets the fate, and the others pass. Returns how many there were. */
export function strikeFirstCommit(line: LossyServer, fate: Fate): () => number {
  let commits = 0
  line.fateOf = (statement) => (statement === 'COMMIT' && (commits += 1) === 1 ? fate : 'pass')
  return () => commits
}
