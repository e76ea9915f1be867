import { readFileSync } from 'node:fs'
import { loadConfig } from '#config/config.ts'
import type { Connection } from '#db/connection.ts'
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
  const dieInTime = (): void => {
    statements += 1
    if (statements === diesBefore) process.kill(process.pid, 'SIGKILL')
  }
  const { pool } = ctx.db
  const take = pool.take.bind(pool)
  const counted = new WeakSet<Connection>()
  pool.take = async () => {
    const connection = await take()
    if (counted.has(connection)) return connection
    counted.add(connection)
    const { send } = connection
    const command = connection.command.bind(connection)
    return Object.assign(connection, {
      send: (...statement: Parameters<typeof send>) => {
        dieInTime()
        return send(...statement)
      },
      command: (sql: string) => {
        dieInTime()
        return command(sql)
      },
    })
  }
  const bytes = Buffer.from(body, 'base64')
  const notification = { signature, body: bytes }
  const decision =
    kind === 'card' ? await receiveCardEvent(ctx, notification) : await receivePayosNotification(ctx, bytes)
  process.stdout.write(`\n${JSON.stringify({ decision, statements })}\n`)
  await close()
}

if (import.meta.main) await main()
