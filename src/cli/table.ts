import { styleText } from 'node:util'
import Table from 'cli-table3'
import { exactJson } from '#shared/exact-json.ts'
import { Coloured, type Colour } from './coloured.ts'
import { columnsOf } from './columns.ts'
import { printable, printableLines } from './printable.ts'
import { terminalWidth } from './terminal-width.ts'
import { unbreakable, unbreakableCodes, wrap } from './wrap.ts'

export interface TableOptions {
  readonly head: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
  /** What to say instead of an empty table; nothing if it is left out. */
  readonly none?: string
  /** Columns that a narrow terminal may leave out, the first first; a line below the table says so. */
  readonly optional?: readonly string[]
  /** Columns that are left out only where breaking `codes` is not enough, all at once. */
  readonly lastOptional?: readonly string[]
  /** Columns of our own codes, such as `bank_transfer`, which a narrow terminal may break after `_`, `.` and `-`. */
  readonly codes?: readonly string[]
  /** Columns of numbers and amounts, which are aligned to the right. */
  readonly right?: readonly string[]
}

/** A column of a list: its head, and its cell for a row. */
export type ListColumn<T> = readonly [head: string, cell: (row: T) => unknown]

/** Head and rows of a list that is declared column by column; `false` for a column that is not shown. */
export function listOf<T>(
  shown: readonly T[],
  columns: readonly (ListColumn<T> | false)[],
): Pick<TableOptions, 'head' | 'rows'> {
  const kept = columns.filter((column) => column !== false)
  return { head: kept.map(([head]) => head), rows: shown.map((row) => kept.map(([, cell]) => cell(row))) }
}

interface Cell {
  readonly text: string
  readonly look: Colour | 'bold' | null
}

const MIN_COLUMN = 6
/** The blanks between two columns. */
const GAP = '  '
/** Everything that `cli-table3` draws around cells, except the rule below the head. */
const NO_FRAME = Object.fromEntries(
  ['top', 'bottom', 'left', 'right'].flatMap((side) => [
    [side, ''],
    [`${side}-left`, ''],
    [`${side}-mid`, ''],
    [`${side}-right`, ''],
  ]),
)
const TIMESTAMP = /^\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?$/

/**
 * A table as wide as the terminal, or 80 columns. Blanks separate the columns, because a frame would take the space of one. Long cells wrap
 * between words, heads also after `_`. If words or timestamps do not fit, optional columns are omitted; then codes are broken; then the last
 * optional columns are omitted, too; then each row becomes a block with one line per field, so that identifiers stay whole and can be copied.
 * On a colour terminal, the head is bold and states are coloured.
 */
export function formatTable(options: TableOptions, width = terminalWidth()): string {
  const { head, rows, none = '', optional = [], lastOptional = [], codes = [], right = [] } = options
  if (rows.length === 0) return printableLines(none)
  const cells = rows.map((row) => row.map(cellOf))
  const omissions = [...optional.keys(), optional.length].map((count) => optional.slice(0, count))
  const whole = omissions.map((left) => ({ left, breakable: [] as readonly string[] }))
  const broken = [...omissions, [...optional, ...lastOptional]].map((left) => ({ left, breakable: codes }))
  for (const { left, breakable } of [...whole, ...broken]) {
    const kept = <T>(row: readonly T[]): T[] => row.filter((_, column) => !left.includes(head[column] ?? ''))
    const shown = cells.map(kept)
    const widths = fitWidths(tableColumns(kept(head), shown.map(textsOf)), width, breakable)
    if (widths) return `${drawTable(kept(head), shown, widths, right)}${leftOut(left, width)}`
  }
  return cells.map((row) => drawBlock(head, row, width)).join('\n')
}

function leftOut(columns: readonly string[], width: number): string {
  const said = `No room for: ${columns.join(', ')}. A wider terminal or --json shows all.`
  return columns.length === 0 ? '' : `\n${wrap(said, width)}`
}

/** The fields of an object, one per line. Only here are words broken, if they are longer than a line. */
export function formatFields(fields: Readonly<Record<string, unknown>>, width = terminalWidth()): string {
  const rows = Object.entries(fields).map(([name, value]): Cell[] => [
    { text: printable(name), look: 'bold' },
    fieldCell(value),
  ])
  if (rows.length === 0) return 'nothing'
  const [names = 0, values = 0] = [0, 1].map((column) => longest(rows.map((row) => row[column]?.text ?? '')))
  const room = Math.max(MIN_COLUMN, width - names - GAP.length)
  return drawTable(null, rows, [names, Math.min(values, room)])
}

function drawTable(
  head: readonly string[] | null,
  rows: readonly (readonly Cell[])[],
  widths: readonly number[],
  right: readonly string[] = [],
): string {
  const table = new Table({
    head: (head ?? []).map((text, column) => wrap(text, widths[column] ?? 0)),
    chars: { ...NO_FRAME, mid: '─', 'mid-mid': '─'.repeat(GAP.length), middle: GAP },
    // As the table draws it, behind the wrapping: an escape sequence in a cell would be wrapped like text.
    style: {
      head: isColoured() ? ['bold'] : [],
      border: isColoured() ? ['gray'] : [],
      compact: true,
      'padding-left': 0,
      'padding-right': 0,
    },
    colWidths: [...widths],
    colAligns: (head ?? []).map((text) => (right.includes(text) ? 'right' : 'left')),
  })
  table.push(...rows.map((row) => row.map((cell, column) => drawCell(cell, widths[column] ?? 0))))
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

function drawCell({ text, look }: Cell, width: number): string {
  const lines = wrap(text, width)
  return look === null ? lines : paintLines(lines, look)
}

function paintLines(text: string, look: Colour | 'bold'): string {
  return text
    .split('\n')
    .map((line) => styleText(look, line, { stream: process.stdout }))
    .join('\n')
}

/** One row as lines of `name  value`, below a rule. */
function drawBlock(head: readonly string[], row: readonly Cell[], width: number): string {
  const names = Math.max(...head.map(({ length }) => length))
  const lines = row.flatMap(({ text, look }, column) =>
    wrap(text, width - names - GAP.length)
      .split('\n')
      .map((line, index) => {
        const name = bold((index === 0 ? (head[column] ?? '') : '').padEnd(names))
        return `${name}${GAP}${look === null ? line : paintLines(line, look)}`
      }),
  )
  return ['─'.repeat(width), ...lines].join('\n')
}

/** Whether standard output is a terminal that NO_COLOR and TERM let have colours. */
function isColoured(): boolean {
  return bold('x') !== 'x'
}

function bold(text: string): string {
  return styleText('bold', text, { stream: process.stdout })
}

function cellOf(value: unknown): Cell {
  if (value instanceof Coloured) return { text: printable(value.text), look: value.colour }
  return { text: cellText(value), look: null }
}

/** Times of fields have no head that says UTC. */
function fieldCell(value: unknown): Cell {
  const cell = cellOf(value)
  return TIMESTAMP.test(cell.text) && !cell.text.endsWith('UTC') ? { ...cell, text: `${cell.text} UTC` } : cell
}

function textsOf(row: readonly Cell[]): string[] {
  return row.map(({ text }) => text)
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(cellText).join(', ')
  return printable(typeof value === 'string' ? value : exactJson(value))
}

interface Column {
  readonly head: string
  readonly texts: readonly string[]
}

function tableColumns(head: readonly string[], rows: readonly (readonly string[])[]): Column[] {
  return head.map((title, column) => ({ head: title, texts: rows.map((row) => row[column] ?? '') }))
}

/**
 * The widths of the columns: natural if they fit; otherwise narrowed, without breaking words or timestamps except in heads and in the
 * columns of `breakable`. Null if that is not enough.
 */
function fitWidths(columns: readonly Column[], width: number, breakable: readonly string[]): number[] | null {
  const widths = columns.map(({ head, texts }) => longest([head, ...texts]))
  const least = columns.map(({ head, texts }) => {
    const parts = texts.flatMap(breakable.includes(head) ? unbreakableCodes : unbreakable)
    return longest([...unbreakableCodes(head), ...parts])
  })
  const isTooWide = () => widths.reduce((sum, one) => sum + one, GAP.length * (widths.length - 1)) > width
  while (isTooWide()) {
    const room = widths.map((one, column) => (one > (least[column] ?? 0) ? one : 0))
    const widest = room.indexOf(Math.max(...room))
    if ((room[widest] ?? 0) === 0) return null
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

function longest(texts: readonly string[]): number {
  return Math.max(...texts.map(columnsOf))
}
