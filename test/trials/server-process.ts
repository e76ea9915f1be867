import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

const START_MS = 60_000
const POLL_MS = 100

/** Starts a program whose output goes to the end of a log. */
export function launch(program: string, options: readonly string[], log: string): ChildProcess {
  const output = openSync(log, 'a')
  const child = spawn(program, options, { stdio: ['ignore', output, output] })
  closeSync(output)
  return child
}

/** Ends a program, and waits until it is gone. */
export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill(signal)
  await gone
}

/** The first connection to a server that is starting. Throws the end of its log if it does not start. */
export async function untilConnected<T>(connect: () => Promise<T>, log: string): Promise<T> {
  const deadlineMs = performance.now() + START_MS
  for (;;) {
    try {
      return await connect()
    } catch (error) {
      if (performance.now() > deadlineMs) throw new Error(readFileSync(log, 'utf8').slice(-3000), { cause: error })
      await delay(POLL_MS)
    }
  }
}
