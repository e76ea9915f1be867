import { createConnection } from 'mysql2/promise'
import { startEmbedded } from '#embedded/start-embedded.ts'

/**
 * A process that uses the embedded database of a home, as daemon and CLI do: prints `using <settings of the server>` once it does, then
 * runs the commands on its standard input: `write <text>`, `read`, `release`.
 */
const embedded = await startEmbedded(process.argv[2] ?? '')

async function ask(statement: string, values: readonly string[] = []): Promise<Record<string, unknown>[]> {
  const connection = await createConnection(embedded.connection)
  try {
    const [rows] = await connection.query(statement, [...values])
    return rows as Record<string, unknown>[]
  } finally {
    await connection.end()
  }
}

async function runCommand(line: string): Promise<string> {
  const [verb, text = ''] = line.split(' ')
  if (verb === 'release') {
    embedded.release()
    return 'released'
  }
  await ask('CREATE TABLE IF NOT EXISTS notes (text VARCHAR(191))')
  if (verb === 'write') await ask('INSERT INTO notes VALUES (?)', [text])
  const rows = await ask('SELECT text FROM notes ORDER BY text')
  return rows.map((row) => String(row['text'])).join(' ')
}

const [server] = await ask('SELECT @@skip_networking AS alone')
process.stdout.write(`using ${JSON.stringify(server)}\n`)
process.stdin.setEncoding('utf8')
process.stdin.on('data', (chunk: string) => {
  for (const line of chunk.trim().split('\n')) {
    runCommand(line).then(
      (answer) => process.stdout.write(`${answer}\n`),
      (error: unknown) => process.stdout.write(`failed ${String(error)}\n`),
    )
  }
})
