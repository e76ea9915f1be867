import type { Context, Rehearsal } from '#context.ts'
import type { Connection } from '#db/connection.ts'
import { isAnyDuplicate, UnknownCommit } from '#db/database-error.ts'
import type { ConnectionPool } from '#db/pool.ts'
import { queriesOver, type Queries, type Send } from '#db/queries.ts'
import { retrying } from '#db/retry.ts'
import type { RealTime } from '#shared/time.ts'

type AfterCommit = () => Promise<void> | void

/** A unit of work: its statements are committed together or not at all. */
export interface Tx extends Queries {
  readonly ctx: Context
  /** What a rehearsal collects. */
  readonly drafts: Rehearsal
  /** One instant for the whole unit of work, so that rows written together agree. */
  readonly now: RealTime
  /** Registers work that runs after the commit. If it fails, this is logged: what is committed stays committed. */
  readonly afterCommit: (work: AfterCommit) => void
}

/** Starts no attempt after this, because a caller is waiting. A connection to an unresponsive server takes three seconds more. */
const RETRY_FOR_MS = 8_000

/**
 * Runs a queue's work with each statement as its own transaction, which saves the round trips of BEGIN and COMMIT. The work must be
 * idempotent.
 */
export async function byStatement<T>(ctx: Context, work: (db: Queries) => Promise<T>): Promise<T> {
  return retrying(
    () => work(ctx.db),
    RETRY_FOR_MS,
    () => ctx.count('transaction_retries_total'),
  )
}

/**
 * Whether an earlier attempt was committed and the answer to its COMMIT lost. Called before the work of each attempt. It waits for an
 * attempt that is still committing.
 */
export type WasCommitted = (tx: Tx, attempt: number) => Promise<boolean>

/** A run that reached its COMMIT. */
interface Outcome<T> {
  readonly result: T
  readonly afterCommit: readonly AfterCommit[]
}

/** An earlier attempt was committed, and the answer to its COMMIT was lost. */
class CommittedBefore extends Error {
  override readonly name = 'CommittedBefore'
}

/**
 * The only place that opens a transaction: for commands, through `perform`, and for the bookkeeping of queues (claims, leases, pauses). No
 * caller asked for that bookkeeping, so the audit log does not name it. Steps receive its `tx`. In a rehearsal, the work runs and is rolled
 * back, which shows exactly what it would do.
 *
 * The work may run several times and must be repeatable: no network calls, no counters outside `tx`. It also runs again if the answer to
 * COMMIT was lost, unless `wasCommitted` finds the earlier attempt. Without `wasCommitted`, a second run must give the same result by
 * itself, because unique keys and conditional updates decide what is new. A claim may also find itself taken: the row then waits for the
 * next pass.
 *
 * Nothing is committed outside the transaction. No statement is sent before the answer to `BEGIN`, or after an error that may have ended
 * the transaction. A connection on which `BEGIN`, `COMMIT` or `ROLLBACK` failed is ended and never reused.
 */
export async function inTransaction<T>(
  ctx: Context,
  work: (tx: Tx) => Promise<T>,
  wasCommitted?: WasCommitted,
): Promise<T> {
  const reached: Outcome<T>[] = []
  const run = async (attempt: number): Promise<void> => {
    const attempted = async (tx: Tx): Promise<T> => {
      // Check before the work, which would otherwise find rows of an earlier attempt.
      if (await wasCommitted?.(tx, attempt)) throw new CommittedBefore()
      return work(tx)
    }
    try {
      await runOnce(ctx, attempted, reached)
    } catch (error) {
      if (!(error instanceof CommittedBefore)) throw error
    }
  }
  await retrying(run, RETRY_FOR_MS, () => ctx.count('transaction_retries_total'))
  const outcome = reached.at(-1)
  if (!outcome) throw new Error('a transaction was committed before its work ended')
  await runAfterCommit(ctx, outcome.afterCommit)
  return outcome.result
}

/** Adds the outcome to `reached` before the COMMIT, whose answer may be lost. */
async function runOnce<T>(ctx: Context, work: (tx: Tx) => Promise<T>, reached: Outcome<T>[]): Promise<void> {
  const now = ctx.clock.now()
  const { pool } = ctx.db
  const connection = await pool.take()
  const statements = new TransactionStatements(connection)
  try {
    await connection.command(BEGIN)
  } catch (error) {
    pool.destroy(connection)
    throw error
  }
  const drafts: Rehearsal = { changes: [], events: [] }
  const afterCommit: AfterCommit[] = []
  const tx: Tx = {
    ...queriesOver(statements.send),
    ctx,
    now,
    drafts,
    afterCommit: (later) => void afterCommit.push(later),
  }
  try {
    const result = await work(tx)
    statements.end()
    reached.push({ result, afterCommit: ctx.rehearsal ? [] : afterCommit })
  } catch (error) {
    statements.abandon()
    await rollBack(pool, connection)
    throw error
  }
  if (ctx.rehearsal) {
    ctx.rehearsal.changes.push(...drafts.changes)
    ctx.rehearsal.events.push(...drafts.events)
    await rollBack(pool, connection)
  } else await commit(pool, connection)
}

/** After any error, the commit status is unknown. */
async function commit(pool: ConnectionPool, connection: Connection): Promise<void> {
  try {
    await connection.command('COMMIT')
  } catch (error) {
    pool.destroy(connection)
    throw new UnknownCommit(error)
  }
  pool.release(connection)
}

/** A connection on which the rollback fails may still hold the transaction, so no other caller gets it. */
async function rollBack(pool: ConnectionPool, connection: Connection): Promise<void> {
  try {
    await connection.command('ROLLBACK')
  } catch {
    pool.destroy(connection)
    return
  }
  pool.release(connection)
}

const BEGIN = 'START TRANSACTION'

/** Lets the statements of a transaction pass one by one, and none after an error that may have ended the transaction. */
class TransactionStatements {
  readonly #connection: Connection
  #isUnderWay = false
  #isOver = false
  #failure: unknown = null

  constructor(connection: Connection) {
    this.#connection = connection
  }

  readonly send: Send = async (sql, params) => {
    this.#refuse()
    this.#isUnderWay = true
    try {
      return await this.#connection.send(sql, params)
    } catch (error) {
      // A duplicate-key error rolls back only its statement. After any other error the server may commit each statement by itself.
      if (!isAnyDuplicate(error)) this.#failure ??= error
      throw error
    } finally {
      this.#isUnderWay = false
    }
  }

  /** The work has succeeded: lets no more statements pass. Throws the error that ended the transaction, if the work ignored it. */
  end(): void {
    this.#refuse()
    this.#isOver = true
  }

  /** The work has failed: lets no more statements pass. */
  abandon(): void {
    this.#isOver = true
  }

  #refuse(): void {
    if (this.#failure !== null) throw this.#failure as Error
    if (this.#isOver) throw new Error('the transaction is over: this statement came too late')
    // The order of statements is the order of their locks, and decides what a read sees.
    if (this.#isUnderWay) throw new Error('a transaction runs one statement at a time: wait for the previous one')
  }
}

async function runAfterCommit(ctx: Context, afterCommit: readonly AfterCommit[]): Promise<void> {
  for (const work of afterCommit) {
    try {
      await work()
    } catch (error) {
      ctx.log.error({ error }, 'an effect after the commit failed')
    }
  }
}
