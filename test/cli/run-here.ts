import { PassThrough } from 'node:stream'
import { runCli } from '#cli/run.ts'

/** What a command line finds when it starts. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string>>
  readonly stdin: object
  /** Takes what is written to standard output and standard error. */
  readonly write: (stream: 'stdout' | 'stderr', text: string) => unknown
  /** Width of the terminal; null if the streams are no terminal. */
  readonly columns: number | null
}

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command line in this process as a script would: without a terminal, and with nothing on standard input. */
export async function runScripted(words: readonly string[], env: Readonly<Record<string, string>>): Promise<Outcome> {
  const written = { stdout: '', stderr: '' }
  const code = await runHere(words, {
    env,
    stdin: new PassThrough().end(),
    write: (stream, text) => (written[stream] += text),
    columns: null,
  })
  return { code, ...written }
}

/** Runs a command line in this process, which has already loaded most of the program. Returns its exit code. */
export async function runHere(words: readonly string[], surroundings: Surroundings): Promise<number> {
  return within(surroundings, async () => {
    try {
      await runCli(words)
      return Number(process.exitCode ?? 0)
    } finally {
      process.exitCode = undefined
    }
  })
}

/** Less than the time limit of a test: until the run ends, the reporter has no standard output. */
const LIMIT_MS = 120_000
let lastRun: Promise<unknown> = Promise.resolve()

/** Does work in these surroundings. There is one environment and one set of standard streams, so runs wait for each other. */
export async function within<T>(surroundings: Surroundings, work: () => Promise<T>): Promise<T> {
  const run = lastRun.then(async () => {
    const restore = replaceStreams(surroundings)
    const { promise: timeout, reject } = Promise.withResolvers<never>()
    const timer = setTimeout(() => reject(new Error('the command line does not end')), LIMIT_MS)
    return Promise.race([work(), timeout]).finally(() => {
      clearTimeout(timer)
      restore()
    })
  })
  lastRun = run.catch(() => undefined)
  return run
}

function replaceStreams({ env, stdin, write, columns }: Surroundings): () => void {
  const isTTY = columns !== null
  const stream = (name: 'stdout' | 'stderr') => ({
    isTTY,
    columns: columns ?? undefined,
    write(chunk: string | Uint8Array) {
      write(name, Buffer.from(chunk).toString('utf8'))
      return true
    },
  })
  const restores = [
    replaceProperties(process, { env: { ...env }, stdin: Object.assign(stdin, { isTTY }) }),
    replaceProperties(process.stdout, stream('stdout')),
    replaceProperties(process.stderr, stream('stderr')),
  ]
  return () => {
    for (const restore of restores) restore()
  }
}

/** Returns what restores the old properties. */
function replaceProperties(object: object, properties: Readonly<Record<string, unknown>>): () => void {
  const old = Object.keys(properties).map((name) => [name, Object.getOwnPropertyDescriptor(object, name)] as const)
  for (const [name, value] of Object.entries(properties))
    Object.defineProperty(object, name, { value, configurable: true, writable: true })
  return () => {
    for (const [name, descriptor] of old) {
      Reflect.deleteProperty(object, name)
      if (descriptor) Object.defineProperty(object, name, descriptor)
    }
  }
}
