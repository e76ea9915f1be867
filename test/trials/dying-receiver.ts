import { readFileSync } from 'node:fs'
import { loadConfig } from '#config.ts'
import { openContext } from '#open-context.ts'
import { receiveCardEvent } from '#providers/card/receive-event.ts'
import { receivePayosNotification } from '#providers/payos/receive-notification.ts'

/** What the process is told on its standard input. */
export interface DyingOrder {
  readonly kind: 'card' | 'payos'
  readonly signature: string
  /** Base64. */
  readonly body: string
  /** Dies before this statement, counted from 1. */
  readonly diesBefore: number
}

/** Takes one notification in a process that kills itself, with -9, before a statement; otherwise prints decision and statements. */
async function main(): Promise<void> {
  const { kind, signature, body, diesBefore } = JSON.parse(readFileSync(0, 'utf8')) as DyingOrder
  const { ctx, close } = await openContext({ config: loadConfig(), thread: 'dying', poolSize: 1 })
  let statements = 0
  const makeRunner = ctx.db.source.createQueryRunner.bind(ctx.db)
  ctx.db.source.createQueryRunner = (...options) => {
    const runner = makeRunner(...options)
    const query = runner.query.bind(runner) as (...order: unknown[]) => Promise<unknown>
    runner.query = (...order: unknown[]): Promise<any> => {
      statements += 1
      if (statements === diesBefore) process.kill(process.pid, 'SIGKILL')
      return query(...order)
    }
    return runner
  }
  const bytes = Buffer.from(body, 'base64')
  const notification = { signature, body: bytes }
  const decision =
    kind === 'card' ? await receiveCardEvent(ctx, notification) : await receivePayosNotification(ctx, bytes)
  process.stdout.write(`\n${JSON.stringify({ decision, statements })}\n`)
  await close()
}

if (import.meta.main) await main()
