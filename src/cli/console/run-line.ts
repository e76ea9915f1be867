import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import { join } from 'node:path'
import { childEnvironment } from '#config/environment.ts'
import { shellWord } from '#shared/shell-word.ts'
import { printableLines } from '#cli/printable.ts'
import { isRemote, type Who } from '#cli/who.ts'

const PROGRAM = join(import.meta.dirname, '..', '..', '..', 'bin', 'billing-cli')
const READ_ONLY = join(import.meta.dirname, 'read-only.ts')
/** More than this of a command's output is not kept. */
const MAX_CHARACTERS = 1_000_000

/** What became of a command line. */
export interface Ran {
  readonly code: number
  readonly lines: string[]
}

/**
 * `read-only` allows what the role view may do. `uninterruptible` runs to its end, even if the terminal is closed or somebody stops the
 * line.
 */
export type LineMode = 'read-only' | 'interruptible' | 'uninterruptible'

export interface RunningLine {
  readonly ended: Promise<Ran>
  readonly stop: () => void
}

/**
 * Runs a command line as the program itself does: an operator's goes through `as`, which asks for the role anew and is the actor in the
 * audit log. Without a terminal of its own the command asks nothing.
 */
export function runLine(words: readonly string[], who: Who, mode: LineMode): RunningLine {
  const child =
    mode === 'read-only'
      ? spawn(process.execPath, [...process.execArgv, READ_ONLY, who.name ?? '', ...words], {
          env: childEnvironment({}),
          stdio,
        })
      : spawnProgram(words, who, mode)
  const stop = (): void => {
    if (mode !== 'uninterruptible') child.kill()
  }
  return { ended: outcomeOf(child), stop }
}

const stdio = ['ignore', 'pipe', 'pipe'] satisfies StdioOptions

function spawnProgram(words: readonly string[], who: Who, mode: LineMode): ChildProcess {
  // In a session of its own it gets no SIGHUP when the terminal goes away.
  const detached = mode === 'uninterruptible'
  if (!isRemote(who)) return spawn(PROGRAM, [...words], { env: childEnvironment({}), stdio, detached })
  return spawn(PROGRAM, ['as', who.name ?? ''], {
    env: childEnvironment({ SSH_ORIGINAL_COMMAND: words.map(shellWord).join(' ') }),
    stdio,
    detached,
  })
}

/** The words that may stand last, as the completion of shells offers them. */
export async function candidatesFor(words: readonly string[]): Promise<string[]> {
  const child = spawn(PROGRAM, ['complete', ...words], { env: childEnvironment({}), stdio })
  const { code, lines } = await outcomeOf(child)
  return code === 0 ? lines.map((line) => line.split(/\\u0009|\t/)[0] ?? '').filter((value) => value !== '') : []
}

async function outcomeOf(child: ChildProcess): Promise<Ran> {
  let text = ''
  const keep = (chunk: string): void => {
    if (text.length < MAX_CHARACTERS) text += chunk
  }
  child.stdout?.setEncoding('utf8').on('data', keep)
  child.stderr?.setEncoding('utf8').on('data', keep)
  const { promise, resolve } = Promise.withResolvers<number>()
  child.once('error', () => resolve(1))
  child.once('close', (code) => resolve(code ?? 1))
  const code = await promise
  return { code, lines: printableLines(text.trimEnd()).split('\n') }
}
