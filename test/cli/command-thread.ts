import { PassThrough } from 'node:stream'
import { parentPort } from 'node:worker_threads'
import { runCli } from '#cli/run.ts'
import type { CommandLine, Outcome } from './command-threads.ts'

/** Nobody types what the command asks for: it is taken for a Ctrl-C. */
const PATIENCE_MS = 40_000
const CTRL_C = '\u0003'

const port = parentPort
if (!port) throw new Error('this is a thread of the tests of the command line')
port.on('message', (line: CommandLine) => void run(line).then((outcome) => port.postMessage(outcome)))

/** Runs a command line with an environment, an input and outputs of its own. A thread has a `process` that is its alone. */
async function run({ words, env, steps, columns = 80 }: CommandLine): Promise<Outcome> {
  for (const name of Object.keys(process.env)) Reflect.deleteProperty(process.env, name)
  Object.assign(process.env, env)
  const isTerminal = steps !== null
  const left = [...(steps ?? [])]
  const keyboard = new PassThrough()
  const outcome = { stdout: '', stderr: '', screen: '' }
  let typedAt = 0
  const show = (name: 'stdout' | 'stderr', text: string): void => {
    outcome[name] += text
    outcome.screen += text
    while (left[0] && outcome.screen.includes(left[0][0], typedAt)) {
      typedAt = outcome.screen.length
      const [, typed] = left.shift()!
      setImmediate(() => keyboard.write(typed))
    }
  }
  // A prompt ends the stream that it writes to, unless it is a standard one.
  for (const name of ['stdout', 'stderr'] as const) {
    const write = (chunk: string | Uint8Array): boolean => {
      show(name, Buffer.from(chunk).toString('utf8'))
      return true
    }
    Object.assign(process[name], {
      write,
      isTTY: isTerminal,
      columns: isTerminal ? columns : undefined,
      _isStdio: true,
    })
  }
  Object.assign(keyboard, { isTTY: isTerminal, setRawMode: () => keyboard })
  Object.defineProperty(process, 'stdin', { value: keyboard, configurable: true })
  if (!isTerminal) keyboard.end()
  const patience = setTimeout(() => keyboard.write(CTRL_C), PATIENCE_MS)
  process.exitCode = undefined
  await runCli(words)
  clearTimeout(patience)
  return { code: (process.exitCode as number | undefined) ?? 0, ...outcome, left }
}
