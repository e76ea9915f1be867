import type { Context } from '#context.ts'
import type { Connection } from '#db/connection.ts'
import type { ConnectionPool } from '#db/pool.ts'
import { queriesOver, type Send } from '#db/queries.ts'
import { AppError } from '#shared/errors.ts'

/** Where a side waits for the scheduler: before it begins, before a transaction, before a write, before COMMIT. */
export interface Gate {
  readonly kind: 'start' | 'begin' | 'write' | 'commit'
  readonly sql: string
  /** Whether others see what it does at once: COMMIT, and a write outside a transaction. */
  readonly isSeen: boolean
}

/** What the scheduler lets happen at a gate. The last three are faults; the last two are for COMMIT. */
export type Fate = 'pass' | 'kill' | 'answer lost' | 'commit lost'

/** `steps` stops before each write and each COMMIT; `units` only where no transaction is open. */
export type Grain = 'steps' | 'units'

const COMMIT_TOKENS = 'commit_tokens'
/** A statement that writes; its group is the table. */
const WRITE = /^(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)/

/** How a command ended: `ok` with what it says of itself, the code of its error, or `Error: …` for one that the product does not name. */
export type Answer = string

const NAMELESS = /^\w*Error: /

/** Whether the command failed by an error that the product does not name, as a fault in it or in the rig does. */
export function isNameless(answer: Answer | null): boolean {
  return answer !== null && NAMELESS.test(answer)
}

/** One of the two commands: it runs on connections whose statements wait for the scheduler. */
export class Side {
  readonly name: string
  readonly #grain: Grain
  readonly #pool: ConnectionPool
  readonly #held = new Map<Connection, Connection>()
  readonly #threads = new Map<Connection, number>()
  /** Tables that its statements named. */
  readonly written = new Set<string>()
  gate: Gate | null = null
  answer: Answer | null = null
  isDead = false
  #open: Connection | null = null
  #pass: ((fate: Fate) => void) | null = null
  #changed = Promise.withResolvers<null>()

  constructor(name: string, grain: Grain, pool: ConnectionPool) {
    this.name = name
    this.#grain = grain
    this.#pool = pool
  }

  /** Begins the command; it stops at its first gate. */
  begin(ctx: Context, run: (ctx: Context) => Promise<unknown>): void {
    const { pool, targets } = { pool: this.#gatedPool(), targets: ctx.db.targets }
    const own: Context = { ...ctx, db: { ...queriesOver(pool.send), pool, targets } }
    const begun = this.#stopAt({ kind: 'start', sql: '', isSeen: false }).then(() => run(own))
    begun.then(
      (value) => this.#end(value === undefined ? 'ok' : `ok: ${JSON.stringify(value)}`),
      (error: unknown) => this.#end(nameOf(error)),
    )
  }

  /** Whether it neither runs nor waits for a lock. */
  get isIdle(): boolean {
    return this.gate !== null || this.isOver
  }

  get isOver(): boolean {
    return this.answer !== null || this.isDead
  }

  get isInTransaction(): boolean {
    return this.#open !== null
  }

  /** The server's numbers of the connections that it holds. */
  get threads(): readonly number[] {
    return [...this.#threads.values()]
  }

  /** Resolves when the side comes to a gate or ends. */
  get changed(): Promise<unknown> {
    return this.#changed.promise
  }

  /** Lets the side pass its gate. */
  pass(fate: Exclude<Fate, 'kill'>): void {
    const pass = this.#pass
    this.gate = null
    this.#pass = null
    this.#changed = Promise.withResolvers<null>()
    pass?.(fate)
  }

  /** Ends the side at its gate, as the death of its process would: its connections break off, and nothing of it goes on. */
  kill(): number[] {
    const threads = [...this.#threads.values()]
    this.isDead = true
    this.gate = null
    this.#open = null
    for (const [wrapper] of [...this.#held]) this.#giveBack(wrapper, 'destroy')
    return threads
  }

  #end(answer: Answer): void {
    if (this.isDead) return
    this.answer = answer
    this.#changed.resolve(null)
  }

  #stopAt(gate: Gate): Promise<Fate> {
    return new Promise((resolve) => {
      this.gate = gate
      this.#pass = resolve
      this.#changed.resolve(null)
    })
  }

  /** The pool as the product sees it. It has every public member, and so has each connection: the cast would hide that one is missing. */
  #gatedPool(): ConnectionPool {
    const pool = this.#pool
    const take = (): Promise<Connection> => this.#take()
    const gated: Pick<ConnectionPool, keyof ConnectionPool> = {
      get counts() {
        return pool.counts
      },
      take,
      release: (wrapper) => this.#giveBack(wrapper, 'release'),
      destroy: (wrapper) => this.#giveBack(wrapper, 'destroy'),
      send: async (sql, params) => {
        const connection = await take()
        try {
          return await connection.send(sql, params)
        } finally {
          gated.release(connection)
        }
      },
      onRelease: (listener) => pool.onRelease(listener),
      end: () => Promise.resolve(),
    }
    return gated as unknown as ConnectionPool
  }

  async #take(): Promise<Connection> {
    if (this.isDead) return never()
    const real = await this.#pool.take()
    const wrapper = this.#gated(real)
    this.#held.set(wrapper, real)
    this.#threads.set(wrapper, await threadOf(real))
    return wrapper
  }

  #giveBack(wrapper: Connection, how: 'release' | 'destroy'): void {
    const real = this.#held.get(wrapper)
    if (!real) return
    this.#held.delete(wrapper)
    this.#threads.delete(wrapper)
    if (this.#open === wrapper) this.#open = null
    this.#pool[how](real)
  }

  #gated(real: Connection): Connection {
    const gated =
      (send: Send): Send =>
      async (sql, params) => {
        await this.#beforeStatement(wrapper as Connection, sql)
        return this.#unlessDead(send(sql, params))
      }
    const wrapper: Omit<Connection, 'cluster' | 'release' | 'destroy'> = {
      get isServerFailed() {
        return real.isServerFailed
      },
      send: gated(real.send),
      sendInTransaction: gated(real.sendInTransaction),
      command: async (sql) => this.#command(wrapper as Connection, real, sql),
    }
    return wrapper as Connection
  }

  async #beforeStatement(wrapper: Connection, sql: string): Promise<void> {
    if (this.isDead) return never()
    const table = WRITE.exec(sql)?.[1]
    if (table === undefined && !sql.includes(' FOR UPDATE')) return
    if (table !== undefined) this.written.add(table)
    // The row of a random key that only another attempt of the same command looks for: its place in an order makes no difference.
    if (table === COMMIT_TOKENS) return
    const isSeen = this.#open !== wrapper
    if (this.#grain === 'steps' || isSeen) await this.#stopAt({ kind: 'write', sql, isSeen })
  }

  async #command(wrapper: Connection, real: Connection, sql: string): Promise<unknown> {
    if (this.isDead) return never()
    if (sql === 'START TRANSACTION') {
      if (this.#grain === 'units') await this.#stopAt({ kind: 'begin', sql, isSeen: false })
      this.#open = wrapper
    }
    const fate =
      sql === 'COMMIT' && this.#grain === 'steps' ? await this.#stopAt({ kind: 'commit', sql, isSeen: true }) : 'pass'
    const result = await this.#unlessDead(real.command(fate === 'commit lost' ? 'ROLLBACK' : sql))
    if (sql !== 'START TRANSACTION') this.#open = null
    if (fate === 'pass') return result
    throw Object.assign(new Error('Connection lost: The server closed the connection.'), {
      code: 'PROTOCOL_CONNECTION_LOST',
      fatal: true,
    })
  }

  async #unlessDead<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } finally {
      if (this.isDead) await never()
    }
  }
}

const THREADS = new WeakMap<Connection, number>()

/** The server's number of a connection. */
async function threadOf(real: Connection): Promise<number> {
  const known = THREADS.get(real)
  if (known !== undefined) return known
  const [row] = (await real.command('SELECT CONNECTION_ID() AS id')) as { id: number }[]
  const thread = Number(row?.id)
  THREADS.set(real, thread)
  return thread
}

function never(): Promise<never> {
  return new Promise(() => undefined)
}

function nameOf(error: unknown): Answer {
  if (error instanceof AppError) return error.code
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
