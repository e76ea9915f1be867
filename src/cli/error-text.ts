import { printableLines } from './printable.ts'
import { terminalWidth } from './terminal-width.ts'
import { wrapLines } from './wrap-lines.ts'

/** Text for standard error: on a terminal it is broken between words, at the terminal's edge. */
export function errorText(text: string): string {
  const shown = printableLines(text)
  return process.stderr.isTTY ? wrapLines(shown, terminalWidth(process.stderr)) : shown
}
