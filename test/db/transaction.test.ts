import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import sinon from 'sinon'
import type { Context } from '#context.ts'
import { openDatabase } from '#db/connect.ts'
import { bigint, int } from '#db/columns.ts'
import type { Queries } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { insertedNew, isDatabaseBusy, isDuplicate } from '#db/database-error.ts'
import { AppError } from '#shared/errors.ts'
import { contextOn } from '../support/context.ts'
import { testDatabase } from '../support/database.ts'
import { startRival, type Rival } from '../support/held-connections.ts'
import { sequence } from '../support/sequence.ts'
import { until } from '../support/until.ts'
import {
  openLossyDatabase,
  strikeFirstCommit,
  type Fate,
  type LossyDatabase,
  type LossyServer,
} from './lossy-server.ts'

const APP = 1
const ANSWER = shape({ answer: int() })

describe('a transaction', () => {
  let ctx: Context
  let retries: number

  beforeEach(() => {
    retries = 0
    ctx = contextOn(testDatabase().db, () => (retries += 1))
  })

  afterEach(() => sinon.restore())

  it('runs its effects once, in order and after the commit', async () => {
    const seen: unknown[] = []
    const result = await inTransaction(ctx, async (tx) => {
      tx.afterCommit(async () => void seen.push('first', await refs()))
      tx.afterCommit(() => void seen.push('second'))
      await insert(tx, 'an')
      seen.push('work', await refs())
      return 'done'
    })
    expect(result).to.equal('done')
    expect(seen).to.deep.equal(['work', [], 'first', ['an'], 'second'])
  })

  it('leaves nothing behind and runs no effect if the work throws', async () => {
    let effects = 0
    const failed = inTransaction(ctx, async (tx) => {
      tx.afterCommit(() => void (effects += 1))
      await insert(tx, 'an')
      throw new AppError('plan_code_taken', 'taken')
    })
    await expectRejection(failed, 'taken')
    expect(await refs()).to.deep.equal([])
    expect(effects).to.equal(0)
    expect(retries).to.equal(0)
  })

  it('stays committed if an effect fails, and runs the other effects', async () => {
    const ran: string[] = []
    await inTransaction(ctx, async (tx) => {
      tx.afterCommit(() => Promise.reject(new Error('the node cannot be written')))
      tx.afterCommit(() => void ran.push('second'))
      await insert(tx, 'an')
    })
    expect(await refs()).to.deep.equal(['an'])
    expect(ran).to.deep.equal(['second'])
  })

  it('is never retried for an effect’s database error', async () => {
    let attempts = 0
    await inTransaction(ctx, async (tx) => {
      attempts += 1
      tx.afterCommit(() => Promise.reject(Object.assign(new Error('deadlock'), { errno: 1213 })))
      await insert(tx, `an${attempts}`)
    })
    expect(await refs()).to.deep.equal(['an1'])
  })

  it('that loses a deadlock starts again from its first line, and runs its effects once', async () => {
    await seed('an', 'binh')
    const effects: string[] = []
    const firstLines: string[] = []
    const bothHold = barrier(2)
    const cross = (name: string, first: string, second: string): Promise<void> =>
      inTransaction(ctx, async (tx) => {
        firstLines.push(name)
        tx.afterCommit(() => void effects.push(name))
        await touch(tx, first)
        await bothHold()
        await touch(tx, second)
      })
    await Promise.all([cross('left', 'an', 'binh'), cross('right', 'binh', 'an')])

    expect(await versions()).to.deep.equal({ an: 2, binh: 2 })
    expect(effects.sort()).to.deep.equal(['left', 'right'])
    expect(firstLines).to.have.lengthOf(3)
    expect(retries).to.equal(1)
  })

  it('that waits too long for a lock is rolled back completely and starts again', async () => {
    await seed('locked')
    const holder = await holdLock('locked')
    ctx = contextOn(testDatabase().db, () => void holder.rollback())
    let attempts = 0
    await inTransaction(ctx, async (tx) => {
      attempts += 1
      await tx.run('SET SESSION innodb_lock_wait_timeout = 1')
      // The server rolls back only the statement: if the rest were kept, this would be a duplicate the second time.
      await insert(tx, 'an')
      await touch(tx, 'locked')
      await tx.run('SET SESSION innodb_lock_wait_timeout = 5')
    })
    expect(attempts).to.equal(2)
    expect(await versions()).to.deep.equal({ an: 0, locked: 1 })
  })

  describe('whose connection is killed', () => {
    it('during a statement starts again on another connection', async () => {
      let attempts = 0
      await inTransaction(ctx, async (tx) => {
        attempts += 1
        await insert(tx, 'an')
        const id = await connectionId(tx)
        if (attempts > 1) return
        const sleeping = tx.all(ANSWER, 'SELECT SLEEP(10) AS answer')
        await Promise.all([kill('CONNECTION', id), sleeping])
      })
      expect(attempts).to.equal(2)
      expect(await refs()).to.deep.equal(['an'])
    })

    it('between two statements starts again on another connection', async () => {
      let attempts = 0
      await inTransaction(ctx, async (tx) => {
        attempts += 1
        await insert(tx, 'an')
        if (attempts === 1) await killAndNotice(tx)
        await insert(tx, 'binh')
      })
      expect(attempts).to.equal(2)
      expect(await refs()).to.deep.equal(['an', 'binh'])
    })

    it('just before its commit starts again on another connection', async () => {
      let attempts = 0
      await inTransaction(ctx, async (tx) => {
        attempts += 1
        await insert(tx, 'an')
        if (attempts === 1) await killAndNotice(tx)
      })
      expect(attempts).to.equal(2)
      expect(await refs()).to.deep.equal(['an'])
    })

    it('again and again gives up with the database’s error after 10 s, however many attempts it made', async () => {
      let attempts = 0
      let laterMs = 0
      const now = performance.now.bind(performance)
      sinon.stub(performance, 'now').callsFake(() => now() + laterMs)
      const failed = inTransaction(ctx, async (tx) => {
        attempts += 1
        if (attempts === 12) laterMs = 10_000
        await insert(tx, 'an')
        await killAndNotice(tx)
        await insert(tx, 'binh')
      })
      await expectRejection(failed, '')
      expect(attempts).to.equal(12)
      expect(retries).to.equal(11)
      expect(await refs()).to.deep.equal([])
    })

    it('does not shrink the pool', async () => {
      const { db, close } = await openDatabase({ databaseUrl: testDatabase().url, home: '' }, { poolSize: 2 })
      const small = contextOn(db)
      for (let round = 0; round < 3; round += 1) {
        let attempts = 0
        await inTransaction(small, async (tx) => {
          attempts += 1
          if (attempts === 1) await killAndNotice(tx)
          await tx.all(ANSWER, 'SELECT 1 AS answer')
        })
      }
      const both = barrier(2)
      await Promise.all([1, 2].map(() => inTransaction(small, () => both())))
      await close()
    })
  })

  it('is not retried after an error that a retry would not fix', async () => {
    let attempts = 0
    const failed = inTransaction(ctx, async (tx) => {
      attempts += 1
      await tx.all(ANSWER, 'SELECT no_such_column FROM end_users')
    })
    await expectRejection(failed, 'no_such_column')
    expect(attempts).to.equal(1)
  })

  it('continues after a duplicate that a step expects', async () => {
    await seed('an')
    const outcome = await inTransaction(ctx, async (tx) => {
      const isNew = await insertedNew('end_users_app_ref', insert(tx, 'an'))
      await insert(tx, 'binh')
      return isNew
    })
    expect(outcome).to.equal(false)
    expect(await refs()).to.deep.equal(['an', 'binh'])
  })

  it('recognizes a duplicate by its key, whatever the duplicate value contains', async () => {
    await seed("x' for key 'PRIMARY'")
    const error: unknown = await insert(ctx.db, "x' for key 'PRIMARY'").catch((error: unknown) => error)
    expect(isDuplicate(error, 'end_users_app_ref')).to.equal(true)
    expect(isDuplicate(error, 'PRIMARY')).to.equal(false)
  })

  describe('that is aborted runs nothing outside it:', () => {
    it('a statement that is sent before the answer to the one before: their order is that of the locks', async () => {
      const failed = inTransaction(ctx, async (tx) => {
        await Promise.all([insert(tx, 'an'), insert(tx, 'binh')])
      })
      await expectRejection(failed, 'one statement at a time')
      expect(await refs()).to.deep.equal([])
    })

    it('work that catches another error than a duplicate and goes on', async () => {
      let isFinished = false
      const failed = inTransaction(ctx, async (tx) => {
        await insert(tx, 'an')
        await tx.all(ANSWER, 'SELECT no_such_column FROM end_users').catch(() => undefined)
        await insert(tx, 'stray')
        isFinished = true
      })
      await expectRejection(failed, 'no_such_column')
      expect(isFinished).to.equal(false)
      expect(await refs()).to.deep.equal([])
    })

    it('work that catches the error and goes on', async () => {
      await seed('an', 'binh', 'chi')
      const finished = await loseDeadlock(ctx, async (tx) => {
        await touch(tx, 'an').catch(() => undefined)
        await insert(tx, 'stray')
      })
      expect(finished).to.equal(false)
      expect(await refs()).to.deep.equal(['an', 'binh', 'chi'])
    })

    it('work that catches the error and sends nothing more', async () => {
      await seed('an', 'binh', 'chi')
      let effects = 0
      await loseDeadlock(ctx, async (tx) => {
        tx.afterCommit(() => void (effects += 1))
        await touch(tx, 'an').catch(() => undefined)
      })
      expect(effects).to.equal(0)
    })

    it('a branch that is still running when another one throws', async () => {
      const thrown = barrier(2)
      let straggler: Promise<unknown> = Promise.resolve()
      const failed = inTransaction(ctx, async (tx) => {
        straggler = (async () => {
          await tx.all(ANSWER, 'SELECT 1 AS answer')
          await thrown()
          // The rollback is under way and takes several turns of the event loop; this is still the transaction's connection.
          for (let index = 0; index < 20; index += 1) await insert(tx, `stray${index}`)
        })().catch((error: unknown) => error)
        await thrown()
        throw new AppError('not_found', 'gone')
      })
      await expectRejection(failed, 'gone')
      expect(await straggler).to.be.instanceOf(Error)
      expect(await refs()).to.deep.equal([])
    })

    it('a branch that outlives the commit', async () => {
      const committed = barrier(2)
      let straggler: Promise<unknown> = Promise.resolve()
      await inTransaction(ctx, (tx) => {
        straggler = (async () => {
          await committed()
          await insert(tx, 'stray')
        })().catch((error: unknown) => error)
        tx.afterCommit(() => void committed())
        return Promise.resolve()
      })
      expect(await straggler).to.be.instanceOf(Error)
      expect(await refs()).to.deep.equal([])
    })
  })

  describe('over a connection that breaks', () => {
    let line: LossyServer
    let lossy: LossyDatabase

    beforeEach(async () => {
      lossy = await openLossyDatabase()
      line = lossy.line
      ctx = contextOn(lossy.db, () => (retries += 1))
    })

    afterEach(async () => {
      await lossy.close()
    })

    for (const [fate, first] of [
      ['answer lost', 'committed'],
      ['lost', 'not committed'],
      ['hang', 'not committed'],
    ] as const) {
      it(`takes effect once if its COMMIT meets "${fate}" (${first}): the unique key shows it to the second run`, async () => {
        strikeFirstCommit(line, fate)
        let effects = 0
        const news: boolean[] = []
        await inTransaction(ctx, async (tx) => {
          tx.afterCommit(() => void (effects += 1))
          const isNew = await insertedNew('end_users_app_ref', insert(tx, 'an'))
          if (isNew) await insert(tx, 'consequence')
          news.push(isNew)
        })
        expect(await refs()).to.deep.equal(['an', 'consequence'])
        expect(news).to.deep.equal([true, first === 'not committed'])
        expect(effects).to.equal(1)
      })
    }

    it('returns the result of the attempt that was committed, also if the next one lost to it at its own COMMIT', async () => {
      const fates: Fate[] = ['answer lost', 1213]
      line.fateOf = (statement) => (statement === 'COMMIT' ? (fates.shift() ?? 'pass') : 'pass')
      let attempts = 0
      const work = async (tx: Tx): Promise<number> => {
        attempts += 1
        await insert(tx, `an${attempts}`)
        return attempts
      }
      // To another node of the cluster, the first commit is known only when it refuses the second one.
      const result = await inTransaction(ctx, work, (_tx, attempt) => Promise.resolve(attempt === 3))
      expect(await refs()).to.deep.equal(['an1'])
      expect(result).to.equal(1)
    })

    const TROUBLE: readonly Fate[] = ['lost', 'answer lost', 'hang', 'refused', 'killed', 'run, answered as killed']

    for (const command of ['START TRANSACTION', 'COMMIT', 'ROLLBACK']) {
      for (const fate of TROUBLE) {
        for (const end of ['succeeds', 'is refused', 'is a rehearsal'] as const) {
          it(`leaves all of its work or none when ${command} meets "${fate}" and the work ${end}; the next one starts afresh`, async () => {
            let met = 0
            line.fateOf = (statement) => (statement === command && (met += 1) === 1 ? fate : 'pass')
            const rehearsal = end === 'is a rehearsal' ? { rehearsal: { changes: [], events: [] } } : {}
            const unit = inTransaction({ ...ctx, ...rehearsal }, async (tx) => {
              const isNew = await insertedNew('end_users_app_ref', insert(tx, 'an'))
              if (isNew) await insert(tx, 'binh')
              if (end === 'is refused') throw new AppError('not_found', 'gone')
              return 'done'
            })
            // Nothing was sent, and the caller has waited for as long as a statement may take.
            const isGivenUp = command === 'START TRANSACTION' && fate === 'hang'
            if (isGivenUp) expect(isDatabaseBusy(await unit.catch((error: unknown) => error))).to.equal(true)
            else if (end === 'is refused') await expectRejection(unit, 'gone')
            else expect(await unit).to.equal('done')
            for (const ref of ['chi', 'dung'])
              await inTransaction(ctx, (tx) => insertedNew('end_users_app_ref', insert(tx, ref)))
            const isDone = end === 'succeeds' && !isGivenUp
            expect(await refs()).to.deep.equal([...(isDone ? ['an', 'binh'] : []), 'chi', 'dung'])
          })
        }
      }
    }

    it('reports an unknown outcome as a busy database when every COMMIT is answered with an error', async () => {
      const now = performance.now.bind(performance)
      let laterMs = 0
      sinon.stub(performance, 'now').callsFake(() => now() + laterMs)
      line.fateOf = (statement) => {
        if (statement === 'COMMIT') laterMs += 6000
        return statement === 'COMMIT' ? 'killed' : 'pass'
      }
      const error: unknown = await inTransaction(ctx, (tx) => insert(tx, 'an')).catch((error: unknown) => error)
      expect(isDatabaseBusy(error)).to.equal(true)
      expect(await refs()).to.deep.equal([])
    })

    it('whose rollback does not arrive does not return its connection to the pool', async () => {
      line.fateOf = (statement) => (statement === 'ROLLBACK' ? 'hang' : 'pass')
      const failed = inTransaction(ctx, async (tx) => {
        await insert(tx, 'an')
        throw new AppError('not_found', 'gone')
      })
      await expectRejection(failed, 'gone')
      await inTransaction(ctx, (tx) => insert(tx, 'binh'))
      expect(await refs()).to.deep.equal(['binh'])
    })

    it('does not retry a statement that exceeded the server’s deadline', async () => {
      let attempts = 0
      const failed = inTransaction(ctx, async (tx) => {
        attempts += 1
        // MySQL ends a SLEEP without an error, but begins no other row.
        await tx.all(ANSWER, `SELECT SLEEP(2) AS answer FROM ${sequence(1, 3)}`)
      })
      const error: unknown = await failed.catch((error: unknown) => error)
      expect(String(error)).to.match(/max_statement_time|maximum statement execution time exceeded/)
      expect(isDatabaseBusy(error)).to.equal(true)
      expect(attempts).to.equal(1)
    })
  })
})

async function insert(queries: Queries, ref: string): Promise<void> {
  await queries.run(
    'INSERT INTO end_users (app_id, external_ref, version, created_at) VALUES (?, ?, 0, UTC_TIMESTAMP(3))',
    [APP, ref],
  )
}

async function touch(queries: Queries, ref: string): Promise<void> {
  await queries.run('UPDATE end_users SET version = version + 1 WHERE app_id = ? AND external_ref = ?', [APP, ref])
}

async function seed(...names: string[]): Promise<void> {
  for (const name of names) await insert(testDatabase().db, name)
}

async function versions(): Promise<Record<string, number>> {
  const rows: { ref: string; version: number }[] = await testDatabase().db.query(
    'SELECT external_ref AS ref, version FROM end_users ORDER BY external_ref',
  )
  return Object.fromEntries(rows.map(({ ref, version }) => [ref, version]))
}

async function refs(): Promise<string[]> {
  return Object.keys(await versions())
}

/** A barrier that opens once `parties` have reached it, and stays open. */
function barrier(parties: number): () => Promise<void> {
  const open = Promise.withResolvers<unknown>()
  let here = 0
  return async () => {
    here += 1
    if (here >= parties) open.resolve(null)
    await open.promise
  }
}

async function connectionId(queries: Queries): Promise<number> {
  const row = await queries.one(shape({ id: bigint() }), 'SELECT CONNECTION_ID() AS id')
  return row!.id
}

async function kill(what: 'QUERY' | 'CONNECTION', id: number): Promise<void> {
  await testDatabase().db.query(`KILL ${what} ${id}`)
}

/** Ends the transaction's connection, and returns when the server has none of this number. */
async function killAndNotice(queries: Queries): Promise<void> {
  const id = await connectionId(queries)
  await kill('CONNECTION', id)
  await until(async () => {
    const rows = await testDatabase().db.query<unknown[]>('SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = ?', [
      id,
    ])
    return rows.length === 0
  })
}

async function holdLock(ref: string): Promise<Rival> {
  const rival = await startRival(testDatabase().db)
  await touch(rival, ref)
  return rival
}

/**
 * Runs work that needs 'an' while it has locked 'binh', against a rival that has locked 'an', needs 'binh' and has changed more, so that
 * the server aborts the work. The second attempt does nothing. Returns whether the first attempt ran to its end.
 */
async function loseDeadlock(ctx: Context, work: (tx: Tx) => Promise<void>): Promise<boolean> {
  const rival = await startRival(testDatabase().db)
  for (const ref of ['an', 'chi', 'chi', 'chi']) await touch(rival, ref)
  for (let index = 0; index < 20; index += 1) await insert(rival, `rival${index}`)
  let attempts = 0
  let isFinished = false
  let rivalDone: Promise<void> = Promise.resolve()
  await inTransaction(ctx, async (tx) => {
    attempts += 1
    if (attempts > 1) return
    await touch(tx, 'binh')
    rivalDone = touch(rival, 'binh')
    await work(tx)
    isFinished = true
  })
  await rivalDone
  await rival.rollback()
  expect(attempts, 'the work must lose the deadlock').to.equal(2)
  return isFinished
}

async function expectRejection(promise: Promise<unknown>, message: string): Promise<void> {
  const error: unknown = await promise.then(
    () => null,
    (error: unknown) => error,
  )
  expect(error).to.be.instanceOf(Error)
  expect((error as Error).message).to.include(message)
}
