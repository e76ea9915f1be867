import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, fchownSync, openSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { childEnvironment } from '#config/environment.ts'
import {
  EMBEDDED_DATABASE,
  EMBEDDED_USER,
  embeddedSetup,
  findProgram,
  type EmbeddedOptions,
  type EmbeddedSetup,
} from './setup.ts'
import { logTail } from './log-tail.ts'
import { ALREADY_SUPERVISED, READY } from './supervisor-protocol.ts'

export interface EmbeddedDatabase {
  readonly connection: { readonly socketPath: string; readonly user: string; readonly database: string }
  /** Ends this use of the server, which stops soon after its last use. */
  readonly release: () => void
}

/** Generous, because a killed server recovers first. */
const START_DEADLINE_MS = 120_000
const POLL_MS = 20
const HEAL_DELAY_MS = 100
const SUPERVISOR = fileURLToPath(import.meta.resolve('./supervisor.ts'))

/**
 * Starts, or joins, the private MariaDB or MySQL server under `<home>/database`.
 *
 * All processes and threads of one home share one server. A supervisor, a process of its own (`supervisor.ts`), starts the server and
 * stops it after its last user. Each user holds a connection to the supervisor, which the kernel closes even if the user is killed. If the
 * server or the supervisor dies, the remaining users start a new one; until then their queries fail.
 *
 * Throws an error that says what to install if there is no server program, or with the end of the server's log if it does not start.
 */
export async function startEmbedded(home: string, options: EmbeddedOptions = {}): Promise<EmbeddedDatabase> {
  const setup = embeddedSetup(home, undefined, options)
  const release = keepConnected(setup, await acquire(setup))
  return {
    connection: { socketPath: setup.serverSocket, user: EMBEDDED_USER, database: EMBEDDED_DATABASE },
    release,
  }
}

/** Reconnects to the supervisor whenever the connection is lost. Returns a function that ends this and closes the connection. */
function keepConnected(setup: EmbeddedSetup, first: Socket): () => void {
  let current = first
  let isReleased = false

  const keep = (socket: Socket): void => {
    if (isReleased) {
      socket.destroy()
      return
    }
    current = socket
    // A process that never releases its use must still be able to end.
    socket.unref()
    socket.once('close', () => void reconnect())
  }
  const reconnect = async (): Promise<void> => {
    while (!isReleased) {
      await delay(HEAL_DELAY_MS, undefined, { ref: false })
      const socket = await acquire(setup).catch(() => null)
      if (socket) {
        keep(socket)
        return
      }
    }
  }
  keep(first)

  return () => {
    isReleased = true
    current.destroy()
  }
}

/** Connects to a supervisor whose server accepts connections. Starts the supervisor if there is none. */
async function acquire(setup: EmbeddedSetup): Promise<Socket> {
  const deadline = performance.now() + START_DEADLINE_MS
  // Started before the first await, because the caller's imports may block the event loop.
  let supervisor = existsSync(setup.supervisorSocket) ? null : startSupervisor(setup)
  while (performance.now() < deadline) {
    const socket = await connect(setup.supervisorSocket)
    if (socket) {
      const answer = await firstLine(socket, deadline - performance.now())
      if (answer === READY) return socket
      socket.destroy()
      if (answer) throw new Error(`the embedded database does not start: ${answer}`)
      // The supervisor was about to end: the next iteration starts another one.
    } else if (supervisor === null) {
      supervisor = startSupervisor(setup)
    } else if (supervisor.exitCode !== null || supervisor.signalCode !== null) {
      const hasFailed = ![null, 0, ALREADY_SUPERVISED].includes(supervisor.exitCode)
      if (hasFailed) throw new Error(`the embedded database does not start:\n${logTail(setup.logFile)}`)
      supervisor = null
    }
    await delay(POLL_MS)
  }
  throw new Error(`the embedded database did not start in ${START_DEADLINE_MS / 1000} s:\n${logTail(setup.logFile)}`)
}

/**
 * Starts the supervisor under a file lock, which the kernel grants to one process and releases at its death: of several supervisors, one
 * remains. It has its own session and process group, so that it outlives the process that started it.
 */
function startSupervisor(setup: EmbeddedSetup): ChildProcess {
  const flock = findProgram('flock')
  const setpriv = findProgram('setpriv')
  if (!flock) throw new Error('the embedded database needs the program flock: apt-get install util-linux')
  const log = openSync(setup.logFile, 'a', 0o600)
  const lock = [flock, '--nonblock', '--no-fork', '--conflict-exit-code', String(ALREADY_SUPERVISED), setup.lockFile]
  const supervise = [process.execPath, SUPERVISOR, JSON.stringify(setup), setpriv ?? '']
  const [program = '', ...parameters] = [...becomeOwner(setup, setpriv), ...lock, ...supervise]
  if (setup.owner) fchownSync(log, setup.owner.uid, setup.owner.gid)
  const supervisor = spawn(program, parameters, {
    detached: true,
    stdio: ['ignore', log, log],
    // A minimal environment, because ours contains secrets.
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C', ...compileCache() },
    cwd: '/',
  })
  closeSync(log)
  supervisor.on('error', () => undefined)
  supervisor.unref()
  return supervisor
}

/** The words in front of a command that runs it as the user whom the home belongs to. */
function becomeOwner({ owner }: EmbeddedSetup, setpriv: string | null): string[] {
  if (owner === null) return []
  if (setpriv === null)
    throw new Error('the embedded database of another user needs the program setpriv: apt-get install util-linux')
  return [setpriv, '--reuid', String(owner.uid), '--regid', String(owner.gid), '--clear-groups']
}

/** The cache of stripped sources, so that the supervisor starts quickly. */
function compileCache(): Record<string, string> {
  const folder = childEnvironment({})['NODE_COMPILE_CACHE']
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder }
}

/** Connects; null if nobody listens. */
async function connect(path: string): Promise<Socket | null> {
  const { promise, resolve } = Promise.withResolvers<Socket | null>()
  const socket = createConnection(path)
  socket.once('connect', () => resolve(socket))
  // Kept for good: a later error without a listener would throw. 'close' follows it.
  socket.on('error', () => resolve(null))
  return promise
}

/** The first line that the other side sends; null if it closes without one, or sends none for `patienceMs`. */
async function firstLine(socket: Socket, patienceMs: number): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const timer = setTimeout(() => resolve(null), patienceMs)
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk: string) => {
    text += chunk
    if (text.endsWith('\n')) resolve(text.slice(0, -1))
  })
  socket.once('close', () => resolve(null))
  return promise.finally(() => clearTimeout(timer))
}
