import type { PoolConnection } from 'mysql2'
import type { Context, Rehearsal } from '#context.ts'
import { isRetryable } from '#db/database-error.ts'
import { command, sendOver, takeConnection } from '#db/mysql-adapter.ts'
import { queriesOver, type Queries, type Send } from '#db/queries.ts'
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
   * attempt that is still committing. Absent where a second run gives the same result by itself.
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
 * Nothing runs outside the transaction: statements run one after the other, and `tx` refuses them once the server has aborted the
 * transaction or the work is over. Otherwise a statement after the one that failed would be committed by itself.
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
  const guarded = guardedSend(sendOver(connection))
  try {
    await command(connection, 'START TRANSACTION')
    const queries = queriesOver(guarded.send)
    const drafts: Rehearsal = { changes: [], events: [] }
    const effects: Effect[] = []
    const afterCommit: Tx['afterCommit'] = (effect) => void effects.push(effect)
    const tx: Tx = { ...queries, ctx, now, drafts, afterCommit }
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
    await command(connection, ctx.rehearsal ? 'ROLLBACK' : 'COMMIT')
    connection.release()
  } catch (error) {
    // A statement that still runs ends with the rollback; its error does not matter beside the one that is thrown.
    await guarded.close().catch(() => undefined)
    await rollBack(connection)
    throw error
  }
}

/** A connection on which the rollback fails may still hold the transaction, so nobody else gets it. */
async function rollBack(connection: PoolConnection): Promise<void> {
  try {
    await command(connection, 'ROLLBACK')
    connection.release()
  } catch {
    connection.destroy()
  }
}

interface GuardedSend {
  readonly send: Send
  /** Refuses further statements and waits for the one under way. Throws the error that aborted the transaction, if any. */
  close(): Promise<void>
}

function guardedSend(send: Send): GuardedSend {
  let abortedBy: Error | null = null
  let isClosed = false
  let last: Promise<unknown> = Promise.resolve()

  const pass: Send = async (sql, params) => {
    if (abortedBy !== null) throw abortedBy
    if (isClosed) throw new Error('the transaction is over: this statement came too late')
    try {
      return await send(sql, params)
    } catch (error) {
      if (error instanceof Error && isRetryable(error)) abortedBy = error
      throw error
    }
  }
  return {
    send: (sql, params) => {
      const answer = last.then(() => pass(sql, params))
      last = answer.catch(() => undefined)
      return answer
    },
    close: async () => {
      isClosed = true
      await last
      if (abortedBy !== null) throw abortedBy
    },
  }
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
