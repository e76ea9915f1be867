import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import { int } from '#db/columns.ts'
import { openDatabase, type OpenDatabase } from '#db/connect.ts'
import { isDatabaseBusy } from '#db/database-error.ts'
import { shape } from '#db/table.ts'
import { onEntry } from '#http/entry-queue.ts'
import { contextOn } from '../support/context.ts'
import { testDatabase } from '../support/database.ts'
import { lossyServer, type Fate, type LossyServer } from './lossy-server.ts'

const ANSWER = shape({ answer: int() })
const INSERT = 'INSERT INTO end_users (app_id, external_ref, version, created_at) VALUES (1, ?, 0, UTC_TIMESTAMP(3))'

/** Two proxies of one server stand for two nodes of a cluster. */
describe('a database with several hosts', () => {
  let lines: readonly [LossyServer, LossyServer]
  let opened: OpenDatabase | null
  /** Statements sent through each proxy. */
  let sent: [string[], string[]]

  beforeEach(async () => {
    const { socketPath } = testDatabase()
    lines = [await lossyServer(socketPath, true), await lossyServer(socketPath, true)]
    opened = null
    sent = [[], []]
    meet(0, () => 'pass')
    meet(1, () => 'pass')
  })

  afterEach(async () => {
    await opened?.close()
    await Promise.all(lines.map((line) => line.close().catch(() => undefined)))
  })

  const meet = (line: 0 | 1, fateOf: (statement: string) => Fate) => {
    lines[line].fateOf = (statement) => {
      sent[line].push(statement)
      return fateOf(statement)
    }
  }
  const open = async () => {
    const hosts = lines.map(({ port }) => `127.0.0.1:${port}`).join(',')
    const databaseUrl = `mysql://root@${hosts}/${testDatabase().name}`
    opened = await openDatabase({ databaseUrl, home: '' }, { poolSize: 2, statementSeconds: 1.5 })
    return opened.db
  }
  const answer = async (db: OpenDatabase['db'], number: number) =>
    (await db.one(ANSWER, `SELECT ${number} AS answer`))?.answer
  const forget = () => sent.forEach((statements) => statements.splice(0))
  const refs = async () => {
    const rows: { ref: string }[] = await testDatabase().db.query(
      'SELECT external_ref AS ref FROM end_users ORDER BY id',
    )
    return rows.map(({ ref }) => ref)
  }

  it('uses the first host that is reachable', async () => {
    await lines[0].close()
    expect(await answer(await open(), 1)).to.equal(1)
    expect(sent[1]).to.include('SELECT 1 AS answer')
  })

  it('uses only the first host while it serves', async () => {
    const db = await open()
    forget()
    await Promise.all([1, 2, 3, 4].map((number) => answer(db, number)))
    expect(sent[1]).to.deep.equal([])
  })

  it('fails over to the next host, for reads and transactions, when its server is gone', async () => {
    const db = await open()
    await answer(db, 1)
    await lines[0].close()
    expect(await answer(db, 2)).to.equal(2)
    await inTransaction(contextOn(db), (tx) => tx.run(INSERT, ['an']))
    expect(await refs()).to.deep.equal(['an'])
  })

  it('drops all connections to a node that is cut off from the majority, and runs the whole work again at another node', async () => {
    const db = await open()
    await Promise.all([answer(db, 1), answer(db, 2)])
    meet(0, (statement) => (statement.startsWith('INSERT') ? 'refused' : 'pass'))
    let runs = 0
    await inTransaction(contextOn(db), async (tx) => {
      runs += 1
      await tx.all(ANSWER, 'SELECT 5 AS answer')
      await tx.run(INSERT, ['an'])
    })
    expect(runs).to.equal(2)
    expect(sent[1].filter((statement) => statement === 'SELECT 5 AS answer')).to.have.lengthOf(1)
    forget()
    await Promise.all([answer(db, 3), answer(db, 4)])
    expect(sent[0]).to.deep.equal([])
    expect(await refs()).to.deep.equal(['an'])
  })

  it('repeats reads that such a node refuses at another node, including a request’s first read', async () => {
    const db = await open()
    await answer(db, 1)
    meet(0, (statement) => (statement.startsWith('SELECT') ? 'refused' : 'pass'))
    expect(await answer(db, 2)).to.equal(2)
    meet(1, (statement) => (statement.startsWith('SELECT') ? 'refused' : 'pass'))
    meet(0, () => 'pass')
    const request = { standing: 'known', patienceMs: 1000, late: () => new Error('late') } as const
    const read = await onEntry(db.pool, request, (queries) => queries.one(ANSWER, 'SELECT 3 AS answer'))
    expect(read).to.deep.equal({ answer: 3 })
  })

  it('fails over when a server hangs', async () => {
    const db = await open()
    await answer(db, 1)
    meet(0, () => 'hang')
    expect(await answer(db, 2)).to.equal(2)
    expect(sent[1]).to.include('SELECT 2 AS answer')
  })

  it('returns to the first host if the second one fails', async () => {
    const db = await open()
    meet(0, (statement) => (statement === 'SELECT 1 AS answer' ? 'refused' : 'pass'))
    await answer(db, 1)
    meet(1, (statement) => (statement === 'SELECT 2 AS answer' ? 'refused' : 'pass'))
    expect(await answer(db, 2)).to.equal(2)
    expect(sent[0]).to.include('SELECT 2 AS answer')
  })

  it('throws a retryable error if all hosts fail', async () => {
    const db = await open()
    for (const line of [0, 1] as const) meet(line, () => 'refused')
    const error: unknown = await answer(db, 1).catch((error: unknown) => error)
    expect(isDatabaseBusy(error)).to.equal(true)
  })

  it('cannot be opened if no host serves, and says what is wrong with each', async () => {
    await Promise.all(lines.map((line) => line.close()))
    const error: unknown = await open().catch((error: unknown) => error)
    expect(String(error)).to.include('BILLING_DATABASE_URL')
    for (const { port } of lines) expect(String(error)).to.include(`127.0.0.1:${port}`)
  })
})
