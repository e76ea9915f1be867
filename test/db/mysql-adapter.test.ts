import { Socket } from 'node:net'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { createPool, type PoolConnection } from 'mysql2'
import { openDatabase, type OpenDatabase } from '#db/connect.ts'
import { setTarget, placeOf, poolCounts, sendTogether, socketOf, takeConnection } from '#db/mysql-adapter.ts'
import { bigint, bytes, flag, int, realTime, text } from '#db/columns.ts'
import type { Param } from '#db/queries.ts'
import { shape } from '#db/table.ts'
import { testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

/** What we use of the driver beyond its documented interface: a new version that changes it fails here first. */
describe('internals of the driver', () => {
  let opened: OpenDatabase

  const open = async () => {
    opened = await openDatabase({ databaseUrl: testDatabase().url, home: '' }, { poolSize: 2 })
    return opened.db.pool
  }

  afterEach(async () => opened.close())

  it('count open, free and awaited connections', async () => {
    const pool = await open()
    const first = await takeConnection(pool)
    const second = await takeConnection(pool)
    const third = takeConnection(pool)
    expect(poolCounts(pool)).to.deep.equal({ limit: 2, all: 2, free: 0, queued: 1 })
    first.release()
    const held: PoolConnection = await third
    expect(poolCounts(pool)).to.deep.equal({ limit: 2, all: 2, free: 0, queued: 0 })
    held.release()
    await until(() => poolCounts(pool).free === 1)
    second.destroy()
    expect(poolCounts(pool)).to.deep.equal({ limit: 2, all: 1, free: 1, queued: 0 })
  })

  it('give access to each connection’s socket', async () => {
    const connection = await takeConnection(await open())
    expect(socketOf(connection)).to.be.instanceOf(Socket)
    connection.release()
  })

  it('let new connections go to another server; each remembers the server that it was opened to', async () => {
    await open()
    const { socketPath } = testDatabase()
    const nowhere = { socketPath: `${socketPath}.nowhere` }
    const pool = createPool({ ...nowhere, user: 'root' })
    const place = { socketPath }
    setTarget(pool, place)
    const connection = await takeConnection(pool)
    setTarget(pool, nowhere)
    expect(placeOf(connection)).to.equal(place)
    expect(await takeConnection(pool).catch((error: unknown) => error)).to.include({ code: 'ENOENT' })
    connection.destroy()
    await pool.promise().end()
  })

  it('bind values of every column type, in prepared statements and in lists', async () => {
    await open()
    const { db } = opened
    const at = new Date('2026-03-01T10:00:00.250Z')
    const columns = {
      big: bigint(),
      small: int(),
      said: text(),
      on: flag(),
      at: realTime(),
      raw: bytes(),
      none: text().nullable(),
    }
    const given = [Number.MAX_SAFE_INTEGER, 7, "l'été ắ 😀", true, at, Buffer.from([0, 255]), null] as const
    const sql = `SELECT CAST(? AS SIGNED) AS big, ? AS small, ? AS said, ? AS \`on\`, CAST(? AS DATETIME(3)) AS at,
                   CAST(? AS BINARY) AS raw, ? AS none FROM (SELECT 1) one`
    const expected = { big: given[0], small: 7, said: given[2], on: true, at, raw: given[5], none: null }
    expect(await db.one(shape(columns), `${sql} LIMIT ?`, [...given, 1])).to.deep.equal(expected)
    expect(await db.one(shape(columns), `${sql} WHERE 1 IN (?)`, [...given, [1, 2]])).to.deep.equal(expected)
  })

  it('send a statement as text if the server refuses to prepare it', async () => {
    await open()
    const { db } = opened
    const server = testDatabase().db
    const [{ most }] = (await server.query<{ most: number }[]>('SELECT @@GLOBAL.max_prepared_stmt_count AS most')) as [
      { most: number },
    ]
    await server.query('SET GLOBAL max_prepared_stmt_count = 0')
    try {
      const at = new Date('2026-03-01T10:00:00.250Z')
      const row = await db.one(
        shape({ at: realTime(), said: text() }),
        'SELECT CAST(? AS DATETIME(3)) AS at, ? AS said',
        [at, "l'été"],
      )
      expect(row).to.deep.equal({ at, said: "l'été" })
    } finally {
      await server.query(`SET GLOBAL max_prepared_stmt_count = ${most}`)
    }
  })

  describe('send several statements in one write', () => {
    const DIVIDE = 'SELECT CAST(10 / ? AS SIGNED) AS answer'
    /** Can be prepared, and fails when it runs. */
    const FAILS = 'SELECT (SELECT 1 UNION SELECT ?) AS answer'
    const send = async (connection: PoolConnection, ...statements: readonly (readonly [string, Param])[]) => {
      const answers = statements.map(() => Promise.withResolvers<unknown>())
      sendTogether(
        connection,
        statements.map(([sql, param], index) => ({
          sql,
          params: [param],
          finish: (error, rows) => answers[index]!.resolve(error ? error.message : rows),
        })),
      )
      return Promise.all(answers.map(({ promise }) => promise))
    }

    it('without giving the connection functions anew, which would keep alive a fifth of what a checkout allocates', async () => {
      const connection = await takeConnection(await open())
      const sendTwo = () => send(connection, ['SELECT ? AS one', 1], ['SELECT ? AS two', 2])
      const functions = () =>
        Object.entries(Object.getOwnPropertyDescriptors(connection))
          .filter(([, { value }]) => typeof value === 'function')
          .map(([name, { value }]) => [name, value as unknown])
      await sendTwo()
      const before = functions()
      await sendTwo()
      expect(before.map(([name]) => name))
        .to.include('write')
        .and.not.include('addCommand')
      expect(functions()).to.deep.equal(before)
      connection.release()
    })

    it('and give each its own answer, even if one fails or goes as text', async () => {
      const connection = await takeConnection(await open())
      // The second time they are already prepared.
      for (let time = 0; time < 2; time += 1) {
        const [first, failed, listed, last] = await send(
          connection,
          [DIVIDE, 2],
          [FAILS, 2],
          ['SELECT CAST(10 / ? AS SIGNED) AS answer WHERE 1', [5]],
          [DIVIDE, 10],
        )
        expect([first, listed, last]).to.deep.equal([[{ answer: 5 }], [{ answer: 2 }], [{ answer: 1 }]])
        expect(failed).to.match(/more than 1 row/i)
      }
      connection.release()
    })

    it('and fail those without an answer when the connection ends', async () => {
      const connection = await takeConnection(await open())
      await send(connection, [DIVIDE, 1], ['SELECT SLEEP(?) AS slept', 0])
      const answers = send(connection, [DIVIDE, 2], ['SELECT SLEEP(?) AS slept', 10], [DIVIDE, 5])
      await until(async () => (await running()).includes(connection.threadId))
      await testDatabase().db.query(`KILL ${connection.threadId}`)
      const [first, ...others] = await answers
      expect(first).to.deep.equal([{ answer: 5 }])
      for (const error of others) expect(error).to.match(/connection|ECONNRESET/i)
    })

    const running = async (): Promise<number[]> => {
      const rows = await testDatabase().db.query<{ id: number }[]>(
        `SELECT ID AS id FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'`,
      )
      return rows.map(({ id }) => id)
    }
  })

  it('refuse an integer that a number cannot represent exactly', async () => {
    await open()
    const wide = opened.db.one(shape({ wide: bigint() }), 'SELECT 9007199254740993 AS wide')
    expect(await wide.catch((error: unknown) => (error as Error).message)).to.include(
      'that a number cannot represent exactly',
    )
  })
})
