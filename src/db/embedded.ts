import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { childEnvironment } from '#config.ts'
import { EMBEDDED_DATABASE, EMBEDDED_USER, embeddedOrder, findProgram, type KeeperOrder } from './embedded-order.ts'
import { ALREADY_KEPT, READY, logTail } from './keeper-words.ts'

export interface EmbeddedDatabase {
  readonly connection: { readonly socketPath: string; readonly user: string; readonly database: string }
  /** Gives up this use of the server, which stops soon after its last one. */
  readonly release: () => Promise<void>
}

/** Generous, because a server that was killed recovers first. */
const START_DEADLINE_MS = 120_000
const POLL_MS = 20
const HEAL_DELAY_MS = 100
const KEEPER = fileURLToPath(import.meta.resolve('./keeper.ts'))

/**
 * Starts, or joins, the private MariaDB or MySQL server under `<home>/database`.
 *
 * All processes and threads that use one home share one server. A keeper, a process of its own (`keeper.ts`), starts it and stops
 * it after its last user: each user holds a connection to the keeper, which the kernel closes even where the user is killed. A
 * server that dies, or whose keeper does, is started again for the users that are left; until then their queries fail.
 *
 * Throws an error with a mend where no server program is installed, and with the end of the server's log where it does not start.
 */
export async function startEmbedded(home: string): Promise<EmbeddedDatabase> {
  const order = embeddedOrder(home)
  const hold = holdOn(order, await acquire(order))
  return {
    connection: { socketPath: order.serverSocket, user: EMBEDDED_USER, database: EMBEDDED_DATABASE },
    release: () => {
      hold.release()
      return Promise.resolve()
    },
  }
}

/** Takes the connection to the keeper again whenever it is lost, until it is released. */
function holdOn(order: KeeperOrder, first: Socket): { release(): void } {
  let current = first
  let isReleased = false

  const keep = (socket: Socket): void => {
    if (isReleased) {
      socket.destroy()
      return
    }
    current = socket
    // A use that was forgotten must not keep its process alive.
    socket.unref()
    socket.once('close', () => void takeAgain())
  }
  const takeAgain = async (): Promise<void> => {
    while (!isReleased) {
      await delay(HEAL_DELAY_MS, undefined, { ref: false })
      const socket = await acquire(order).catch(() => null)
      if (socket) {
        keep(socket)
        return
      }
    }
  }
  keep(first)

  return {
    release: () => {
      isReleased = true
      current.destroy()
    },
  }
}

/** A connection to a keeper whose server takes connections; starts the keeper where there is none. */
async function acquire(order: KeeperOrder): Promise<Socket> {
  const deadline = performance.now() + START_DEADLINE_MS
  // Begun before anything is waited for: what the caller loads meanwhile may hold up the event loop.
  let keeper = existsSync(order.keeperSocket) ? null : startKeeper(order)
  while (performance.now() < deadline) {
    const socket = await connect(order.keeperSocket)
    if (socket) {
      const answer = await firstLine(socket)
      if (answer === READY) return socket
      socket.destroy()
      if (answer) throw new Error(`the embedded database does not start: ${answer}`)
      // The keeper was about to end; the next one is started below.
    } else if (keeper === null) {
      keeper = startKeeper(order)
    } else if (keeper.exitCode !== null || keeper.signalCode !== null) {
      if (keeper.exitCode !== ALREADY_KEPT && keeper.exitCode !== 0 && keeper.exitCode !== null) {
        throw new Error(`the embedded database does not start:\n${logTail(order.logFile)}`)
      }
      keeper = null
    }
    await delay(POLL_MS)
  }
  throw new Error(`the embedded database did not start in ${START_DEADLINE_MS / 1000} s:\n${logTail(order.logFile)}`)
}

/**
 * The keeper runs under a lock on a file, which the kernel gives to one process and takes back at its death; of keepers that start
 * at one instant, one stays. It belongs to no terminal and to no user's process group, so that it outlives whoever started it.
 */
function startKeeper(order: KeeperOrder): ChildProcess {
  const flock = findProgram('flock')
  const setpriv = findProgram('setpriv')
  if (!flock) throw new Error('the embedded database needs the program flock: apt-get install util-linux')
  const log = openSync(order.logFile, 'a', 0o600)
  const keeper = spawn(
    flock,
    [
      ...['--nonblock', '--no-fork', '--conflict-exit-code', String(ALREADY_KEPT), order.lockFile],
      ...[process.execPath, KEEPER, JSON.stringify(order), setpriv ?? ''],
    ],
    // Only what a server needs: the settings in our environment hold secrets.
    {
      detached: true,
      stdio: ['ignore', log, log],
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C', ...compileCache() },
      cwd: '/',
    },
  )
  closeSync(log)
  keeper.on('error', () => undefined)
  keeper.unref()
  return keeper
}

/** Without it the keeper would first load what takes the types out of its source. */
function compileCache(): Record<string, string> {
  const folder = childEnvironment({})['NODE_COMPILE_CACHE']
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder }
}

/** A connection, or null where nobody listens. */
async function connect(path: string): Promise<Socket | null> {
  const { promise, resolve } = Promise.withResolvers<Socket | null>()
  const socket = createConnection(path)
  socket.once('connect', () => resolve(socket))
  // Stays: an error after this is followed by 'close', which is what counts.
  socket.on('error', () => resolve(null))
  return promise
}

/** The first line that the other side says; null where it closes without one. */
async function firstLine(socket: Socket): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    text += chunk
    if (text.endsWith('\n')) resolve(text.slice(0, -1))
  })
  socket.once('close', () => resolve(null))
  return promise
}
