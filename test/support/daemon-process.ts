import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { testEnvironment } from './context.ts'
import { parsed } from './parsed.ts'

/** A daemon in a process of its own, on the test database. */
export interface DaemonProcess {
  readonly url: string
  readonly pid: number
  /** Its log lines so far. */
  readonly logged: string[]
  /** Stops it with SIGTERM. Returns its exit code. */
  stop(): Promise<number | null>
  /** Kills it with SIGKILL and waits until it has exited. */
  kill(): Promise<void>
}

const ROOT = join(import.meta.dirname, '..', '..')

/** Starts `bin/billing-daemon` of this version, or of the one in `folder`, with the test environment changed by `overrides` and waits until it listens. */
export async function startDaemonProcess(
  overrides: Readonly<Record<string, string>> = {},
  folder = ROOT,
): Promise<DaemonProcess> {
  const environment = { PATH: process.env['PATH'] ?? '', BILLING_PORT: '0', ...testEnvironment(overrides) }
  const child = spawn(join(folder, 'bin', 'billing-daemon'), { env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  const logged: string[] = []
  const exited = once(child, 'exit') as Promise<[number | null]>
  child.stderr.on('data', (chunk: Buffer) => logged.push(chunk.toString('utf8')))
  const url = await new Promise<string>((resolve, reject) => {
    let isListening = false
    createInterface(child.stdout).on('line', (line) => {
      logged.push(line)
      if (isListening) return
      const { msg, url: listening } = parsed(line) as { msg?: string; url?: string }
      if (msg !== 'listening' || listening === undefined) return
      isListening = true
      resolve(listening)
    })
    void exited.then(([code]) =>
      reject(new Error(`the daemon ended with ${code ?? 'a signal'}:\n${logged.join('\n')}`)),
    )
  })
  return {
    url,
    pid: child.pid!,
    logged,
    async stop() {
      child.kill('SIGTERM')
      const [code] = await exited
      return code
    },
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
