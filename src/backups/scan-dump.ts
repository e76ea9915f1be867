import type { Contents, MoneyColumns } from './store.ts'

const NEWLINE = 0x0a
const QUOTE = "'".charCodeAt(0)
const BACKSLASH = '\\'.charCodeAt(0)
const COMMA = ','.charCodeAt(0)
const OPEN = '('.charCodeAt(0)
const CLOSE = ')'.charCodeAt(0)
const SEMICOLON = ';'.charCodeAt(0)

const INSERT = /^INSERT INTO `([^`]+)` \(([^)]*)\) VALUES/
/** How a keyring writes a sealed secret: the id of its key stands second. */
const SEALED = /^v1\.([^.']{1,64})\.[\w-]{16}\.[\w-]*\.[\w-]{22}$/
const COMPLETED = '-- Dump completed'

/** The INSERT whose rows are being read. */
interface Inserting {
  readonly table: string
  /** By position: the name of a column of money, else undefined. */
  readonly money: readonly (string | undefined)[]
}

/**
 * Counts the rows of a dump and adds up its columns of money while it is written, so that the numbers are from exactly the instant of the
 * dump. Needs INSERTs that name their columns. A dump has no line break within a value.
 */
export class DumpScan {
  readonly #money: MoneyColumns
  readonly #rows: Record<string, number>
  readonly #sums: Record<string, Record<string, bigint>>
  readonly #keys = new Set<string>()
  #rest: Buffer[] = []
  #inserting: Inserting | null = null
  #total = 0
  /** Whether the dump program wrote its last line. */
  isComplete = false

  constructor(tables: Iterable<string>, money: MoneyColumns) {
    this.#money = money
    this.#rows = Object.fromEntries([...tables].map((table) => [table, 0]))
    this.#sums = Object.fromEntries(
      [...money].map(([table, columns]) => [table, Object.fromEntries(columns.map((column) => [column, 0n]))]),
    )
  }

  get contents(): Contents {
    return { rows: this.#rows, sums: this.#sums }
  }

  /** The ids of the keys that its secrets are sealed with. */
  get keys(): readonly string[] {
    return [...this.#keys].sort()
  }

  /** How many rows were read, of all tables. */
  get total(): number {
    return this.#total
  }

  /** The table that is being read; null before the first. */
  get table(): string | null {
    return this.#inserting?.table ?? null
  }

  read(chunk: Buffer): void {
    const end = chunk.lastIndexOf(NEWLINE)
    if (end === -1) {
      this.#rest.push(chunk)
      return
    }
    const text = Buffer.concat([...this.#rest, chunk.subarray(0, end)]).toString('latin1')
    this.#rest = [chunk.subarray(end + 1)]
    for (const line of text.split('\n')) this.#readLine(line)
  }

  #readLine(line: string): void {
    if (line.startsWith('INSERT ')) this.#readInsert(line)
    else if (line.startsWith('(') && this.#inserting) this.#readRows(this.#inserting, line, 0)
    else if (line.startsWith(COMPLETED)) this.isComplete = true
  }

  #readInsert(line: string): void {
    const [opening, table, names] = INSERT.exec(line) ?? []
    if (opening === undefined || table === undefined || names === undefined)
      throw new Error(`the dump has a statement that cannot be read: ${line.slice(0, 80)}`)
    const money = new Set(this.#money.get(table))
    const columns = names.split(', ').map((name) => name.slice(1, -1))
    this.#inserting = { table, money: columns.map((column) => (money.has(column) ? column : undefined)) }
    this.#readRows(this.#inserting, line, opening.length)
  }

  /** Reads `(1,'a',NULL),(2,…);` from a position on. */
  #readRows({ table, money }: Inserting, line: string, from: number): void {
    let column = 0
    let rows = 0
    for (let at = from; at < line.length; at += 1) {
      const code = line.charCodeAt(at)
      if (code === OPEN) column = 0
      else if (code === CLOSE) rows += 1
      else if (code === COMMA) column += 1
      else if (code === SEMICOLON) break
      else {
        const end = code === QUOTE ? endOfText(line, at) : endOfWord(line, at)
        this.#readValue(table, money[column], line.slice(at, end))
        at = end - 1
      }
    }
    this.#rows[table] = (this.#rows[table] ?? 0) + rows
    this.#total += rows
  }

  #readValue(table: string, money: string | undefined, value: string): void {
    const sums = this.#sums[table]
    if (money !== undefined && sums && value !== 'NULL') sums[money] = (sums[money] ?? 0n) + BigInt(value)
    const key = value.startsWith("'v1.") ? SEALED.exec(value.slice(1, -1))?.[1] : undefined
    if (key !== undefined) this.#keys.add(key)
  }
}

/** The position after the quote that ends a text. */
function endOfText(line: string, from: number): number {
  for (let at = from + 1; at < line.length; at += 1) {
    const code = line.charCodeAt(at)
    if (code === BACKSLASH) at += 1
    else if (code === QUOTE) return at + 1
  }
  throw new Error('the dump has a text without an end')
}

/** The position after a number, `NULL`, `0x…` or `_binary`. */
function endOfWord(line: string, from: number): number {
  let at = from
  while (at < line.length) {
    const code = line.charCodeAt(at)
    if (code === COMMA || code === CLOSE || code === QUOTE) return at
    at += 1
  }
  return at
}
