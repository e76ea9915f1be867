import { readFileSync } from 'node:fs'
import { loadConfig } from '#config.ts'
import { openContext } from '#open-context.ts'
import { receiveCardEvent } from '#providers/card/receive-event.ts'
import { receivePayosNotification } from '#providers/payos/receive-notification.ts'

/** The command on the standard input of the process. */
export interface DyingCommand {
  readonly kind: 'card' | 'payos'
  readonly signature: string
  /** Base64. */
  readonly body: string
  /** Kills itself before this statement, counted from 1. */
  readonly diesBefore: number
}

/** COM_QUERY and COM_STMT_EXECUTE. */
const STATEMENTS: ReadonlySet<number | undefined> = new Set([0x03, 0x17])

/** Processes one notification and kills its process with -9 before a statement; otherwise prints the decision and the statements. */
async function main(): Promise<void> {
  const { kind, signature, body, diesBefore } = JSON.parse(readFileSync(0, 'utf8')) as DyingCommand
  const { ctx, close } = await openContext({ config: loadConfig(), thread: 'dying', poolSize: 1 })
  let statements = 0
  const counted = new WeakSet()
  ctx.db.pool.on('acquire', (connection) => {
    if (counted.has(connection)) return
    counted.add(connection)
    // All that is sent passes here, several packets at a time.
    const line = connection as unknown as { write: (bytes: Buffer) => void }
    const send = line.write.bind(line)
    line.write = (bytes) => {
      for (let at = 0; at < bytes.length; at += 4 + bytes.readUIntLE(at, 3)) {
        if (STATEMENTS.has(bytes[at + 4])) statements += 1
        if (statements !== diesBefore) continue
        send(bytes.subarray(0, at))
        process.kill(process.pid, 'SIGKILL')
      }
      send(bytes)
    }
  })
  const bytes = Buffer.from(body, 'base64')
  const notification = { signature, body: bytes }
  const decision =
    kind === 'card' ? await receiveCardEvent(ctx, notification) : await receivePayosNotification(ctx, bytes)
  process.stdout.write(`\n${JSON.stringify({ decision, statements })}\n`)
  await close()
}

if (import.meta.main) await main()
