import { writeFileSync } from 'node:fs'
import { startTestDatabase, stopTestDatabase, testDatabase } from './support/database.ts'
import { SCHEMA_FILE, schemaText } from './support/schema.ts'

/** Writes what the migrations make. Run it after a migration was added (`npm run schema`), and read the difference. */
await startTestDatabase()
writeFileSync(SCHEMA_FILE, await schemaText(testDatabase().db))
await stopTestDatabase()
