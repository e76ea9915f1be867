import { once } from 'node:events'
import { createConnection, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What becomes of a statement on its way: it passes, never arrives, arrives and its answer is lost, or nothing moves any more. */
export type Fate = 'pass' | 'lost' | 'answer lost' | 'silence'

/** A database server behind a line that breaks on demand. */
export interface LossyServer {
  readonly socketPath: string
  /** Decides about each statement by its text. */
  fateOf: (statement: string) => Fate
  close(): Promise<void>
}

const QUERY_COMMAND = 3

export async function lossyServer(target: string): Promise<LossyServer> {
  const socketPath = join(tmpdir(), `lossy-${process.pid}-${Math.random().toString(36).slice(2)}.sock`)
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = createConnection(target)
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
    let fate: Fate = 'pass'
    client.on('data', (packet) => {
      const statement = packet[4] === QUERY_COMMAND ? packet.subarray(5).toString('utf8') : ''
      if (fate === 'pass') fate = lossy.fateOf(statement)
      if (fate === 'lost') cut()
      else if (fate !== 'silence') upstream.write(packet)
    })
    upstream.on('data', (answer) => {
      if (fate === 'answer lost') cut()
      else if (fate === 'pass') client.write(answer)
    })
  })
  server.listen(socketPath)
  await once(server, 'listening')
  const lossy: LossyServer = {
    socketPath,
    fateOf: () => 'pass',
    close: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return lossy
}
