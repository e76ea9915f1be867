import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import { PROGRAM } from './run-cli.ts'
import { scratchFolder } from '../support/scratch.ts'

export const ENTER = '\r'
export const DOWN = '\u001b[B'
export const CTRL_C = '\u0003'
export const CTRL_D = '\u0004'

/** What to wait for on the screen, and what to type then. */
export type Step = readonly [seen: string, typed: string]
/** What to wait for before the terminal is closed, as it is when a connection is lost. */
export type HangUp = readonly [seen: string, typed: null]

export interface Screen {
  readonly code: number
  /** Everything that was shown, with its escape codes. */
  readonly raw: string
  /** The same without escape codes. */
  readonly text: string
  /** Standard output, when it went into a file. */
  readonly stdout: string
  /** The steps that were not reached. */
  readonly left: readonly (Step | HangUp)[]
}

/** Frames of a console that somebody uses for minutes. */
const MAX_SHOWN = 2 ** 26

interface TerminalOptions {
  /** Whether standard output goes into a file, as in `billing-cli … --json > file`. */
  readonly toFile?: boolean
  /** Width of the terminal, 80 by default. */
  readonly columns?: number
  /** Another program, with its first arguments. */
  readonly program?: readonly string[]
}

/** Runs `bin/billing-cli` on a pseudo-terminal and types into it. */
export async function onTerminal(
  env: Readonly<Record<string, string>>,
  words: readonly string[],
  steps: readonly (Step | HangUp)[],
  { toFile = false, columns = 80, program = [PROGRAM] }: TerminalOptions = {},
): Promise<Screen> {
  const file = toFile ? join(scratchFolder('cli'), 'out') : null
  const request = { command: [...program, ...words], columns, steps, stdout: file }
  const { stdout } = await promisify(execFile)(
    '/usr/bin/python3',
    [join(import.meta.dirname, 'terminal.py'), JSON.stringify(request)],
    { env: { TERM: 'xterm-256color', ...env }, maxBuffer: MAX_SHOWN },
  )
  const { code, seen, left } = JSON.parse(stdout) as { code: number; seen: string; left: (Step | HangUp)[] }
  const written = file === null ? '' : readFileSync(file, 'utf8')
  return { code, raw: seen, text: stripVTControlCharacters(seen), stdout: written, left }
}
