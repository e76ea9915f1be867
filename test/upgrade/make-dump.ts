import { MIGRATIONS } from '#db/migrate.ts'
import { startTestDatabase, stopTestDatabase, testDatabase } from '../support/database.ts'
import { writeDump } from './dump.ts'
import { simulateYear } from './year.ts'

/**
 * Makes the dump that `upgrade.test.ts` upgrades to the newest version. Run it on the version to upgrade from, before any newer
 * migration exists, and commit what it writes:
 *
 *     git worktree add ../before <commit>; cp -r test/upgrade ../before/test; cd ../before; npm ci
 *     node test/upgrade/make-dump.ts
 *
 * `year-at-17` was made on 5f9a0ab.
 */
process.env['TZ'] = 'Asia/Ho_Chi_Minh'
await startTestDatabase()
const files = await writeDump(testDatabase().url, MIGRATIONS.length, await simulateYear())
process.stdout.write(`${files.sql}\n${files.summary}\n`)
await stopTestDatabase()
