import { existsSync } from 'node:fs'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { createConnection, type Connection } from 'mysql2/promise'
import { inTransaction } from '#commands/transaction.ts'
import { words } from '#db/columns.ts'
import { openDatabase, type OpenDatabase } from '#db/connect.ts'
import { isDatabaseBusy } from '#db/database-error.ts'
import { embeddedSetup } from '#embedded/setup.ts'
import { startEmbedded, type EmbeddedDatabase } from '#embedded/start-embedded.ts'
import { runMigrations } from '#db/migrate.ts'
import { shape } from '#db/table.ts'
import { asAppError } from '#http/errors.ts'
import { contextOn, testContext } from '../support/context.ts'
import { scratchFolder } from '../support/scratch.ts'
import { until } from '../support/until.ts'
import { aMigration } from './a-migration.ts'
import { lossyServer, type LossyServer } from './lossy-server.ts'

const NOTE = shape({ text: words('text', 16) })

/** A separate MariaDB server, with a user without administrative rights. */
interface Server {
  readonly embedded: EmbeddedDatabase
  readonly admin: Connection
}

/** A demoted primary keeps answering reads, and refuses every write with error 1290. */
describe('a database server that turns read-only', () => {
  let first: Server
  let second: Server
  /** The TCP proxy of each server. */
  let lines: Map<Server, LossyServer>
  let opened: OpenDatabase | null

  before(async () => {
    ;[first, second] = await Promise.all([startServer(scratchFolder('first')), startServer(scratchFolder('second'))])
  })

  after(async () => {
    for (const server of [first, second]) await stopServer(server)
  })

  beforeEach(async () => {
    opened = null
    lines = new Map()
    for (const server of [first, second]) {
      await server.admin.query('SET GLOBAL read_only = 0')
      await server.admin.query('DELETE FROM notes')
      lines.set(server, await lossyServer(server.embedded.connection.socketPath, true))
    }
  })

  afterEach(async () => {
    await opened?.close()
    await Promise.all([...lines.values()].map((line) => line.close().catch(() => undefined)))
  })

  const open = async (servers: readonly Server[]) => {
    const hosts = servers.map((server) => `127.0.0.1:${lines.get(server)!.port}`).join(',')
    opened = await openDatabase({ databaseUrl: `mysql://paygate@${hosts}/paygate`, home: '' }, { poolSize: 2 })
    return opened.db
  }
  const write = (db: OpenDatabase['db'], text: string) =>
    inTransaction(contextOn(db), (tx) => tx.run('INSERT INTO notes VALUES (?)', [text]))
  const read = async (db: OpenDatabase['db']) => (await db.all(NOTE, 'SELECT text FROM notes')).map(({ text }) => text)
  const demote = (server: Server) => server.admin.query('SET GLOBAL read_only = 1')

  it('is skipped like one that is down if there are several: by the transaction that noticed it, and by all that follow', async () => {
    const db = await open([first, second])
    await write(db, 'before')
    await demote(first)
    await write(db, 'after')
    expect(await read(db)).to.deep.equal(['after'])
    await write(db, 'later')
    expect(await read(db)).to.deep.equal(['after', 'later'])
  })

  it('commits nothing of a transaction that is under way, whose COMMIT it refuses: the next one has it', async () => {
    const db = await open([first, second])
    let attempts = 0
    await inTransaction(contextOn(db), async (tx) => {
      attempts += 1
      await tx.run('INSERT INTO notes VALUES (?)', ['an'])
      if (attempts === 1) await demote(first)
    })
    expect(attempts).to.equal(2)
    const written = await Promise.all([first, second].map(({ admin }) => admin.query('SELECT text FROM notes')))
    expect(written.map(([rows]) => rows)).to.deep.equal([[], [{ text: 'an' }]])
  })

  it('is not used even if it comes first', async () => {
    await demote(first)
    const db = await open([first, second])
    await write(db, 'an')
    expect(await read(db)).to.deep.equal(['an'])
  })

  it('is not migrated even if it comes first', async () => {
    await demote(first)
    const db = await open([first, second])
    const migration = aMigration('First1795200000901', (runner) =>
      runner.query('CREATE TABLE made (id INT PRIMARY KEY)'),
    )
    expect(await runMigrations(db, [migration])).to.deep.equal(['First1795200000901'])
    const made = await Promise.all([first, second].map(({ admin }) => admin.query("SHOW TABLES LIKE 'made'")))
    expect(made.map(([rows]) => (rows as unknown[]).length)).to.deep.equal([0, 1])
  })

  it('is not used again while it is read-only, even if no other server is reachable', async () => {
    const db = await open([first, second])
    await demote(first)
    await write(db, 'an')
    await lines.get(second)!.close()
    const refused: unknown = await read(db).catch((error: unknown) => error)
    expect(isDatabaseBusy(refused)).to.equal(true)
    expect(String(refused)).to.include('read-only')
  })

  it('loses its connections behind a single address, which may lead to the new primary by now', async () => {
    const db = await open([first])
    await write(db, 'before')
    await demote(first)
    lines.get(first)!.target = second.embedded.connection.socketPath
    await write(db, 'after')
    expect(await read(db)).to.deep.equal(['after'])
  })

  it('is not used if only its InnoDB is read-only; alone, it refuses changes for now', async () => {
    const home = scratchFolder('third')
    const [made, { supervisorSocket }] = [await startServer(home), embeddedSetup(home)]
    await stopServer(made)
    await until(() => !existsSync(supervisorSocket))
    const reader = await openServer(home, ['--innodb-read-only=1'])
    try {
      lines.set(reader, await lossyServer(reader.embedded.connection.socketPath, true))
      const alone = await open([reader])
      const refused: unknown = await write(alone, 'an').catch((error: unknown) => error)
      expect(asAppError(testContext(), refused, 'req_1', 'POST /')).to.include({ code: 'service_unavailable' })
      expect(await read(alone)).to.deep.equal([])
      await opened!.close()
      const db = await open([reader, second])
      await write(db, 'an')
      expect(await read(db)).to.deep.equal(['an'])
    } finally {
      await stopServer(reader)
    }
  })

  it('still serves reads if it is the only one; a change is answered 503 service_unavailable with Retry-After', async () => {
    const db = await open([first])
    await demote(first)
    const refused: unknown = await db.run('INSERT INTO notes VALUES (?)', ['an']).catch((error: unknown) => error)
    const { code, status, headers } = asAppError(testContext(), refused, 'req_1', 'POST /')
    expect([code, status, headers]).to.deep.equal(['service_unavailable', 503, { 'Retry-After': '1' }])
    expect(await read(db)).to.deep.equal([])
  })
})

async function startServer(home: string): Promise<Server> {
  const { embedded, admin } = await openServer(home)
  const { database } = embedded.connection
  await admin.query('CREATE TABLE notes (text VARCHAR(16) PRIMARY KEY)')
  await admin.query('CREATE USER paygate@localhost')
  await admin.query(`GRANT ALL ON ${database}.* TO paygate@localhost`)
  return { embedded, admin }
}

async function openServer(home: string, flags: readonly string[] = []): Promise<Server> {
  const embedded = await startEmbedded(home, { flags })
  return { embedded, admin: await createConnection(embedded.connection) }
}

async function stopServer({ admin, embedded }: Server): Promise<void> {
  await admin.end()
  embedded.release()
}
