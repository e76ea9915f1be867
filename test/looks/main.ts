import { rmSync } from 'node:fs'
import { startTestDatabase, stopTestDatabase } from '../support/database.ts'
import { LOOKS } from './looks.ts'
import { lookAtMails } from './mails.ts'
import { lookAtPages } from './pages.ts'
import { lookAtTables } from './tables.ts'

/** Every kind of thing that people see, each a function that writes its pictures into a folder: `npm run looks -- pages` takes one. */
const KINDS: Readonly<Record<string, (folder: string) => Promise<void>>> = {
  pages: lookAtPages,
  mails: lookAtMails,
  tables: lookAtTables,
}

const asked = process.argv.slice(2)
await startTestDatabase()
for (const [kind, look] of Object.entries(KINDS)) {
  if (asked.length > 0 && !asked.includes(kind)) continue
  const folder = `${LOOKS}/${kind}`
  rmSync(folder, { recursive: true, force: true })
  await look(folder)
  process.stdout.write(`${folder}\n`)
}
await stopTestDatabase()
