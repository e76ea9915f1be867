import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import xterm from '@xterm/headless'
import { runInThread, type Step } from './command-threads.ts'
import { PROGRAM } from './run-cli.ts'
import { scratchFolder } from '../support/scratch.ts'

// The package is CommonJS.
const { Terminal } = xterm

export const ENTER = '\r'
export const DOWN = '\u001b[B'
export const CTRL_C = '\u0003'

export interface Screen {
  readonly code: number
  /** All that was shown, with its escape codes. */
  readonly raw: string
  /** The same without them. */
  readonly text: string
  /** Standard output, where it went into a file. */
  readonly stdout: string
  /** Steps that did not come about. */
  readonly left: readonly Step[]
}

export interface SitOptions {
  /** Whether standard output goes into a file, as in `billing-cli … --json > file`. */
  readonly toFile?: boolean
  /** Width of the terminal, 80 unless told otherwise. */
  readonly columns?: number
  /** Another program, with its first words. */
  readonly program?: readonly string[]
}

/** Runs `bin/billing-cli` on a pseudo-terminal, as somebody who types would. */
export async function onTerminal(
  env: Readonly<Record<string, string>>,
  words: readonly string[],
  steps: readonly Step[],
  { toFile = false, columns = 80, program = [PROGRAM] }: SitOptions = {},
): Promise<Screen> {
  const file = toFile ? join(scratchFolder('cli'), 'out') : null
  const asked = { command: [...program, ...words], columns, steps, stdout: file }
  const { stdout } = await promisify(execFile)(
    '/usr/bin/python3',
    [join(import.meta.dirname, 'terminal.py'), JSON.stringify(asked)],
    { env: { TERM: 'xterm-256color', ...env } },
  )
  const { code, seen, left } = JSON.parse(stdout) as { code: number; seen: string; left: Step[] }
  const written = file === null ? '' : readFileSync(file, 'utf8')
  return { code, raw: seen, text: stripVTControlCharacters(seen), stdout: written, left }
}

/** A line as a terminal shows it, and the part of it that is bold. */
export interface ShownLine {
  readonly text: string
  readonly bold: string
}

/** What a terminal of this width shows of the output. */
export async function shownOn(columns: number, raw: string): Promise<ShownLine[]> {
  const terminal = new Terminal({ cols: columns, rows: 200, allowProposedApi: true })
  await new Promise<void>((resolve) => terminal.write(raw, resolve))
  const { active } = terminal.buffer
  const lines = Array.from({ length: active.length }, (_, row) => {
    const line = active.getLine(row)
    const cells = Array.from({ length: columns }, (_cell, column) => line?.getCell(column))
    const bold = cells.map((cell) => (cell?.isBold() ? cell.getChars() : '')).join('')
    return { text: line?.translateToString(true) ?? '', bold }
  })
  terminal.dispose()
  return lines.filter(({ text }) => text !== '')
}

/** As `onTerminal`, with a terminal that is played to a thread: for what depends on the questions alone. */
export async function onPlayedTerminal(
  env: Readonly<Record<string, string>>,
  words: readonly string[],
  steps: readonly Step[],
): Promise<Pick<Screen, 'code' | 'text' | 'left'>> {
  const { code, screen, left } = await runInThread({ words, env: { TERM: 'xterm-256color', ...env }, steps })
  return { code, text: stripVTControlCharacters(screen), left }
}
