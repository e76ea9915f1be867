/* eslint no-console: "off" */
import { errorText } from './error-text.ts'
import { exactJson } from '#shared/exact-json.ts'
import { printable, printableLines } from './printable.ts'
import { formatFields, formatTable, type TableOptions } from './table.ts'

/**
 * Where a command's results go: one JSON value on standard output with `--json`, otherwise tables and lines for people. Whatever is
 * printed goes through here, where characters that would control the terminal are escaped: a name or a reference may hold any.
 */
export interface Output {
  readonly isJson: boolean
  /** The command's result: `value` as JSON, or what `show` prints for people. */
  result(value: unknown, show: () => void): void
  table(options: TableOptions): void
  /** The fields of a thing, one below the other. */
  fields(fields: Readonly<Record<string, unknown>>): void
  /** Lines of text, with a blank line before and after them, as tables and fields have. */
  block(lines: string): void
  /** One line; a line break in it is escaped, too. */
  line(text: string): void
  /** Several lines. What other people wrote must not break them: see `printable`. */
  lines(lines: string): void
  /** An already drawn table, with its colours. */
  drawn(text: string): void
  /** For people only, on standard error. */
  hint(text: string): void
  /** On standard error, for scripts too, below the result: what it leaves out. */
  note(text: string): void
  /** The progress of a long command; shown on a terminal only. */
  progress(text: string): void
}

/** The progress in the last line of the screen. It is erased before anything else is printed. */
let shownProgress = ''

/** By spaces rather than an escape code, which some terminals (`TERM=dumb`) would show. */
function clearProgress(): void {
  if (shownProgress !== '') process.stderr.write(`\r${' '.repeat(shownProgress.length)}\r`)
  shownProgress = ''
}

export function openOutput(isJson: boolean): Output {
  let last: 'nothing' | 'line' | 'block' = 'nothing'
  const notes: string[] = []
  /** A blank line separates tables and fields from what is above and below them. */
  const print = (kind: 'line' | 'block', text: string): void => {
    console.log(last === 'block' || (last === 'line' && kind === 'block') ? `\n${text}` : text)
    last = kind
  }
  return {
    isJson,
    result(value, show) {
      clearProgress()
      if (isJson) console.log(printableLines(exactJson(value, process.stdout.isTTY ? 2 : 0)))
      else show()
      for (const text of notes.splice(0)) console.error(errorText(text))
    },
    table(options) {
      const isEmpty = options.rows.length === 0
      if (!isEmpty || options.none !== undefined) print(isEmpty ? 'line' : 'block', formatTable(options))
    },
    fields: (fields) => print('block', formatFields(fields)),
    block: (lines) => print('block', printableLines(lines)),
    line: (text) => print('line', printable(text)),
    lines: (lines) => print('line', printableLines(lines)),
    drawn: (text) => print('line', text),
    hint(text) {
      if (!isJson) console.error(errorText(text))
    },
    note: (text) => void notes.push(text),
    progress(text) {
      if (isJson || !process.stderr.isTTY) return
      clearProgress()
      shownProgress = printable(text)
      process.stderr.write(shownProgress)
    },
  }
}

/** One line on standard error that says what went wrong and what to do next. */
export function printError(message: string): void {
  clearProgress()
  console.error(errorText(`error: ${message}`))
}

/** The same for scripts: one JSON value on standard error. */
export function printJsonError(error: { readonly code: string; readonly message: string }): void {
  console.error(printableLines(JSON.stringify({ error })))
}
