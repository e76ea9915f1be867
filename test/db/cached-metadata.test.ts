import { once } from 'node:events'
import { createConnection as connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { openDatabase } from '#db/connect.ts'
import { sendOver, socketOf, takeConnection } from '#db/mysql-adapter.ts'
import type { Param } from '#db/queries.ts'
import { randomHex } from '#shared/crypto.ts'
import { testDatabase, urlOf } from '../support/database.ts'
import { scratchFolder } from '../support/scratch.ts'

/** The definitions of the columns of `apps` take over a thousand bytes. */
const ANSWER_WITHOUT_DEFINITIONS = 100

/** Where MariaDB says in its greeting what it offers beyond MySQL: 17 bytes behind its version and the connection's number. */
const OFFERS_BEHIND_VERSION = 4 + 8 + 1 + 2 + 1 + 2 + 2 + 1 + 6

describe('the definitions of a prepared statement’s columns', () => {
  const stops: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop()
  })

  /** Runs statements on one connection, and counts the bytes that the server has sent. */
  async function open(socketPath = testDatabase().socketPath) {
    const url = urlOf(socketPath, testDatabase().name)
    const { db, close } = await openDatabase({ databaseUrl: url, home: '' }, { poolSize: 1 })
    const connection = await takeConnection(db.pool)
    stops.push(async () => {
      connection.release()
      await close()
    })
    const send = sendOver(connection)
    return {
      run: (sql: string, params: readonly Param[] = []) => send(sql, params),
      bytesOf: async (sql: string) => {
        const before = socketOf(connection).bytesRead
        await send(sql, [])
        return socketOf(connection).bytesRead - before
      },
    }
  }

  it('are sent once', async () => {
    const { bytesOf } = await open()
    expect(await bytesOf('SELECT * FROM apps')).to.be.above(1000)
    expect(await bytesOf('SELECT * FROM apps')).to.be.below(ANSWER_WITHOUT_DEFINITIONS)
  })

  it('are sent again where the table has changed, and the rows are as they then are', async () => {
    const { run } = await open()
    const table = `changing_${randomHex(4)}`
    await run(`CREATE TABLE ${table} (a INT)`)
    stops.push(() => testDatabase().db.query(`DROP TABLE ${table}`))
    await run(`INSERT INTO ${table} VALUES (7)`)
    const read = `SELECT * FROM ${table}`
    expect([await run(read), await run(read)]).to.deep.equal([[{ a: 7 }], [{ a: 7 }]])
    await run(`ALTER TABLE ${table} MODIFY a VARCHAR(10), ADD b INT NOT NULL DEFAULT 3 FIRST`)
    const changed = [{ b: 3, a: '7' }]
    expect([await run(read), await run(read)]).to.deep.equal([changed, changed])
  })

  it('are sent again where they depend on a value', async () => {
    const { run } = await open()
    const read = 'SELECT ? AS value'
    const values = ['text', 'more', 5, 6, null, 'text']
    const rows: unknown[] = []
    for (const value of values) rows.push(await run(read, [value]))
    expect(rows).to.deep.equal(values.map((value) => [{ value }]))
  })

  it('come with each answer of a server that does not offer to omit them', async () => {
    const { bytesOf, run } = await open(await modestServer())
    await bytesOf('SELECT * FROM apps')
    expect(await bytesOf('SELECT * FROM apps')).to.be.above(1000)
    expect(await run('SELECT 1 AS one')).to.deep.equal([{ one: 1 }])
  })

  /** The socket of a server that offers nothing beyond MySQL. */
  async function modestServer(): Promise<string> {
    const socketPath = join(scratchFolder('modest'), 'modest.sock')
    const sockets = new Set<Socket>()
    const server = createServer((client) => {
      const upstream = connect(testDatabase().socketPath)
      for (const socket of [client, upstream]) sockets.add(socket.on('error', () => undefined))
      upstream.once('data', (greeting) => {
        const version = greeting.indexOf(0, 5) + 1
        client.write(greeting.fill(0, version + OFFERS_BEHIND_VERSION, version + OFFERS_BEHIND_VERSION + 4))
        upstream.pipe(client)
        client.pipe(upstream)
      })
    }).listen(socketPath)
    await once(server, 'listening')
    stops.push(async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    })
    return socketPath
  }
})
