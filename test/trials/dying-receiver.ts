import { readFileSync } from 'node:fs'
import { loadConfig } from '#config.ts'
import { socketOf } from '#db/mysql-adapter.ts'
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
    // All packets pass here.
    const line = connection as unknown as { writePacket: (packet: { readonly buffer: Buffer }) => unknown }
    const send = line.writePacket.bind(line)
    line.writePacket = (packet) => {
      if (STATEMENTS.has(packet.buffer[4])) statements += 1
      if (statements === diesBefore) {
        // Those before it, of the same write, are on their way.
        const socket = socketOf(connection)
        while (socket.writableCorked > 0) socket.uncork()
        process.kill(process.pid, 'SIGKILL')
      }
      return send(packet)
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
