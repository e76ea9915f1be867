import { stripVTControlCharacters } from 'node:util'
import type { Output } from '#cli/output.ts'
import { printable, printableLines } from '#cli/printable.ts'
import { formatFields, formatTable } from '#cli/table.ts'

/** What a command shows to people, as lines of at most `columns` columns. */
export interface KeptOutput {
  readonly out: Output
  readonly lines: () => string[]
}

/** An output that keeps what a command shows, instead of printing it. */
export function keepOutput(columns: number): KeptOutput {
  const blocks: string[] = []
  const keep = (text: string): void => void blocks.push(stripVTControlCharacters(text))
  const line = (text: string): void => keep(printable(text))
  const out: Output = {
    isJson: false,
    result: (_value, show) => show(),
    table: (options) => {
      if (options.rows.length > 0 || options.none !== undefined) keep(`${formatTable(options, columns)}\n`)
    },
    fields: (fields) => keep(`${formatFields(fields, columns)}\n`),
    block: (text) => keep(`${printableLines(text)}\n`),
    line,
    lines: (text) => keep(printableLines(text)),
    drawn: keep,
    hint: line,
    note: line,
    progress: () => undefined,
  }
  return { out, lines: () => blocks.flatMap((block) => block.split('\n')) }
}
