import { MIGRATIONS } from '#db/migrate.ts'
import { startTestDatabase, stopTestDatabase, testDatabase } from '../support/database.ts'
import { writeDump } from './dump.ts'
import { liveAYear } from './year.ts'

/**
 * Makes the dump that `upgrade.test.ts` brings to the newest version. Run it on the version that is to be upgraded from, before any
 * newer migration is there, and commit what it writes:
 *
 *     git worktree add ../before <commit>; cp -r test/upgrade ../before/test; cd ../before; npm ci
 *     node test/upgrade/make-dump.ts
 *
 * `year-at-17` was made on 5f9a0ab.
 */
process.env['TZ'] = 'Asia/Ho_Chi_Minh'
await startTestDatabase()
const files = await writeDump(testDatabase().url, MIGRATIONS.length, await liveAYear())
process.stdout.write(`${files.sql}\n${files.summary}\n`)
await stopTestDatabase()
