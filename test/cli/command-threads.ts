import { once } from 'node:events'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'

/** What to wait for on the screen, and what to type then. */
export type Step = readonly [seen: string, typed: string]

export interface CommandLine {
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** What somebody at a terminal does; null where there is no terminal and nothing on standard input. */
  readonly steps: readonly Step[] | null
  /** Width of the terminal, 80 unless told otherwise. */
  readonly columns?: number
}

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
  /** Both, as a terminal shows them. */
  readonly screen: string
  /** Steps that did not come about. */
  readonly left: readonly Step[]
}

/** So many command lines run at a time. */
const THREADS = 2

const idle: Worker[] = []
const waiting: ((worker: Worker) => void)[] = []
let started = 0

/**
 * Runs a command line in a thread that has run others before: what a process of its own spends most of its time with, loading the
 * program, is done once.
 */
export async function runInThread(line: CommandLine): Promise<Outcome> {
  const worker = await takeWorker()
  try {
    worker.ref()
    worker.postMessage(line)
    const [outcome] = (await once(worker, 'message')) as [Outcome]
    return outcome
  } finally {
    worker.unref()
    const next = waiting.shift()
    if (next) next(worker)
    else idle.push(worker)
  }
}

async function takeWorker(): Promise<Worker> {
  const worker = idle.pop()
  if (worker) return worker
  if (started === THREADS) return new Promise((resolve) => waiting.push(resolve))
  started += 1
  return new Worker(join(import.meta.dirname, 'command-thread.ts'), { env: {} })
}
