import { openDatabase } from '#db/connect.ts'
import { runMigrations } from '#db/migrate.ts'

/** A process that migrates the database of its first argument and prints as JSON what it applied. */
const { db, close } = await openDatabase({ databaseUrl: process.argv[2] ?? '', home: '' })
process.stdout.write(JSON.stringify(await runMigrations(db)))
await close()
