import { expect } from 'chai'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { explainError } from '#cli/explain-error.ts'
import { openDatabase } from '#db/connect.ts'
import { MIGRATIONS, pendingMigrations, runMigrations } from '#db/migrate.ts'
import { EXACT_COLLATION } from '../support/database-server.ts'
import { openEmptyDatabase, openTestDb, testDatabase, urlOf, type TestDb } from '../support/database.ts'
import { schemaOf } from '../support/schema.ts'
import { until } from '../support/until.ts'
import { aMigration } from './a-migration.ts'
import { cutAfterEachChange } from './cut-migrations.ts'

const ALL = MIGRATIONS.map(({ name }) => name)
const PROCESS = join(import.meta.dirname, 'migrate-once.ts')

let name: string
let url: string
let db: TestDb
let drop: () => Promise<void>

async function create(): Promise<void> {
  ;({ db, url, name, drop } = await openEmptyDatabase('migrate'))
}

describe('migrations', () => {
  beforeEach(create)
  afterEach(() => drop())

  it('are pending in an empty database, and listing them changes nothing', async () => {
    expect(await pendingMigrations(db)).to.deep.equal(ALL)
    expect(await tables()).to.deep.equal([])
  })

  it('are the classes of the numbered files, each named after its file', () => {
    const files = readdirSync('migrations').filter((file) => /^\d/.test(file))
    const classOf = (file: string): string => {
      const [, number = '', words = ''] = /^(\d{13})-([a-z-]+)\.ts$/.exec(file) ?? []
      return words.replace(/(?:^|-)([a-z])/g, (_, letter: string) => letter.toUpperCase()) + number
    }
    expect(ALL).to.deep.equal(files.sort().map(classOf))
  })

  it('are applied once when several processes start at the same time', async () => {
    const outputs = await Promise.all(
      [1, 2, 3].map(() => promisify(execFile)(process.execPath, [PROCESS, url], { encoding: 'utf8' })),
    )
    const applied = outputs.map(({ stdout }) => JSON.parse(stdout) as string[])
    expect(applied.flat()).to.deep.equal(ALL)
    expect(await pendingMigrations(db)).to.deep.equal([])
  })

  it('wait while another process migrates, and take over when its lease has expired', async () => {
    const migrations = [aMigration('First1795200000901'), aMigration('Second1795200000902')]
    await runMigrations(db, migrations.slice(0, 1))
    await db.query(
      "UPDATE schema_lease SET holder = 'dead', lease_until = UTC_TIMESTAMP(3) + INTERVAL 500000 MICROSECOND",
    )
    const [lease]: { until: Date }[] = await db.query('SELECT lease_until AS until FROM schema_lease')
    expect(await runMigrations(db, migrations)).to.deep.equal(['Second1795200000902'])
    const [now]: { at: Date }[] = await db.query('SELECT UTC_TIMESTAMP(3) AS at')
    expect(now!.at.getTime()).to.be.at.least(lease!.until.getTime())
  })

  it('release their lease if one fails, and continue after the last that succeeded', async () => {
    let isBroken = true
    const migrations = [
      aMigration('First1795200000901', (runner) => runner.query('CREATE TABLE first (id INT PRIMARY KEY)')),
      aMigration('Second1795200000902', (runner) => runner.query(isBroken ? 'CREATE NONSENSE' : 'DO 1')),
    ]
    const error: unknown = await runMigrations(db, migrations).catch((error: unknown) => error)
    expect((error as Error).message).to.include('NONSENSE')
    isBroken = false
    expect(await runMigrations(db, migrations)).to.deep.equal(['Second1795200000902'])
  })

  it('that lose their connections say so, whichever of them was lost first', async () => {
    const admin = testDatabase().db
    const opened = () =>
      admin.query<{ id: number }[]>('SELECT id FROM information_schema.processlist WHERE db = ?', [name])
    const others = new Set((await opened()).map(({ id }) => id))
    const loseThem = aMigration('First1795200000901', async (runner) => {
      for (const { id } of await opened()) if (!others.has(id)) await admin.query(`KILL ${id}`)
      await runner.query('DO 1')
    })
    const error: unknown = await runMigrations(db, [loseThem]).catch((error: unknown) => error)
    expect(explainError(error)).to.match(/^the connection to the database was lost.*: is the server up\?$/)
    await db.query('UPDATE schema_lease SET lease_until = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND')
    expect(await runMigrations(db, [aMigration('First1795200000901')])).to.deep.equal(['First1795200000901'])
  })

  it('stop if another process took the lease', async () => {
    const migrations = [
      aMigration('First1795200000901', (runner) => runner.query("UPDATE schema_lease SET holder = 'another'")),
      aMigration('Second1795200000902', (runner) => runner.query('CREATE TABLE second (id INT PRIMARY KEY)')),
    ]
    const error: unknown = await runMigrations(db, migrations).catch((error: unknown) => error)
    expect((error as Error).message).to.include('another process took over')
    expect(await tables()).not.to.include('second')
  })

  it('refuse a database whose name TypeORM would take for two, before they change anything', async () => {
    await testDatabase().db.query(`CREATE DATABASE \`${name}.dot\``)
    const dotted = await openTestDb(urlOf(testDatabase().socketPath, `${name}.dot`))
    const error: unknown = await runMigrations(dotted.db).catch((error: unknown) => error)
    expect((error as Error).message).to.include('must not contain a dot')
    expect(await dotted.db.query('SHOW TABLES')).to.deep.equal([])
    await dotted.close()
    await testDatabase().db.query(`DROP DATABASE \`${name}.dot\``)
  })

  it('close their connections', async () => {
    const connections = () =>
      testDatabase().db.query<object[]>('SELECT id FROM information_schema.processlist WHERE db = ?', [name])
    expect(await pendingMigrations(db)).to.deep.equal(ALL)
    const before = await connections()
    let during = before
    const migration = aMigration('First1795200000901', async () => void (during = await connections()))
    await runMigrations(db, [migration])
    expect(during).to.have.length(before.length + 2)
    await until(async () => (await connections()).length === before.length)
  })

  it('may take longer than an ordinary statement', async () => {
    const impatient = await openDatabase({ databaseUrl: url, home: '' }, { statementSeconds: 0.2 })
    const slow = aMigration('Slow1795200000903', (runner) => runner.query('SELECT SLEEP(0.5)'))
    expect(await runMigrations(impatient.db, [slow])).to.deep.equal(['Slow1795200000903'])
    await impatient.close()
  })
})

describe('migrations', () => {
  // One database for all of them: they only read it.
  let applied: string[]
  before(async () => {
    await create()
    applied = await runMigrations(db)
  })
  after(() => drop())

  it('are applied once, in order, and returned to the caller that applied them', async () => {
    expect(applied).to.deep.equal(ALL)
    expect(await pendingMigrations(db)).to.deep.equal([])
    expect(await runMigrations(db)).to.deep.equal([])
  })

  it('are recorded in TypeORM’s table, which has its columns and no other', async () => {
    const rows: { id: number; timestamp: number; name: string }[] = await db.query(
      'SELECT * FROM migrations ORDER BY id',
    )
    expect(rows).to.deep.equal(ALL.map((name, index) => ({ id: index + 1, timestamp: Number(name.slice(-13)), name })))
  })

  it('create InnoDB tables with a primary key, texts in utf8mb4, and no triggers, routines, events or foreign keys', async () => {
    const rows: { name: string; engine: string; keys: number }[] = await db.query(
      `SELECT t.table_name AS name, t.engine AS engine,
              (SELECT COUNT(*) FROM information_schema.statistics s
               WHERE s.table_schema = t.table_schema AND s.table_name = t.table_name AND s.index_name = 'PRIMARY') AS \`keys\`
       FROM information_schema.tables t WHERE t.table_schema = DATABASE()`,
    )
    for (const table of rows) expect(table, table.name).to.include({ engine: 'InnoDB', keys: 1 })
    const collations: { name: string }[] = await db.query(
      `SELECT DISTINCT collation_name AS name FROM information_schema.columns
       WHERE table_schema = DATABASE() AND table_name <> 'migrations' AND collation_name IS NOT NULL`,
    )
    expect(collations.map((row) => row.name).sort()).to.deep.equal([EXACT_COLLATION, 'utf8mb4_unicode_ci'].sort())
    for (const catalog of ['triggers', 'routines', 'events', 'referential_constraints']) {
      const column = {
        triggers: 'trigger',
        routines: 'routine',
        events: 'event',
        referential_constraints: 'constraint',
      }[catalog]!
      const found: unknown[] = await db.query(
        `SELECT 1 FROM information_schema.${catalog} WHERE ${column}_schema = DATABASE()`,
      )
      expect(found, catalog).to.deep.equal([])
    }
  })
})

describe('migrations', () => {
  // One database for all of them, each of which adds to what those before it made.
  before(create)
  after(() => drop())

  for (const [index, { name: cut }] of MIGRATIONS.entries()) {
    it(`can be interrupted in ${cut} and run again`, async () => {
      const until = MIGRATIONS.slice(0, index + 1)
      expect(await runMigrations(db, until)).to.deep.equal([cut])
      const made = await schemaOf(db)
      expect(made).not.to.deep.equal({})
      // As after a crash between the change and its record; for the first one, before it created its last table.
      await db.query('DELETE FROM migrations WHERE name = ?', [cut])
      if (index === 0) await db.query('DROP TABLE bank_accounts')
      expect(await runMigrations(db, until)).to.deep.equal([cut])
      expect(await schemaOf(db)).to.deep.equal(made)
    })
  }
})

describe('the bookkeeping of version 0.1', () => {
  beforeEach(async () => {
    await create()
    // Makes the lease; the tables of the service are not looked at.
    await runMigrations(db, [aMigration('First1795200000901')])
    await db.query('DROP TABLE migrations')
    await db.query('ALTER TABLE schema_lease RENAME COLUMN holder TO token')
    await db.query('CREATE TABLE schema_migrations (name VARCHAR(191) PRIMARY KEY, applied_at DATETIME(3) NOT NULL)')
    await db.query('INSERT INTO schema_migrations VALUES ?', [ALL.map((applied) => [applied, new Date()])])
  })

  afterEach(() => drop())

  const expectTakenOver = async () => {
    expect(await tables()).not.to.include('schema_migrations')
    const rows: { name: string }[] = await db.query('SELECT name FROM migrations ORDER BY id')
    expect(rows.map((row) => row.name)).to.deep.equal(ALL)
  }

  it('is read where it was not taken over', async () => {
    expect(await pendingMigrations(db)).to.deep.equal([])
    await db.query('DELETE FROM schema_migrations WHERE name = ?', [ALL.at(-1)])
    expect(await pendingMigrations(db)).to.deep.equal(ALL.slice(-1))
  })

  it('is taken over even if nothing is pending', async () => {
    expect(await runMigrations(db)).to.deep.equal([])
    await expectTakenOver()
  })

  it('is taken over once when several processes start at the same time', async () => {
    const run = () => promisify(execFile)(process.execPath, [PROCESS, url], { encoding: 'utf8' })
    const outputs = await Promise.all([run(), run(), run()])
    expect(outputs.map(({ stdout }) => stdout)).to.deep.equal(['[]', '[]', '[]'])
    await expectTakenOver()
  })

  it('is completed by the next run if the take-over is interrupted after any statement, and nothing seems to be pending meanwhile', async () => {
    const { seen, restore } = cutAfterEachChange()
    for (;;) {
      const cut = await runMigrations(db).then(() => null, String)
      expect(await pendingMigrations(db)).to.deep.equal([])
      if (cut === null) break
      expect(cut).to.include('cut after')
    }
    restore()
    // The lease, the table, its rows, and the two ends of the old one.
    expect(seen.size).to.be.at.least(ALL.length + 4)
    await expectTakenOver()
  })

  it('is taken over by a user who may not drop tables, and version 0.1 finds none applied', async () => {
    const admin = testDatabase().db
    await admin.query("CREATE USER IF NOT EXISTS 'no-drop'@'localhost'")
    await admin.query(
      `GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, INDEX ON ${name}.* TO 'no-drop'@'localhost'`,
    )
    const limited = await openTestDb(url.replace('//root@', '//no-drop@'))
    try {
      expect(await runMigrations(limited.db)).to.deep.equal([])
      expect(await pendingMigrations(limited.db)).to.deep.equal([])
      expect(await db.query('SELECT name FROM schema_migrations')).to.deep.equal([])
    } finally {
      await limited.close()
      await admin.query("DROP USER 'no-drop'@'localhost'")
    }
  })

  it('leaves a lease that version 0.1 cannot take, since it would apply all of its migrations again', async () => {
    await runMigrations(db)
    const taken: unknown = await db
      .query(`UPDATE schema_lease SET token = 'old', lease_until = UTC_TIMESTAMP(3) + INTERVAL 15 SECOND WHERE id = 1`)
      .catch((error: unknown) => error)
    expect((taken as Error).message).to.include("Unknown column 'token'")
    // It makes its table before it asks for the lease.
    await db.query('CREATE TABLE schema_migrations (name VARCHAR(191) PRIMARY KEY, applied_at DATETIME(3) NOT NULL)')
    expect(await pendingMigrations(db)).to.deep.equal([])
    expect(await runMigrations(db)).to.deep.equal([])
    await expectTakenOver()
  })
})

async function tables(): Promise<string[]> {
  const rows: { name: string }[] = await db.query(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name',
  )
  return rows.map((row) => row.name)
}
