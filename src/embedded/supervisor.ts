import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { logTail } from './log-tail.ts'
import type { EmbeddedSetup } from './setup.ts'
import { READY } from './supervisor-protocol.ts'

/**
 * The process that owns the embedded server: `node supervisor.ts <setup as JSON> <path of setpriv or ''>`, started by `start-embedded.ts`
 * under a lock that only one supervisor of a home can hold. It imports only Node's own modules, so that it starts quickly.
 */

/** How long the server keeps running without users, so that the commands of a script share one start. */
const LINGER_MS = 300
/** How long it waits for the first one, who may be loading code for longer than the server takes to start. */
const FIRST_USER_MS = 10_000
const POLL_MS = 10
const READY_DEADLINE_MS = 115_000
const STOP_DEADLINE_MS = 30_000
const MAX_LOG_BYTES = 1_000_000
const UNFINISHED = 'installing-'

const setup = JSON.parse(process.argv[2] ?? '') as EmbeddedSetup
const setpriv = process.argv[3] ?? ''
const databaseDirectory = dirname(setup.dataDirectory)
const users = new Set<Socket>()
let serverProcess: ChildProcess | null = null
let isReady = false
let isEnding = false
let linger: NodeJS.Timeout | null = null

const listener = listen()
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => void end(0))
try {
  await start()
  isReady = true
  for (const user of users) user.write(`${READY}\n`)
  stopWhenUnused(FIRST_USER_MS)
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error)
  // For users that connect later: they read the log.
  process.stderr.write(`${reason}\n`)
  await Promise.all([...users].map((user) => sendLine(user, reason)))
  await end(1)
}

function listen(): Server {
  rmSync(setup.supervisorSocket, { force: true })
  return createServer((user) => {
    users.add(user)
    if (linger) clearTimeout(linger)
    user.on('error', () => undefined)
    user.on('close', () => {
      users.delete(user)
      if (isReady) stopWhenUnused(LINGER_MS)
    })
    user.resume()
    if (isReady) user.write(`${READY}\n`)
  }).listen(setup.supervisorSocket)
}

async function start(): Promise<void> {
  if (existsSync(setup.logFile) && statSync(setup.logFile).size > MAX_LOG_BYTES) truncateSync(setup.logFile)
  await endLeftServers()
  if (!existsSync(setup.dataDirectory)) await install()
  rmSync(setup.serverSocket, { force: true })
  const startFile = join(databaseDirectory, 'start.sql')
  writeFileSync(startFile, setup.startStatements, { mode: 0o600 })
  serverProcess = run([...setup.server, `--init-file=${startFile}`])
  // The supervisor ends with its server. Its users notice and start another one.
  serverProcess.once('exit', () => {
    if (isReady) void end(1)
  })
  await untilServerAnswers(serverProcess)
}

/**
 * Ends the servers that a killed supervisor left behind; kills those that were creating a database. Their data directory identifies ours.
 */
async function endLeftServers(): Promise<void> {
  const deadline = performance.now() + STOP_DEADLINE_MS
  for (let isFirst = true; ; isFirst = false) {
    const servers = processesOn(setup.dataDirectory)
    const makers = processesOn(`${databaseDirectory}/${UNFINISHED}`)
    if (servers.length + makers.length === 0) return
    const isLate = performance.now() > deadline
    if (isFirst || isLate) for (const pid of servers) signalIfThere(pid, isLate ? 'SIGKILL' : 'SIGTERM')
    for (const pid of makers) signalIfThere(pid, 'SIGKILL')
    await delay(POLL_MS)
  }
}

/** The processes whose data directory begins with `path`. */
function processesOn(path: string): number[] {
  if (!existsSync('/proc/self/cmdline')) return []
  return readdirSync('/proc')
    .filter(
      (name) => /^\d+$/.test(name) && argumentsOf(name).some((argument) => argument.startsWith(`--datadir=${path}`)),
    )
    .map(Number)
}

function argumentsOf(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}

function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has ended.
  }
}

/** Creates the data directory under another name and renames it when complete, so that an interrupted start leaves no partial one. */
async function install(): Promise<void> {
  for (const left of readdirSync(databaseDirectory)) {
    if (left.startsWith(UNFINISHED)) rmSync(join(databaseDirectory, left), { recursive: true, force: true })
  }
  const made = join(databaseDirectory, `${UNFINISHED}${process.pid}`)
  const installer = run([...setup.install, `--datadir=${made}`])
  const [code] = (await once(installer, 'exit')) as [number | null]
  if (code !== 0) throw new Error(`the database could not be created:\n${logTail(setup.logFile)}`)
  // MySQL lets its group in.
  chmodSync(made, 0o700)
  renameSync(made, setup.dataDirectory)
}

/** Starts a program that the kernel terminates when this process ends for any reason. */
function run(command: readonly string[]): ChildProcess {
  const log = openSync(setup.logFile, 'a', 0o600)
  const [program = '', ...parameters] = setpriv === '' ? command : [setpriv, '--pdeathsig', 'TERM', '--', ...command]
  return spawn(program, parameters, {
    stdio: ['ignore', log, log],
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C', TMPDIR: setup.temporaryDirectory },
    cwd: databaseDirectory,
  })
}

async function untilServerAnswers(server: ChildProcess): Promise<void> {
  const failed = new AbortController()
  server.once('exit', () => failed.abort())
  server.once('error', () => failed.abort())
  const deadline = performance.now() + READY_DEADLINE_MS
  while (!(await answers(deadline - performance.now()))) {
    if (failed.signal.aborted) throw new Error(`the server ended at once:\n${logTail(setup.logFile)}`)
    if (performance.now() > deadline) throw new Error(`the server did not answer in time:\n${logTail(setup.logFile)}`)
    await delay(POLL_MS)
  }
}

/** Whether the server sends its greeting within `patienceMs`. It listens before it is ready, and greets when it is. */
async function answers(patienceMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = createConnection(setup.serverSocket)
  const timer = setTimeout(() => resolve(false), patienceMs)
  socket.once('data', () => resolve(true))
  socket.once('error', () => resolve(false))
  socket.once('close', () => resolve(false))
  const isGreeted = await promise
  clearTimeout(timer)
  socket.destroy()
  return isGreeted
}

function stopWhenUnused(afterMs: number): void {
  if (linger) clearTimeout(linger)
  if (users.size === 0) linger = setTimeout(() => void end(0), afterMs)
}

/** Shuts the server down, then this process. Its lock ends with it, so that the next supervisor can start. */
async function end(code: number): Promise<void> {
  if (isEnding) return
  isEnding = true
  // Removes the socket, so that a new user starts a new supervisor. That one waits for the lock.
  listener.close()
  for (const user of users) user.destroy()
  if (serverProcess) await endServer(serverProcess)
  process.exit(code)
}

async function endServer(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const gone = once(server, 'exit')
  server.kill('SIGTERM')
  const kill = setTimeout(() => server.kill('SIGKILL'), STOP_DEADLINE_MS)
  await gone
  clearTimeout(kill)
}

/** Sends a last line to the user and closes the connection. */
async function sendLine(user: Socket, line: string): Promise<void> {
  const sent = once(user, 'close')
  user.end(`${line.replaceAll('\n', ' | ')}\n`, () => user.destroy())
  await sent
}
