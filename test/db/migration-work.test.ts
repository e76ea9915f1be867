import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { QueryRunner } from 'typeorm'
import type { TableWork } from '#migrations/migration.ts'
import { MIGRATIONS } from '#db/migrate.ts'
import { openMigrator } from '#db/typeorm.ts'
import { MYSQL } from '../support/database-server.ts'
import { openEmptyDatabase, type TestDb } from '../support/database.ts'

/** The cheapest first. MySQL has one word for building an index and for rebuilding the table while others write. */
const ALGORITHMS: Readonly<Record<string, TableWork>> =
  MYSQL === null
    ? { INSTANT: 'instant', NOCOPY: 'index', INPLACE: 'rebuild', COPY: 'rebuild' }
    : { INSTANT: 'instant', INPLACE: 'index', COPY: 'rebuild' }
/** The server does not support the requested algorithm for this change. */
const UNSUPPORTED = [1845, 1846]

/** Runs each migration, each ALTER with the cheapest algorithm that the server accepts, to find out what it does to existing tables. */
describe('what a migration declares about existing tables', () => {
  let db: TestDb
  let drop: () => Promise<void>

  before(async () => {
    ;({ db, drop } = await openEmptyDatabase('work'))
  })

  after(() => drop())

  for (const Migration of MIGRATIONS) {
    it(`is what the server does: ${Migration.name}`, async () => {
      const migration = new Migration()
      const { runner, close } = await openMigrator(db.targets, [])
      const found: Record<string, TableWork[]> = {}
      const note = (table: string, work: TableWork) => (found[table] ??= []).push(work)
      const alter = async (sql: string) => {
        for (const [algorithm, work] of Object.entries(ALGORITHMS)) {
          const result: unknown = await runner
            .query(`${sql}, ALGORITHM=${algorithm}`)
            .catch((error: unknown) => (UNSUPPORTED.includes((error as { errno: number }).errno) ? null : error))
          if (result instanceof Error) throw result
          if (result !== null) return note(/ALTER TABLE (\w+)/.exec(sql)![1]!, work)
        }
      }
      const watched = {
        hasColumn: runner.hasColumn.bind(runner),
        query: async (sql: string, params?: unknown[]) => {
          const changed = /^\s*(?:UPDATE|DELETE FROM) (\w+)/.exec(sql)?.[1]
          const copied = /^\s*INSERT INTO[^]*?\bFROM (?!DUAL\b)(\w+)/.exec(sql)?.[1]
          if (/^\s*ALTER/.test(sql)) return alter(sql)
          if (changed !== undefined) note(changed, 'update')
          if (copied !== undefined) note(copied, 'copy')
          return runner.query(sql, params) as Promise<unknown>
        },
      }
      await migration.up(watched as unknown as QueryRunner)
      await close()
      expect(MYSQL === null ? found : costlier(found, migration.work)).to.deep.equal(migration.work)
    })
  }
})

/** The declared work, except where the server does more. */
function costlier(
  found: Readonly<Record<string, readonly TableWork[]>>,
  declared: Readonly<Record<string, readonly TableWork[]>>,
): Record<string, readonly TableWork[]> {
  const cost = (work: TableWork | undefined) => ['instant', 'index', 'rebuild'].indexOf(work ?? 'instant')
  return Object.fromEntries(
    Object.entries(found).map(([table, works]) => [
      table,
      works.map((work, index) => {
        const said = declared[table]?.[index]
        return said !== undefined && cost(work) >= 0 && cost(said) >= cost(work) ? said : work
      }),
    ]),
  )
}
