import type { TransactionStory } from '#operations/tell-transaction.ts'
import { moneyCell, standingCell } from './cells.ts'
import type { Output } from './output.ts'
import { printable } from './printable.ts'
import { markOf } from './session.ts'

/** Prints a payment's story: the transaction, then what happened, in order. As JSON the transaction with `app` and `timeline`. */
export function printStory(out: Output, story: TransactionStory): void {
  const shown = { ...story.transaction, app: story.app, timeline: story.timeline }
  out.result(shown, () => {
    out.line(`${markOf(story.app.sandbox)} ${printable(story.app.name)} (app ${story.app.app_id})`)
    const { amount, amount_received: received, currency, status, flag_reason: reason } = story.transaction
    const words = {
      amount: moneyCell(amount, currency),
      amount_received: moneyCell(received, currency),
      status: standingCell(status, reason),
    }
    out.fields({ ...story.transaction, ...words })
    const rows = story.timeline.map(({ at, part, text }) => [at, part, text])
    out.table({ head: ['at (UTC)', 'part', 'what happened'], rows, none: 'nothing happened yet' })
  })
}
