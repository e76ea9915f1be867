import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Connection } from '#db/connection.ts'
import { openDatabase, type OpenDatabase } from '#db/connect.ts'
import { bigint, bytes, flag, int, realTime, text } from '#db/columns.ts'
import { shape } from '#db/table.ts'
import { testDatabase } from '../support/database.ts'
import { standStill } from '../support/stand-still.ts'
import { until } from '../support/until.ts'
import { openLossyDatabase } from './lossy-server.ts'

describe('a connection', () => {
  let opened: OpenDatabase

  beforeEach(async () => {
    opened = await openDatabase({ databaseUrl: testDatabase().url, home: '' }, { poolSize: 2 })
  })
  afterEach(async () => opened.close())

  it('binds values of every column type, in prepared statements and in lists', async () => {
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

  it('sends a statement as text if the server refuses to prepare it', async () => {
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

  it('takes no server for silent after this process itself stood still', async () => {
    const hasty = await openDatabase({ databaseUrl: testDatabase().url, home: '' }, { statementSeconds: 0.2 })
    try {
      const connection = await hasty.db.pool.take()
      const answer = connection.send('SELECT 1 AS n', [])
      await standStill(2000)
      expect(await answer).to.deep.equal([{ n: 1 }])
      expect(connection.isServerFailed).to.equal(false)
      hasty.db.pool.release(connection)
    } finally {
      await hasty.close()
    }
  })

  it('keeps 200 statements prepared, and gives up the oldest for a new one', async () => {
    const { pool } = opened.db
    const connection = await pool.take()
    const ask = async (number: number) =>
      expect(await connection.send(`SELECT ${number} AS n`, [])).to.deep.equal([{ n: number }])
    const count = async (name: string): Promise<number> => {
      const [row] = (await connection.command(`SHOW SESSION STATUS LIKE '${name}'`)) as { Value: string }[]
      return Number(row?.Value)
    }
    const preparedBefore = await count('Com_stmt_prepare')
    const counts = async () => ({
      prepared: (await count('Com_stmt_prepare')) - preparedBefore,
      closed: await count('Com_stmt_close'),
    })
    for (let number = 0; number < 200; number += 1) await ask(number)
    for (const number of [0, 199]) await ask(number)
    expect(await counts()).to.deep.equal({ prepared: 200, closed: 0 })
    for (const number of [200, 0, 199]) await ask(number)
    expect(await counts()).to.deep.equal({ prepared: 202, closed: 2 })
    pool.release(connection)
  })

  it('prepares nothing in a transaction at a node of a Galera cluster', async () => {
    const { pool } = opened.db
    const connection = await pool.take()
    const prepared = async (): Promise<number> => {
      const [row] = (await connection.command("SHOW SESSION STATUS LIKE 'Com_stmt_prepare'")) as { Value: string }[]
      return Number(row?.Value)
    }
    const ask = async (answer: number) =>
      expect(await connection.sendInTransaction(`SELECT ${answer} AS a WHERE 1 = ?`, [1])).to.deep.equal([
        { a: answer },
      ])
    const before = await prepared()
    await ask(1)
    expect(await prepared()).to.equal(before + 1)
    connection.cluster = 'galera'
    await ask(2)
    expect(await prepared()).to.equal(before + 1)
    pool.destroy(connection)
  })

  it('sends a command only after the answer to the one before', async () => {
    const slow = await openLossyDatabase({ poolSize: 1 })
    try {
      const texts = Array.from({ length: 20 }, (_, index) => `SELECT ${index} AS answer, SLEEP(0.001) AS slept`)
      await Promise.all(texts.map((sql) => slow.db.all(shape({ answer: int() }), sql)))
      expect(slow.line.mostPacketsAtOnce).to.equal(1)
    } finally {
      await slow.close()
    }
  })

  it('fails its statement when it is killed', async () => {
    const connection = await opened.db.pool.take()
    const [{ id }] = (await connection.command('SELECT CONNECTION_ID() AS id')) as [{ id: number }]
    const sleeping = connection.send('SELECT SLEEP(?) AS slept', [10]).catch((error: unknown) => error)
    await until(async () => (await running()).includes(id))
    await testDatabase().db.query(`KILL ${id}`)
    // EPIPE: it was killed after the statement was prepared, and before it was sent.
    expect(String(await sleeping)).to.match(/connection|ECONNRESET|EPIPE/i)
    opened.db.pool.destroy(connection)
  })

  const running = async (): Promise<number[]> => {
    const rows = await testDatabase().db.query<{ id: number }[]>(
      `SELECT ID AS id FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'`,
    )
    return rows.map(({ id }) => id)
  }

  it('refuses an integer that a number cannot represent exactly', async () => {
    const wide = opened.db.one(shape({ wide: bigint() }), 'SELECT 9007199254740993 AS wide')
    expect(await wide.catch((error: unknown) => (error as Error).message)).to.include(
      'that a number cannot represent exactly',
    )
  })

  describe('of the pool', () => {
    it('is lent to one caller at a time; the others wait in order', async () => {
      const { pool } = opened.db
      const [first, second] = [await pool.take(), await pool.take()]
      const order: string[] = []
      const third = pool.take().then((connection) => (order.push('third'), connection))
      const fourth = pool.take().then((connection) => (order.push('fourth'), connection))
      expect(pool.counts).to.deep.equal({ limit: 2, used: 2, waiting: 2 })
      pool.release(first)
      const lent: Connection = await third
      expect(lent).to.equal(first)
      pool.release(second)
      pool.release(await fourth)
      pool.release(lent)
      expect(order).to.deep.equal(['third', 'fourth'])
      expect(pool.counts).to.deep.equal({ limit: 2, used: 0, waiting: 0 })
    })

    it('is replaced by a new one when it was destroyed', async () => {
      const { pool } = opened.db
      const first = await pool.take()
      pool.destroy(first)
      const next = await pool.take()
      expect(next).not.to.equal(first)
      expect(await next.command('SELECT 1 AS one')).to.deep.equal([{ one: 1 }])
      pool.release(next)
    })

    it('is returned once', async () => {
      const { pool } = opened.db
      const connection = await pool.take()
      pool.release(connection)
      expect(() => pool.release(connection)).to.throw('returned twice')
    })
  })
})
