/* eslint no-console: "off" */
import { printableLines } from './printable.ts'
import { formatTable, type TableOptions } from './table.ts'

/** Where a command's results go: one JSON value on standard output with `--json`, otherwise tables and lines for people. */
export interface Output {
  readonly isJson: boolean
  /** The command's result: `value` as JSON, or what `show` prints for people. */
  result(value: unknown, show: () => void): void
  table(options: TableOptions): void
  /** Text as it is: a table, or what the program itself says. */
  line(text: string): void
  /** For people only, on standard error, never a result. */
  hint(text: string): void
  /** How far a long command has come: for whoever sits at a terminal and waits. */
  progress(text: string): void
}

export function openOutput(isJson: boolean): Output {
  return {
    isJson,
    result(value, show) {
      if (isJson) console.log(JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0))
      else show()
    },
    table: (options) => console.log(formatTable(options)),
    line: (text) => console.log(text),
    hint(text) {
      if (!isJson) console.error(printableLines(text))
    },
    progress(text) {
      if (!isJson && process.stderr.isTTY) console.error(printableLines(text))
    },
  }
}

/** One line on standard error that says what went wrong and what to do next. */
export function printError(message: string): void {
  console.error(`error: ${printableLines(message)}`)
}
