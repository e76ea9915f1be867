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

/** Processes one notification and kills its process with -9 before a statement; otherwise prints the decision and the statements. */
async function main(): Promise<void> {
  const { kind, signature, body, diesBefore } = JSON.parse(readFileSync(0, 'utf8')) as DyingCommand
  const { ctx, close } = await openContext({ config: loadConfig(), thread: 'dying', poolSize: 1 })
  let statements = 0
  const counted = new WeakSet()
  ctx.db.pool.on('acquire', (connection) => {
    if (counted.has(connection)) return
    counted.add(connection)
    // All statements pass here.
    const line = connection as unknown as { addCommand: (command: object) => unknown }
    const send = line.addCommand.bind(line)
    line.addCommand = (command) => {
      if (command.constructor.name !== 'Prepare') statements += 1
      if (statements === diesBefore) process.kill(process.pid, 'SIGKILL')
      return send(command)
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
