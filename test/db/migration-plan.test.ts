import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { runMigrations } from '#db/migrate.ts'
import { planMigrations } from '#db/migration-plan.ts'
import { openEmptyDatabase, type TestDb } from '../support/database.ts'
import { aMigration } from './a-migration.ts'

describe('the plan of migrations', () => {
  let db: TestDb
  let drop: () => Promise<void>

  beforeEach(async () => {
    ;({ db, drop } = await openEmptyDatabase('plan'))
  })

  afterEach(() => drop())

  it('of an empty database names every migration and no table', async () => {
    const plan = await planMigrations(db)
    expect(plan.length).to.be.greaterThan(20)
    expect(plan.flatMap(({ tables }) => tables)).to.deep.equal([])
  })

  it('has for each pending migration the rows that its steps process, and about how long they take', async () => {
    await db.query('CREATE TABLE small (id INT PRIMARY KEY)')
    await db.query('CREATE TABLE large (id INT PRIMARY KEY)')
    await db.query('CREATE TABLE vacant (id INT PRIMARY KEY)')
    await db.query('INSERT INTO small VALUES (1), (2), (3)')
    await db.query('INSERT INTO large VALUES (0)')
    for (let rows = 1; rows < 2 ** 17; rows *= 2) await db.query(`INSERT INTO large SELECT id + ${rows} FROM large`)
    await db.query('ANALYZE TABLE large')
    const migrations = [
      aMigration('Before1795200000901', undefined, { small: ['rebuild'] }),
      aMigration('Next1795200000902', undefined, {
        small: ['instant', 'rebuild'],
        vacant: ['update'],
        gone: ['index'],
      }),
      aMigration('Last1795200000903', undefined, { large: ['rebuild', 'index'] }),
    ]
    await runMigrations(db, migrations.slice(0, 1))
    const [next, last, ...others] = await planMigrations(db, migrations)
    expect(next).to.deep.equal({
      name: 'Next1795200000902',
      tables: [{ table: 'small', rows: 3, steps: ['instant', 'rebuild'], seconds: 1 }],
    })
    const [large] = last!.tables
    expect(large).to.include({ table: 'large', seconds: 2 })
    expect(large!.rows).to.be.within(100_001, 300_000)
    expect(others).to.deep.equal([])
  })

  it('reads no table of others, whatever its name', async () => {
    await db.query("CREATE TABLE `their's-table` (id INT PRIMARY KEY)")
    await db.query('CREATE TABLE small (id INT PRIMARY KEY)')
    await db.query('INSERT INTO small VALUES (1)')
    const [plan] = await planMigrations(db, [aMigration('Next1795200000902', undefined, { small: ['rebuild'] })])
    expect(plan!.tables).to.deep.equal([{ table: 'small', rows: 1, steps: ['rebuild'], seconds: 1 }])
  })
})
