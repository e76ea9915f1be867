import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { emptyTestDatabase, startTestDatabase, stopTestDatabase } from '../support/database.ts'
import { LOOKS } from './looks.ts'
import { lookAtMails } from './mails.ts'
import { lookAtPages } from './pages.ts'
import { lookForReadme } from './readme.ts'
import { lookAtTables } from './tables.ts'

/** Every kind of thing that people see, each a function that writes its pictures into a folder: `npm run looks -- pages` takes one. */
const KINDS: Readonly<Record<string, (folder: string) => Promise<void>>> = {
  pages: lookAtPages,
  mails: lookAtMails,
  tables: lookAtTables,
}
/** Those of the README are under version control, and made only where they are asked for. */
const README = 'readme'
const PICTURES = join(import.meta.dirname, '../../docs/pictures')

const asked = process.argv.slice(2)
await startTestDatabase()
for (const [kind, look] of Object.entries(KINDS))
  if (asked.length === 0 || asked.includes(kind)) await lookInto(`${LOOKS}/${kind}`, look)
if (asked.includes(README)) await lookInto(PICTURES, lookForReadme)
await stopTestDatabase()

async function lookInto(folder: string, look: (folder: string) => Promise<void>): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await emptyTestDatabase()
  await look(folder)
  process.stdout.write(`${folder}\n`)
}
