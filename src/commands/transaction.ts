import type { Context, Rehearsal } from '#context.ts'
import type { Connection } from '#db/connection.ts'
import { isAnyDuplicate, isRolledBackAtCommit, UnknownCommit } from '#db/database-error.ts'
import type { ConnectionPool } from '#db/pool.ts'
import { queriesOver, type Param, type Queries } from '#db/queries.ts'
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

/** Of an attempt that reached its COMMIT. */
interface Outcome<T> {
  readonly result: T
  readonly afterCommit: readonly AfterCommit[]
}

/**
 * The only place that opens a transaction: for commands, through `perform`, and for the bookkeeping of queues (claims, leases, pauses) and
 * of providers (the state of a session, the answer to a refund). No caller asked for that bookkeeping, so the audit log does not name it.
 * Steps receive its `tx`. In a rehearsal, the work runs and is rolled back, which shows exactly what it would do.
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
  // The answer to a COMMIT may be lost, and a later attempt finds that its work was done.
  const reached: Outcome<T>[] = []
  const run = async (attempt: number): Promise<void> => {
    const transaction = await begin(ctx)
    try {
      // Check before the work, which would otherwise find rows of an earlier attempt.
      if (await wasCommitted?.(transaction.tx, attempt)) {
        await transaction.rollBack()
        return
      }
      const result = await work(transaction.tx)
      transaction.end()
      reached.push({ result, afterCommit: transaction.afterCommit })
    } catch (error) {
      await transaction.rollBack()
      throw error
    }
    if (ctx.rehearsal) {
      await transaction.rehearse(ctx.rehearsal)
      return
    }
    try {
      await transaction.commit()
    } catch (error) {
      // It may have lost to an earlier attempt, at another node: then the result of that one counts.
      if (isRolledBackAtCommit(error)) reached.pop()
      throw error
    }
  }
  await retrying(run, RETRY_FOR_MS, () => ctx.count('transaction_retries_total'))
  const outcome = reached.at(-1)
  if (!outcome) throw new Error('a transaction was committed before its work ended')
  if (!ctx.rehearsal) await runAfterCommit(ctx, outcome.afterCommit)
  return outcome.result
}

async function begin(ctx: Context): Promise<OpenTransaction> {
  const now = ctx.clock.now()
  const { pool } = ctx.db
  const connection = await pool.take()
  try {
    await connection.command('START TRANSACTION')
  } catch (error) {
    pool.destroy(connection)
    throw error
  }
  return new OpenTransaction(ctx, connection, now)
}

/** A transaction whose BEGIN was confirmed. Its statements pass one by one, and none after an error that may have ended it. */
class OpenTransaction {
  readonly tx: Tx
  readonly afterCommit: AfterCommit[] = []
  readonly #pool: ConnectionPool
  readonly #connection: Connection
  #underWay: Promise<unknown> | null = null
  #isOver = false
  #failure: unknown = null

  constructor(ctx: Context, connection: Connection, now: RealTime) {
    this.#pool = ctx.db.pool
    this.#connection = connection
    this.tx = {
      ...queriesOver((sql, params) => this.#send(sql, params)),
      ctx,
      now,
      drafts: { changes: [], events: [] },
      afterCommit: (work) => void this.afterCommit.push(work),
    }
  }

  /** The work has succeeded: lets no more statements pass. Throws the error that ended the transaction, if the work ignored it. */
  end(): void {
    this.#refuse()
    this.#isOver = true
  }

  /** After any error, the commit status is unknown. */
  async commit(): Promise<void> {
    try {
      await this.#connection.command('COMMIT')
    } catch (error) {
      this.#pool.destroy(this.#connection)
      throw new UnknownCommit(error)
    }
    this.#pool.release(this.#connection)
  }

  /** Keeps what the work would have changed, and changes nothing. */
  async rehearse(rehearsal: Rehearsal): Promise<void> {
    rehearsal.changes.push(...this.tx.drafts.changes)
    rehearsal.events.push(...this.tx.drafts.events)
    await this.rollBack()
  }

  /** A connection on which the rollback fails may still hold the transaction, so no other caller gets it. */
  async rollBack(): Promise<void> {
    this.#isOver = true
    // Sent after ROLLBACK, the statement under way would be committed by itself.
    await this.#underWay?.catch(() => undefined)
    try {
      await this.#connection.command('ROLLBACK')
    } catch {
      this.#pool.destroy(this.#connection)
      return
    }
    this.#pool.release(this.#connection)
  }

  async #send(sql: string, params: readonly Param[]): Promise<unknown> {
    this.#refuse()
    const answer = this.#connection.sendInTransaction(sql, params)
    this.#underWay = answer
    try {
      return await answer
    } catch (error) {
      // A duplicate-key error rolls back only its statement. After any other error the server may commit each statement by itself.
      if (!isAnyDuplicate(error)) this.#failure ??= error
      throw error
    } finally {
      this.#underWay = null
    }
  }

  #refuse(): void {
    if (this.#failure !== null) throw this.#failure as Error
    if (this.#isOver) throw new Error('the transaction is over: this statement came too late')
    // The order of statements is the order of their locks, and decides what a read sees.
    if (this.#underWay) throw new Error('a transaction runs one statement at a time: wait for the previous one')
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
