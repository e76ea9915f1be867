import { setTimeout as delay } from 'node:timers/promises'
import type { DataSource, EntityManager, InsertResult, QueryRunner } from 'typeorm'
import type { Context } from '#context.ts'
import { dropConnection } from './session.ts'

type Effect = () => Promise<void> | void

export interface Tx {
  readonly ctx: Context
  readonly manager: EntityManager
  /** One instant for the whole unit of work, so that two rows written together agree. */
  readonly now: Date
  /** Runs after the commit. A failing effect is logged: what is committed stays committed. */
  afterCommit(effect: Effect): void
}

export type ReadOnly = Pick<Tx, 'manager'>

const MAX_ATTEMPTS = 5
const FIRST_DELAY_MS = 5
/** After this no further attempt begins: each one may meet a server that is silent until a deadline, and somebody waits for the answer. */
const RETRY_FOR_MS = 10_000

/** Errors that mean "nothing of this happened, or it may have: run the whole work again" (DECISIONS 4). */
const RETRYABLE_ERRNO = new Set([
  1213, 1205, 1020, 1180, 1047, 3101, 8002, 8005, 9007, 8022, 8028,
  // The server is going away or the connection was killed.
  1053, 1927, 2006, 2013, 4031,
])
const RETRYABLE_CODE = new Set([
  'PROTOCOL_CONNECTION_LOST',
  'ECONNRESET',
  'EPIPE',
  'ECONNREFUSED',
  'ENOENT',
  'ETIMEDOUT',
])

/**
 * The only place that opens a transaction. Commands call it once; steps receive its `tx`.
 *
 * The work may run several times and must be repeatable: no network, no counters outside `tx`. A commit whose answer was lost is
 * run again too, which is safe because unique keys and conditional updates decide what is new.
 *
 * Nothing runs outside the transaction: its statements go one after the other, and once the server has aborted it, or the work is
 * over, `tx` refuses any more. Without that, a statement behind the one that failed would be committed by itself.
 */
export async function inTransaction<T>(ctx: Context, work: (tx: Tx) => Promise<T>): Promise<T> {
  const startedMs = performance.now()
  for (let attempt = 1; ; attempt += 1) {
    const effects: Effect[] = []
    let result: T
    try {
      result = await runOnce(ctx, effects, work)
    } catch (error) {
      const isLast = attempt >= MAX_ATTEMPTS || performance.now() - startedMs > RETRY_FOR_MS
      if (isLast || !isRetryable(error)) throw error
      ctx.count('transaction_retries_total')
      await delay(Math.random() * FIRST_DELAY_MS * 4 ** attempt)
      continue
    }
    await runEffects(ctx, effects)
    return result
  }
}

async function runOnce<T>(ctx: Context, effects: Effect[], work: (tx: Tx) => Promise<T>): Promise<T> {
  // What follows the commit has transactions of its own, whose outcome is nobody's answer.
  const { alsoCommit, ...inner } = ctx
  const now = ctx.clock.now()
  const runner = ctx.db.createQueryRunner()
  const gate = gateTo(ctx.db, runner)
  try {
    await runner.startTransaction()
    const { manager } = gate
    const result = await work({ ctx: inner, manager, now, afterCommit: (effect) => void effects.push(effect) })
    await alsoCommit?.(manager, result)
    await gate.close()
    await runner.commitTransaction()
    await runner.release()
    return result
  } catch (error) {
    // What still runs ends with the rollback; what it failed with is of no interest beside the error that is thrown.
    await gate.close().catch(() => undefined)
    await rollBack(runner)
    throw error
  }
}

/** A connection that does not take the rollback may still hold the transaction: it goes to nobody else. */
async function rollBack(runner: QueryRunner): Promise<void> {
  try {
    await runner.rollbackTransaction()
    await runner.release()
  } catch {
    await dropConnection(runner)
  }
}

interface Gate {
  readonly manager: EntityManager
  /** Waits for the statement that runs, and lets no more pass. Throws the error that aborted the transaction, if one did. */
  close(): Promise<void>
}

function gateTo(db: DataSource, runner: QueryRunner): Gate {
  let abortedBy: Error | null = null
  let isClosed = false
  let last: Promise<unknown> = Promise.resolve()

  const send = async (...statement: Parameters<QueryRunner['query']>): Promise<unknown> => {
    if (abortedBy !== null) throw abortedBy
    if (isClosed) throw new Error('the transaction is over: this statement came too late')
    try {
      return await runner.query(...statement)
    } catch (error) {
      if (error instanceof Error && isRetryable(error)) abortedBy = error
      throw error
    }
  }
  const query = (...statement: Parameters<QueryRunner['query']>): Promise<unknown> => {
    const answer = last.then(() => send(...statement))
    last = answer.catch(() => undefined)
    return answer
  }
  const gated = Object.create(runner, { query: { value: query } }) as QueryRunner
  const manager = db.createEntityManager(gated)
  Object.defineProperty(gated, 'manager', { value: manager })

  return {
    manager,
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

/** Whether the whole work may succeed when it is run again from its first line. */
export function isRetryable(error: unknown): boolean {
  const { errno, code, isFatal } = databaseFault(error)
  if (errno !== undefined) return RETRYABLE_ERRNO.has(errno) || (code !== undefined && RETRYABLE_CODE.has(code))
  // The driver's word for a connection that was found closed has no code at all.
  return code === undefined ? isFatal : RETRYABLE_CODE.has(code)
}

/** Whether the error is a duplicate (1062) on the named unique key. */
export function isDuplicate(error: unknown, key: string): boolean {
  const { errno } = databaseFault(error)
  // MariaDB names the key alone, MySQL 8 with its table: 'plans.plans_app_code'.
  return errno === 1062 && error instanceof Error && new RegExp(`for key '(\\w+\\.)?${key}'$`).test(error.message)
}

/** Runs an insert; a duplicate on `key` becomes the error that `translate` makes. */
export async function onDuplicate<T>(key: string, insert: Promise<T>, translate: () => Error): Promise<T> {
  try {
    return await insert
  } catch (error) {
    throw isDuplicate(error, key) ? translate() : error
  }
}

/** Runs an insert; tells whether the row is new. A duplicate on `key` rolls back that statement alone. */
export async function insertedNew(key: string, insert: Promise<unknown>): Promise<boolean> {
  try {
    await insert
    return true
  } catch (error) {
    if (isDuplicate(error, key)) return false
    throw error
  }
}

/** The id that the database gave to the inserted row; the driver tells it as text where the column is BIGINT. */
export function insertedId(result: InsertResult): number {
  const [identifier] = result.identifiers as { id: number | string }[]
  const id = Number(identifier?.id)
  if (!Number.isSafeInteger(id)) throw new Error('the database gave no id that a number holds exactly')
  return id
}

function databaseFault(error: unknown): { errno?: number; code?: string; isFatal: boolean } {
  if (typeof error !== 'object' || error === null) return { isFatal: false }
  const { errno, code, fatal } = error as { errno?: unknown; code?: unknown; fatal?: unknown }
  return {
    isFatal: fatal === true,
    ...(typeof errno === 'number' ? { errno } : {}),
    ...(typeof code === 'string' ? { code } : {}),
  }
}
