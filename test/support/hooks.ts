import type { RootHookObject } from 'mocha'
import { emptyTestDatabase, startTestDatabase, stopTestDatabase } from './database.ts'

// A machine far from UTC, so that a time taken as local shows.
process.env['TZ'] = 'Asia/Ho_Chi_Minh'

export const mochaHooks: RootHookObject = {
  beforeAll: startTestDatabase,
  afterEach: emptyTestDatabase,
  afterAll: stopTestDatabase,
}
