import type { RootHookObject } from 'mocha'
import { asked } from './asked.ts'

// A machine far from UTC, so that a time taken as local shows.
process.env['TZ'] = 'Asia/Ho_Chi_Minh'

/** The database, for test files that load it, themselves or by what they load: no other waits for a server. */
export const mochaHooks: RootHookObject = {
  async beforeAll() {
    if (asked.database) await (await import('./database.ts')).startTestDatabase()
  },
  async afterEach() {
    if (asked.database) await (await import('./database.ts')).emptyTestDatabase()
  },
  async afterAll() {
    if (asked.database) await (await import('./database.ts')).stopTestDatabase()
  },
}
