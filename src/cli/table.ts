import { styleText } from 'node:util'
import Table from 'cli-table3'
import { printable } from './printable.ts'
import { wrap } from './wrap.ts'

export interface TableOptions {
  readonly head: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
  /** What to say instead of an empty table. */
  readonly none: string
}

/** Tables fit a terminal of this width, the narrowest that operators use. */
const WIDTH = 80
const LEAST_COLUMN = 6
/** The blanks beside a cell's text. */
const PADDING = 2

/** A table of at most 80 columns; long cells wrap. Its head is bold on a terminal that wants colours. */
export function formatTable({ head, rows, none }: TableOptions): string {
  if (rows.length === 0) return none
  const texts = rows.map((row) => row.map(cellText))
  const widths = fitWidths([[...head], ...texts])
  const table = new Table({
    head: head.map(bold),
    style: { head: [], border: [], compact: true },
    colWidths: widths,
    // For characters that take two columns; all others are wrapped already.
    wordWrap: true,
    wrapOnWordBoundary: false,
  })
  table.push(...texts.map((row) => row.map((text, column) => wrap(text, (widths[column] ?? 0) - PADDING))))
  return table.toString()
}

/** A two-column table of a thing's fields. */
export function formatFields(fields: Readonly<Record<string, unknown>>): string {
  return formatTable({ head: ['field', 'value'], rows: Object.entries(fields), none: 'nothing' })
}

/** Bold where standard output is a terminal that NO_COLOR and TERM let have colours. */
function bold(text: string): string {
  return text === '' ? text : styleText('bold', text, { stream: process.stdout })
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return printable(typeof value === 'string' ? value : JSON.stringify(value))
}

/** Widths with padding: natural where they fit; where they do not, lines are broken between words, and then the widest words. */
function fitWidths(rows: readonly (readonly string[])[]): number[] {
  const columns = (rows[0] ?? []).map((_, column) => rows.map((row) => row[column] ?? ''))
  const widths = columns.map((texts) => Math.max(...texts.map(({ length }) => length)) + PADDING)
  const unbroken = columns.map((texts) => Math.max(...texts.map(longestWord)) + PADDING)
  narrow(widths, unbroken)
  narrow(
    widths,
    widths.map(() => LEAST_COLUMN),
  )
  return widths
}

/** Narrows the widest column again and again until the table fits, or until each is as narrow as it may be. */
function narrow(widths: number[], least: readonly number[]): void {
  const isTooWide = () => widths.reduce((sum, width) => sum + width, widths.length + 1) > WIDTH
  while (isTooWide()) {
    const room = widths.map((width, column) => (width > (least[column] ?? 0) ? width : 0))
    const widest = room.indexOf(Math.max(...room))
    if ((room[widest] ?? 0) === 0) return
    widths[widest] = (widths[widest] ?? 0) - 1
  }
}

function longestWord(text: string): number {
  return Math.max(...text.split(' ').map(({ length }) => length))
}
