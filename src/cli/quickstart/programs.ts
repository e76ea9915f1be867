import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { loadConfig } from '#config/config.ts'
import { childEnvironment } from '#config/environment.ts'

const BIN = join(import.meta.dirname, '..', '..', '..', 'bin')
const START_DEADLINE_MS = 60_000
const POLL_MS = 50

export interface Daemon {
  readonly process: ChildProcess
  readonly url: string
  readonly logPath: string
}

/** Runs `billing-cli … --json` as an operator would, and gives its answer. */
export async function runCli(...command: readonly string[]): Promise<Record<string, unknown>> {
  const { stdout } = await promisify(execFile)(join(BIN, 'billing-cli'), [...command, '--json'])
  return JSON.parse(stdout) as Record<string, unknown>
}

/** Starts a daemon of its own on a free port and waits until it listens. Its log is a file, so that it can outlive its starter. */
export async function startDaemon(): Promise<Daemon> {
  const home = loadConfig().home
  mkdirSync(home, { recursive: true, mode: 0o700 })
  const logPath = join(home, `quickstart-${process.pid}.log`)
  const log = openSync(logPath, 'a', 0o600)
  const child = spawn(join(BIN, 'billing-daemon'), [], {
    detached: true,
    stdio: ['ignore', log, log],
    env: childEnvironment({ BILLING_PORT: '0' }),
  })
  closeSync(log)
  endTogether(child)
  try {
    const url = await listeningUrl(child, logPath)
    return { process: child, url, logPath }
  } catch (error) {
    child.kill('SIGTERM')
    throw error
  }
}

/** The daemon is detached, so that an interrupt from the terminal reaches its starter alone, which passes it on. */
function endTogether(child: ChildProcess): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      child.kill('SIGTERM')
      process.exit(128 + constants.signals[signal])
    })
  }
}

/** Ends the daemon and waits until it is gone. */
export async function stopDaemon({ process: child }: Daemon): Promise<void> {
  if (hasEnded(child)) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await gone
}

async function listeningUrl(child: ChildProcess, logPath: string): Promise<string> {
  const startedMs = performance.now()
  while (performance.now() - startedMs < START_DEADLINE_MS) {
    const text = readFileSync(logPath, 'utf8')
    const line = text.split('\n').find((candidate) => candidate.includes('"msg":"listening"'))
    if (line) return (JSON.parse(line) as { url: string }).url
    if (hasEnded(child)) throw new Error(`the daemon ended while it started:\n${text}`)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw new Error(`the daemon did not start in ${START_DEADLINE_MS / 1000} s; its log is ${logPath}`)
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null
}
