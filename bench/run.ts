import { createConnection } from 'mysql2/promise'
import { openDatabase } from '#db/connect.ts'
import { runMigrations } from '#db/migrate.ts'
import { TABLES } from '#open-context.ts'
import { startService } from '../test/support/api.ts'
import { testContext } from '../test/support/context.ts'
import {
  emptyTestDatabase,
  startTestDatabase,
  stopTestDatabase,
  testDatabase,
  urlOf,
} from '../test/support/database.ts'
import { benchReads } from './reads.ts'
import { benchReminders } from './reminders.ts'

const print = (line: string) => void process.stdout.write(`${line}\n`)

/** A second database beside the run's own, dropped afterwards. */
async function withSecondDatabase(work: (url: string) => Promise<void>): Promise<void> {
  const { socketPath, name } = testDatabase()
  const admin = await createConnection({ socketPath, user: 'root' })
  const second = `${name}_large`
  await admin.query(`CREATE DATABASE ${second} CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci`)
  try {
    await work(urlOf(socketPath, second))
  } finally {
    await admin.query(`DROP DATABASE ${second}`)
    await admin.end()
  }
}

await startTestDatabase()
try {
  const service = await startService()
  await benchReads(service, print)
  await service.stop()
  await emptyTestDatabase()
  await withSecondDatabase(async (url) => {
    const { db, close } = await openDatabase({ databaseUrl: url, home: 'var' }, TABLES)
    await runMigrations(db.source)
    const small = testContext()
    await benchReminders({ small, large: { ...small, db } }, print)
    await close()
  })
} finally {
  await stopTestDatabase()
}
