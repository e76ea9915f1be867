import { expect } from 'chai'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { DataSource } from 'typeorm'
import { openDatabase, type Database, type OpenDatabase } from '#db/connect.ts'
import { MIGRATIONS, pendingMigrations, runMigrations } from '#db/migrate.ts'
import { testDatabase, urlOf } from '../support/database.ts'
import { schemaOf } from '../support/schema.ts'
import { aMigration } from './a-migration.ts'

const ALL = MIGRATIONS.map(({ name }) => name)
const PROCESS = join(import.meta.dirname, 'migrate-once.ts')

let name: string
let url: string
let opened: OpenDatabase
let db: Database
let source: DataSource

async function create(): Promise<void> {
  name = `${testDatabase().name}_migrate`
  url = urlOf(testDatabase().socketPath, name)
  await testDatabase().db.query(`CREATE DATABASE ${name}`)
  opened = await openDatabase({ databaseUrl: url, home: '' })
  db = opened.db
  source = await db.dataSource()
}

async function drop(): Promise<void> {
  await opened.close()
  await testDatabase().db.query(`DROP DATABASE ${name}`)
}

describe('migrations', () => {
  beforeEach(create)
  afterEach(drop)

  it('are pending in an empty database, and listing them changes nothing', async () => {
    expect(await pendingMigrations(db)).to.deep.equal(ALL)
    expect(await tables(source)).to.deep.equal([])
  })

  it('have unique names in the order of their timestamps', () => {
    const times = ALL.map((migration) => migration.slice(-13))
    expect(times).to.deep.equal([...new Set(times)].sort())
    for (const time of times) expect(time).to.match(/^\d{13}$/)
  })

  it('are applied once, in order, and returned to the caller that applied them', async () => {
    expect(await runMigrations(db)).to.deep.equal(ALL)
    expect(await pendingMigrations(db)).to.deep.equal([])
    expect(await runMigrations(db)).to.deep.equal([])
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
    await runMigrations(db)
    await source.query('DELETE FROM schema_migrations WHERE name = ?', [ALL.at(-1)])
    await source.query(
      "UPDATE schema_lease SET token = 'dead', lease_until = UTC_TIMESTAMP(3) + INTERVAL 500000 MICROSECOND",
    )
    const [lease]: { until: Date }[] = await source.query('SELECT lease_until AS until FROM schema_lease')
    expect(await runMigrations(db)).to.deep.equal(ALL.slice(-1))
    const [end]: { at: Date }[] = await source.query('SELECT MAX(applied_at) AS at FROM schema_migrations')
    expect(end!.at.getTime()).to.be.at.least(lease!.until.getTime())
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

  it('stop if another process took the lease', async () => {
    const migrations = [
      aMigration('First1795200000901', (runner) => runner.query("UPDATE schema_lease SET token = 'another'")),
      aMigration('Second1795200000902', (runner) => runner.query('CREATE TABLE second (id INT PRIMARY KEY)')),
    ]
    const error: unknown = await runMigrations(db, migrations).catch((error: unknown) => error)
    expect((error as Error).message).to.include('another process took over')
    expect(await tables(source)).not.to.include('second')
  })

  it('may take longer than an ordinary statement', async () => {
    const impatient = await openDatabase({ databaseUrl: url, home: '' }, { statementSeconds: 0.2 })
    const slow = aMigration('Slow1795200000903', (runner) => runner.query('SELECT SLEEP(0.5)'))
    expect(await runMigrations(impatient.db, [slow])).to.deep.equal(['Slow1795200000903'])
    await impatient.close()
  })

  it('create InnoDB tables with a primary key, texts in utf8mb4, and no triggers, routines, events or foreign keys', async () => {
    await runMigrations(db)
    const rows: { name: string; engine: string; keys: number }[] = await source.query(
      `SELECT t.table_name AS name, t.engine,
              (SELECT COUNT(*) FROM information_schema.statistics s
               WHERE s.table_schema = t.table_schema AND s.table_name = t.table_name AND s.index_name = 'PRIMARY') AS \`keys\`
       FROM information_schema.tables t WHERE t.table_schema = DATABASE()`,
    )
    for (const table of rows) expect(table, table.name).to.include({ engine: 'InnoDB', keys: 1 })
    const collations: { name: string }[] = await source.query(
      'SELECT DISTINCT collation_name AS name FROM information_schema.columns WHERE table_schema = DATABASE() AND collation_name IS NOT NULL',
    )
    expect(collations.map((row) => row.name).sort()).to.deep.equal(['utf8mb4_nopad_bin', 'utf8mb4_unicode_ci'])
    for (const catalog of ['triggers', 'routines', 'events', 'referential_constraints']) {
      const column = {
        triggers: 'trigger',
        routines: 'routine',
        events: 'event',
        referential_constraints: 'constraint',
      }[catalog]!
      const found: unknown[] = await source.query(
        `SELECT 1 FROM information_schema.${catalog} WHERE ${column}_schema = DATABASE()`,
      )
      expect(found, catalog).to.deep.equal([])
    }
  })
})

describe('migrations', () => {
  let made: unknown[]

  // One database for all of them: each restores the schema.
  before(async () => {
    await create()
    await runMigrations(db)
    made = await schemaOf(source)
    expect(made.length).to.be.above(100)
  })

  after(drop)

  for (const [index, cut] of ALL.entries()) {
    it(`can be interrupted in ${cut} and run again`, async () => {
      // As after a crash between the change and its record; for the first one, before it created its last table.
      await source.query('DELETE FROM schema_migrations WHERE name IN (?)', [ALL.slice(index)])
      if (index === 0) await source.query('DROP TABLE bank_accounts')
      expect(await runMigrations(db)).to.deep.equal(ALL.slice(index))
      expect(await schemaOf(source)).to.deep.equal(made)
    })
  }
})

async function tables(db: DataSource): Promise<string[]> {
  const rows: { name: string }[] = await db.query(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name',
  )
  return rows.map((row) => row.name)
}
