import type { RootHookObject } from 'mocha'
import './database-server.ts'
import { loaded } from './loaded.ts'

// Far from UTC, so that a time read as local time is noticed.
process.env['TZ'] = 'Asia/Ho_Chi_Minh'
// Where the tests run in colour, as in some continuous integration, what they read must not be.
for (const name of ['FORCE_COLOR', 'NO_COLOR', 'NODE_DISABLE_COLORS']) Reflect.deleteProperty(process.env, name)

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
