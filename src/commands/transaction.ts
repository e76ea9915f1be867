import type { PoolConnection } from 'mysql2'
import type { Context, Rehearsal } from '#context.ts'
import { isRetryable } from '#db/database-error.ts'
import { BEGIN, end, sendTogether, takeConnection, type Statement } from '#db/mysql-adapter.ts'
import { queriesOver, type Defer, type Param, type Queries, type Send } from '#db/queries.ts'
import { retrying } from '#db/retry.ts'
import type { RealTime } from '#shared/time.ts'

type Effect = () => Promise<void> | void

/** A unit of work: its statements are committed together or not at all. */
export interface Tx extends Queries {
  readonly ctx: Context
  /** What a rehearsal shows. */
  readonly drafts: Rehearsal
  /** One instant for the whole unit of work, so that rows written together agree. */
  readonly now: RealTime
  /** Sends what is deferred and waits for all answers. Throws the error that ended the transaction, if one did. */
  readonly settle: () => Promise<void>
  /** Runs after the commit. A failing effect is logged: what is committed stays committed. */
  readonly afterCommit: (effect: Effect) => void
}

/** No attempt begins later: somebody waits for the answer, and each attempt may take until a deadline where the server is unresponsive. */
const RETRY_FOR_MS = 10_000

/**
 * Runs work in a transaction without a command: the bookkeeping of queues (claims, leases, pauses), which no caller asked for and the
 * audit log does not name. Commands run through `perform`; steps receive their `tx`.
 *
 * The work may run several times and must be repeatable: no network calls, no counters outside `tx`. It also runs again where the
 * answer to COMMIT was lost, which is safe because unique keys and conditional updates decide what is new.
 */
export async function inTransaction<T>(ctx: Context, work: (tx: Tx) => Promise<T>): Promise<T> {
  return runUnit(ctx, { work })
}

/**
 * Runs a queue's work whose statements are a transaction each, which saves the round trips that begin and end one. Run several times, it
 * must come to the same.
 */
export async function byStatement<T>(ctx: Context, work: (db: Queries) => Promise<T>): Promise<T> {
  return retrying(
    () => work(ctx.db),
    RETRY_FOR_MS,
    () => ctx.count('transaction_retries_total'),
  )
}

export interface Unit<T> {
  readonly work: (tx: Tx) => Promise<T>
  /**
   * Called before the work of each attempt: whether an earlier attempt was committed and the answer to its COMMIT lost. It waits for an
   * attempt that is still committing. Absent if a second run gives the same result by itself.
   */
  readonly wasCommitted?: ((tx: Tx, attempt: number) => Promise<boolean>) | undefined
}

/** A run that reached its COMMIT. */
interface Outcome<T> {
  readonly result: T
  readonly effects: readonly Effect[]
}

/** An earlier attempt was committed, and the answer to its COMMIT was lost. */
class CommittedBefore extends Error {
  override readonly name = 'CommittedBefore'
}

/**
 * The only place that opens a transaction. With a context for a rehearsal the work runs and is rolled back, so that it shows exactly
 * what it would do.
 *
 * Nothing is committed outside the transaction: `tx` refuses statements once the server has aborted it or the work is over, and the
 * session (`BEGIN`) does not commit by itself what was sent behind the statement that failed.
 */
export async function runUnit<T>(ctx: Context, unit: Unit<T>): Promise<T> {
  const reached: Outcome<T>[] = []
  const run = async (attempt: number): Promise<void> => {
    try {
      await runOnce(ctx, unit, attempt, reached)
    } catch (error) {
      if (!(error instanceof CommittedBefore)) throw error
    }
  }
  await retrying(run, RETRY_FOR_MS, () => ctx.count('transaction_retries_total'))
  const outcome = reached.at(-1)
  if (!outcome) throw new Error('a transaction was committed before its work ended')
  await runEffects(ctx, outcome.effects)
  return outcome.result
}

/** Adds the outcome to `reached` before the COMMIT, whose answer may be lost. */
async function runOnce<T>(
  ctx: Context,
  { work, wasCommitted }: Unit<T>,
  attempt: number,
  reached: Outcome<T>[],
): Promise<void> {
  const now = ctx.clock.now()
  const connection = await takeConnection(ctx.db.pool)
  const guarded = new GuardedConnection(connection)
  try {
    const queries = queriesOver(guarded.send, guarded.defer)
    const drafts: Rehearsal = { changes: [], events: [] }
    const effects: Effect[] = []
    const afterCommit: Tx['afterCommit'] = (effect) => void effects.push(effect)
    const tx: Tx = { ...queries, ctx, now, drafts, settle: guarded.settle, afterCommit }
    // Before the work, which must not meet its own rows.
    if (await wasCommitted?.(tx, attempt)) throw new CommittedBefore()
    const result = await work(tx)
    await guarded.close()
    if (ctx.rehearsal) {
      effects.length = 0
      ctx.rehearsal.changes.push(...drafts.changes)
      ctx.rehearsal.events.push(...drafts.events)
    }
    reached.push({ result, effects })
    if (guarded.hasBegun) await end(connection, ctx.rehearsal ? 'ROLLBACK' : 'COMMIT')
    connection.release()
  } catch (error) {
    await guarded.abandon()
    if (guarded.hasBegun) await rollBack(connection)
    else connection.release()
    throw error
  }
}

/** A connection on which the rollback fails may still hold the transaction, so nobody else gets it. */
async function rollBack(connection: PoolConnection): Promise<void> {
  try {
    await end(connection, 'ROLLBACK')
    connection.release()
  } catch {
    connection.destroy()
  }
}

/** A statement that has not been sent. */
interface Queued {
  readonly sql: string
  readonly params: readonly Param[]
  /** Whether nobody waits for its answer: it goes with the next statement. */
  readonly isDeferred: boolean
  /** Takes the answer; what it throws ends the transaction. */
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
  /** Makes the error that ends the transaction where this statement does. */
  readonly translate?: ((error: Error) => Error) | undefined
}

/** The way of a transaction's statements to the server: those that are asked for at one moment go in one write. */
class GuardedConnection {
  readonly #connection: PoolConnection
  #queue: Queued[] = []
  #hasBegun = false
  #isScheduled = false
  #isClosed = false
  /** How many of the statements that were sent have no answer. */
  #underWay = 0
  #idle: PromiseWithResolvers<void> | null = null
  /** What ended the transaction. */
  #failure: Error | null = null

  constructor(connection: PoolConnection) {
    this.#connection = connection
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  readonly send: Send = (sql, params) =>
    new Promise((resolve, reject) => {
      const refusal = this.#refusal()
      if (refusal) {
        reject(refusal)
        return
      }
      this.#queue.push({ sql, params, isDeferred: false, resolve, reject })
      this.#flushSoon()
    })

  readonly defer: Defer = (sql, params, check, translate) => {
    const refusal = this.#refusal()
    if (refusal) return Promise.reject(refusal)
    this.#queue.push({ sql, params, isDeferred: true, resolve: check, reject: () => undefined, translate })
    return Promise.resolve()
  }

  readonly settle = async (): Promise<void> => {
    await this.#answers()
    this.#flush()
    await this.#answers()
    if (this.#failure) throw this.#failure
  }

  /** Sends what is left, waits for all answers, and lets no more pass. Throws the error that ended the transaction, if one did. */
  async close(): Promise<void> {
    this.#refuse()
    await this.settle()
  }

  /** As `close`, where the work has failed: what was not sent need not be, and what else failed is of no interest. */
  async abandon(): Promise<void> {
    this.#refuse()
    this.#queue = []
    await this.#answers()
  }

  #refusal(): Error | null {
    return this.#failure ?? (this.#isClosed ? tooLate() : null)
  }

  /** What is asked for until then goes along. */
  #flushSoon(): void {
    if (this.#isScheduled || this.#underWay > 0) return
    this.#isScheduled = true
    queueMicrotask(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  #refuse(): void {
    this.#isClosed = true
    for (const { isDeferred, reject } of this.#queue) if (!isDeferred) reject(tooLate())
    this.#queue = this.#queue.filter(({ isDeferred }) => isDeferred)
  }

  #flush(): void {
    const batch = this.#queue
    if (batch.length === 0) return
    this.#queue = []
    if (this.#failure) {
      for (const { reject } of batch) reject(this.#failure)
      return
    }
    const statements: Statement[] = batch.map((statement) => ({
      sql: statement.sql,
      params: statement.params,
      finish: (error, result) => this.#finish(statement, error, result),
    }))
    if (!this.#hasBegun) {
      this.#hasBegun = true
      const begin = { sql: BEGIN, params: [], isDeferred: true, resolve: () => undefined, reject: () => undefined }
      statements.unshift({ ...begin, finish: (error, result) => this.#finish(begin, error, result) })
    }
    this.#underWay = statements.length
    sendTogether(this.#connection, statements)
  }

  #finish({ isDeferred, resolve, reject, translate }: Queued, error: Error | null, result: unknown): void {
    if (error && (isDeferred || isRetryable(error))) this.#failure ??= translate ? translate(error) : error
    // What the server ran after it had aborted the transaction comes to nothing either, whatever it answered.
    const failed = this.#failure ?? error
    if (failed) reject(failed)
    else {
      try {
        resolve(result)
      } catch (unexpected) {
        this.#failure = unexpected as Error
      }
    }
    this.#underWay -= 1
    if (this.#underWay > 0) return
    if (this.#queue.some((statement) => !statement.isDeferred)) this.#flush()
    else {
      this.#idle?.resolve()
      this.#idle = null
    }
  }

  async #answers(): Promise<void> {
    if (this.#underWay === 0) return
    this.#idle ??= Promise.withResolvers()
    await this.#idle.promise
  }
}

function tooLate(): Error {
  return new Error('the transaction is over: this statement came too late')
}

async function runEffects(ctx: Context, effects: readonly Effect[]): Promise<void> {
  for (const effect of effects) {
    try {
      await effect()
    } catch (error) {
      ctx.log.error({ error }, 'an effect after the commit failed')
    }
  }
}
