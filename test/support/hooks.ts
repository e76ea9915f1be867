import type { RootHookObject } from 'mocha'
import './database-server.ts'
import { loaded } from './loaded.ts'

// Far from UTC, so that a time read as local time is noticed.
process.env['TZ'] = 'Asia/Ho_Chi_Minh'

/** Starts the database only for test files that load it, directly or indirectly. */
export const mochaHooks: RootHookObject = {
  async beforeAll() {
    if (loaded.database) await (await import('./database.ts')).startTestDatabase()
  },
  async afterEach() {
    if (loaded.database) await (await import('./database.ts')).emptyTestDatabase()
  },
  async afterAll() {
    if (loaded.database) await (await import('./database.ts')).stopTestDatabase()
  },
}
