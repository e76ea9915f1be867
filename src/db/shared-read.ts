import type { Param, Queries, Sql } from './queries.ts'
import type { Table } from './table.ts'

/** Reads the rows of several keys; returns those that exist, by the names of their keys. */
type ReadAll<Key, Row> = (db: Queries, keys: readonly Key[]) => Promise<ReadonlyMap<string, Row>>

/** Runs a read on a connection, at once or as soon as one is free. */
type RunRead<Row> = (read: (db: Queries) => Promise<ReadonlyMap<string, Row>>) => Promise<ReadonlyMap<string, Row>>

/** Maximum number of callers per statement. */
export const MAX_CALLERS = 16
/** Maximum wait of the next read for the current one, whose connection may hang. */
const MAX_WAIT_MS = 20

/**
 * A read of rows by key that concurrent callers share. Callers that arrive during a read are served by the next one, with a single statement
 * for all. It is not a cache: no caller gets a row from a read that began before the call.
 */
export class SharedRead<Key, Row> {
  readonly #nameOf: (key: Key) => string
  readonly #readAll: ReadAll<Key, Row>
  readonly #groups = new WeakMap<Queries, Map<string, Group<Key, Row>>>()

  constructor(nameOf: (key: Key) => string, readAll: ReadAll<Key, Row>) {
    this.#nameOf = nameOf
    this.#readAll = readAll
  }

  /**
   * The row of the key, or null. Callers of one `group` on one database share reads, and get the same object. `run` provides the group's
   * connection.
   */
  async find(db: Queries, key: Key, group = '', run: RunRead<Row> = (read) => read(db)): Promise<Readonly<Row> | null> {
    let groups = this.#groups.get(db)
    if (!groups) this.#groups.set(db, (groups = new Map<string, Group<Key, Row>>()))
    let own = groups.get(group)
    if (!own) groups.set(group, (own = new Group(this.#readAll, run)))
    const name = this.#nameOf(key)
    return (await own.join(name, key)).get(name) ?? null
  }
}

class Group<Key, Row> {
  readonly #readAll: ReadAll<Key, Row>
  readonly #run: RunRead<Row>
  #underWay = 0
  /** The batch that still accepts callers, because its statement has not been sent. */
  #open: Batch<Key, Row> | null = null

  constructor(readAll: ReadAll<Key, Row>, run: RunRead<Row>) {
    this.#readAll = readAll
    this.#run = run
  }

  join(name: string, key: Key): Promise<ReadonlyMap<string, Row>> {
    const batch = (this.#open ??= new Batch())
    batch.keys.set(name, key)
    batch.callers += 1
    if (batch.callers === MAX_CALLERS) this.#open = null
    if (batch.callers === MAX_CALLERS || this.#underWay === 0) this.#start(batch)
    else batch.timer ??= setTimeout(() => this.#start(batch), MAX_WAIT_MS)
    return batch.rows.promise
  }

  #start(batch: Batch<Key, Row>): void {
    if (batch.isStarted) return
    batch.isStarted = true
    clearTimeout(batch.timer)
    this.#underWay += 1
    const read = this.#run((db) => {
      if (this.#open === batch) this.#open = null
      return this.#readAll(db, [...batch.keys.values()])
    })
    batch.rows.resolve(
      read.finally(() => {
        this.#underWay -= 1
        // The read may have failed without a connection.
        if (this.#open === batch) this.#open = null
        if (this.#open) this.#start(this.#open)
      }),
    )
  }
}

class Batch<Key, Row> {
  readonly keys = new Map<string, Key>()
  readonly rows = Promise.withResolvers<ReadonlyMap<string, Row>>()
  callers = 0
  isStarted = false
  timer: NodeJS.Timeout | undefined
}

/** Reads rows by a unique text column. */
export function rowsBy<R>(table: Table<R>, property: Extract<keyof R, string>): SharedRead<string, R> {
  const condition = `${table.columnOf(property)} = ?`
  return new SharedRead(
    (value) => value,
    async (db, values) => {
      const { sql, params } = anyOf(
        condition,
        values.map((value) => [value]),
      )
      return new Map((await db.all(table, sql, params)).map((row) => [row[property] as string, row]))
    },
  )
}

/** Few different lengths, so that few statements are prepared. */
const PADDED_LENGTHS = [1, 2, 4, 8, 16]

/** `(a = ? AND b = ?) OR (a = ? AND b = ?) …`: rows that meet the condition with one of these sets of values, 1 to 16 of them. */
export function anyOf(condition: string, sets: readonly (readonly Param[])[]): Sql {
  const length = PADDED_LENGTHS.find((padded) => padded >= sets.length)
  const last = sets.at(-1)
  if (length === undefined || !last) throw new Error(`a condition on ${sets.length} sets of values`)
  const padding = Array.from({ length: length - sets.length }, () => last)
  return {
    sql: `WHERE ${Array.from({ length }, () => `(${condition})`).join(' OR ')}`,
    params: [...sets, ...padding].flat(),
  }
}
