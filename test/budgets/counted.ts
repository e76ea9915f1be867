import { expect } from 'chai'
import { inTransaction } from '#commands/transaction.ts'
import { shape } from '#db/table.ts'
import { openLossyDatabase } from '../db/lossy-server.ts'
import type { RealTimeContext } from '../support/context.ts'
import { testDatabase } from '../support/database.ts'

const POOL_SIZE = 4

/** The statements that a context sends, as the server gets them. */
export interface Counted {
  /** Since the work began. */
  readonly seen: readonly string[]
  /**
   * Runs the work and fails where it sent more statements than `most`, with all of them. Returns what the work returned.
   */
  atMost<T>(most: number, work: () => Promise<T>): Promise<T>
  close(): Promise<void>
}

/**
 * Counts what the context sends from now on: what begins and ends a transaction too, but not what prepares a statement, nor those that
 * match `except`.
 */
export async function countStatements(ctx: RealTimeContext, except: RegExp | null = null): Promise<Counted> {
  const { line, db, close } = await openLossyDatabase({ poolSize: POOL_SIZE, statementSeconds: 10 })
  Object.assign(ctx, { db })
  // What a connection is set up with is asked once.
  await Promise.all(Array.from({ length: POOL_SIZE }, () => inTransaction(ctx, (tx) => tx.all(shape({}), 'SELECT 1'))))
  const seen: string[] = []
  line.fateOf = (statement) => {
    if (!except?.test(statement)) seen.push(statement.replace(/\s+/g, ' '))
    return 'pass'
  }
  return {
    seen,
    async atMost(most, work) {
      seen.length = 0
      const result = await work()
      expect(seen.length, `at most ${most} statements:\n${seen.join('\n')}\n`).to.be.within(1, most)
      return result
    },
    async close() {
      Object.assign(ctx, { db: testDatabase().db })
      await close()
    },
  }
}
