import type { PoolConnection } from 'mysql2'
import type { Context, Rehearsal } from '#context.ts'
import { isRetryable } from '#db/database-error.ts'
import { command, sendOver, takeConnection } from '#db/mysql-adapter.ts'
import { queriesOver, type Queries, type Send } from '#db/queries.ts'
import { retrying } from '#db/retry.ts'
import type { RealTime } from '#shared/time.ts'

type Effect = () => Promise<void> | void

/** A unit of work: statements on its connection, which are committed together or not at all. */
export interface Tx extends Queries {
  readonly ctx: Context
  /** What a rehearsal shows of the work. */
  readonly drafts: Rehearsal
  /** One instant for the whole unit of work, so that two rows written together agree. */
  readonly now: RealTime
  /** Runs after the commit. A failing effect is logged: what is committed stays committed. */
  readonly afterCommit: (effect: Effect) => void
}

/** After this no further attempt begins: each one may meet a server that is silent until a deadline, and somebody waits for the answer. */
const RETRY_FOR_MS = 10_000

/**
 * Runs work in a transaction that is no command: what a queue notes of its own doings (claims, leases, pauses), which nobody asked for
 * and the audit log does not name. Commands run through `perform`; steps receive their `tx`.
 *
 * The work may run several times and must be repeatable: no network, no counters outside `tx`. A commit whose answer was lost is
 * run again too, which is safe because unique keys and conditional updates decide what is new.
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
   * Asked before the work of each attempt: whether an earlier one was committed, and the answer to its commit was lost. It waits for one
   * that is still at its commit. Absent where a second run answers the same by itself.
   */
  readonly wasCommitted?: ((tx: Tx, attempt: number) => Promise<boolean>) | undefined
}

/** A run that reached its commit. */
interface Outcome<T> {
  readonly result: T
  readonly effects: readonly Effect[]
}

/** An earlier attempt was committed, and the answer to its commit was lost. */
class CommittedBefore extends Error {
  override readonly name = 'CommittedBefore'
}

/**
 * The only place that opens a transaction. Where the context is for a rehearsal, the work runs and is rolled back: it cannot show
 * anything else than what it would do.
 *
 * Nothing runs outside the transaction: its statements go one after the other, and once the server has aborted it, or the work is
 * over, `tx` refuses any more. Without that, a statement behind the one that failed would be committed by itself.
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
  if (!outcome) throw new Error('a transaction was committed whose work had not come to its end')
  await runEffects(ctx, outcome.effects)
  return outcome.result
}

/** Notes in `reached` what the work came to, before it is committed: the answer to the commit may be lost. */
async function runOnce<T>(
  ctx: Context,
  { work, wasCommitted }: Unit<T>,
  attempt: number,
  reached: Outcome<T>[],
): Promise<void> {
  const now = ctx.clock.now()
  const connection = await takeConnection(ctx.db.pool)
  const gate = gateTo(sendOver(connection))
  try {
    await command(connection, 'START TRANSACTION')
    const queries = queriesOver(gate.send)
    const drafts: Rehearsal = { changes: [], events: [] }
    const effects: Effect[] = []
    const afterCommit: Tx['afterCommit'] = (effect) => void effects.push(effect)
    const tx: Tx = { ...queries, ctx, now, drafts, afterCommit }
    // Before the work: it must not meet its own rows.
    if (await wasCommitted?.(tx, attempt)) throw new CommittedBefore()
    const result = await work(tx)
    await gate.close()
    if (ctx.rehearsal) {
      effects.length = 0
      ctx.rehearsal.changes.push(...drafts.changes)
      ctx.rehearsal.events.push(...drafts.events)
    }
    reached.push({ result, effects })
    await command(connection, ctx.rehearsal ? 'ROLLBACK' : 'COMMIT')
    connection.release()
  } catch (error) {
    // What still runs ends with the rollback; what it failed with is of no interest beside the error that is thrown.
    await gate.close().catch(() => undefined)
    await rollBack(connection)
    throw error
  }
}

/** A connection that does not take the rollback may still hold the transaction: it goes to nobody else. */
async function rollBack(connection: PoolConnection): Promise<void> {
  try {
    await command(connection, 'ROLLBACK')
    connection.release()
  } catch {
    connection.destroy()
  }
}

interface Gate {
  readonly send: Send
  /** Waits for the statement that runs, and lets no more pass. Throws the error that aborted the transaction, if one did. */
  close(): Promise<void>
}

function gateTo(send: Send): Gate {
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
