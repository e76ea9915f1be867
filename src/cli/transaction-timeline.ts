import type { Discount } from '#promotions/discount.ts'
import type { TransactionTimeline } from '#support/transaction-timeline.ts'
import { moneyCell, standingCell } from './cells.ts'
import type { Output } from './output.ts'
import { markOf } from './session.ts'

/** Prints a transaction, then what happened, in order. As JSON the transaction with `app` and `timeline`. */
export function printTimeline(out: Output, { app, transaction, timeline }: TransactionTimeline): void {
  const shown = { ...transaction, app, timeline }
  out.result(shown, () => {
    out.line(`${markOf(app.sandbox)} ${app.name} (app ${app.app_id})`)
    const { amount, discount, currency } = transaction
    const words = {
      amount: moneyCell(amount, currency),
      discount: discount && discountCell(discount, amount, currency),
      amount_received: moneyCell(transaction.amount_received, currency),
      amount_refunded: moneyCell(transaction.amount_refunded, currency),
      status: standingCell(transaction.status, transaction.flag_reason),
    }
    const hasMoved = app.clock_offset_seconds !== 0
    const { created_at, completed_at } = transaction
    const own = hasMoved ? { created_at: byTestClock(created_at), completed_at: byTestClock(completed_at) } : {}
    out.fields({ ...transaction, ...words, ...own })
    const rows = timeline.map(({ at, part, text }) => [at, part, text])
    out.table({
      head: [hasMoved ? 'at (real time, UTC)' : 'at (UTC)', 'part', 'what happened'],
      rows,
      none: 'nothing happened yet',
    })
  })
}

/** `₫19,800 off ₫99,000 with TET2027` */
function discountCell({ code, amount: off }: Discount, amount: number, currency: string): string {
  return `${moneyCell(off, currency)} off ${moneyCell(amount + off, currency)} with ${code}`
}

function byTestClock(time: string | null): string | null {
  return time && `${time} UTC (test clock)`
}
