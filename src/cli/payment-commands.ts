import type { Command } from 'commander'
import type { ListedPayment } from '#payments/store.ts'
import { goAhead, required, requiredChoice } from './ask.ts'
import { inChange, withDryRun } from './change.ts'
import { withExamples } from './examples.ts'
import { numberOf } from './number-of.ts'
import { gatherRows, readLimit } from './pages.ts'
import { inSession, performAs, type Session } from './session.ts'
import { formatFields } from './table.ts'

/** `payment …`: money that arrived, what it was booked for, and what of it waits for a decision. */
export function registerPaymentCommands(program: Command): void {
  const payment = program.command('payment').description('money that arrived, and what of it waits for a decision')
  registerList(payment)
  registerShow(payment)
  registerMove(payment)
  registerRefund(payment)
  registerClose(payment)
}

interface ListOptions {
  readonly app?: string
  readonly unallocated?: boolean
  readonly limit: string
}

function registerList(payment: Command): void {
  const list = payment
    .command('list')
    .description('payments, newest first')
    .option('--app <app>', 'only of this app')
    .option('--unallocated', 'only those with money that waits for a decision: booked for nothing, or flagged')
    .option('--limit <n>', 'how many at most', '100')
    .action(async (options: ListOptions, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, async (session) => {
        const { listPayments, presentListedPayment } = await import('#payments/list-payments.ts')
        const appId = options.app === undefined ? null : (await session.app(options.app)).id
        const rows = await gatherRows(session.out, limit, (page) =>
          listPayments(session.ctx, { appId, waiting: options.unallocated === true }, page),
        )
        const shown = rows.map(presentListedPayment)
        session.out.result(shown, () => {
          session.out.table({
            head: ['id', 'received (UTC)', 'by', 'amount', 'waits', 'why', 'transaction', 'reference'],
            rows: rows.map((row, index) => [
              row.id,
              shown[index]?.['received_at'],
              row.provider,
              row.amount === null ? `? ${row.currency}` : `${row.amount} ${row.currency}`,
              row.waiting ?? '?',
              shown[index]?.['reason'],
              row.transactionId,
              row.reference,
            ]),
            none: options.unallocated ? 'No money waits for a decision.' : 'no payments',
          })
        })
      })
    })
  withExamples(list, 'payment list --unallocated', 'payment list --app 1 --json')
}

function registerShow(payment: Command): void {
  const show = payment
    .command('show [id]')
    .description('what a payment was booked for and by whom, what was given back, and which bank mails report it')
    .action(async (id: string | undefined, _options: object, command: Command) => {
      await inSession(command, async (session) => {
        const paymentId = await pickPayment(session, id)
        const { showPayment } = await import('#operations/show-payment.ts')
        const {
          payment: fields,
          allocations,
          refunds,
          bankMails,
          decisions,
        } = await showPayment(session.ctx, paymentId)
        session.out.result({ ...fields, allocations, refunds, bank_mail_ids: bankMails, decisions }, () => {
          session.out.line(formatFields({ ...fields, bank_mails: bankMails.join(' ') || null }))
          const columns = {
            allocations: ['at', 'transaction_id', 'amount', 'cause', 'actor', 'note'],
            refunds: ['refund_id', 'created_at', 'amount', 'status', 'reference', 'failure', 'note'],
            decisions: ['at', 'actor', 'action', 'note'],
          } as const
          showRows(session, allocations, columns.allocations, 'booked for no transaction')
          showRows(session, refunds, columns.refunds, 'nothing was refunded')
          if (decisions.length > 0) showRows(session, decisions, columns.decisions, '')
        })
      })
    })
  withExamples(show, 'payment show 12', 'payment show 12 --json')
}

function showRows(
  { out }: Session,
  rows: readonly Readonly<Record<string, unknown>>[],
  head: readonly string[],
  none: string,
): void {
  out.table({ head, rows: rows.map((row) => head.map((column) => row[column])), none })
}

interface ChangeOptions {
  readonly amount?: string
  readonly reference?: string
  readonly note?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
}

function registerMove(payment: Command): void {
  const move = payment
    .command('move [payment_id] [transaction_id]')
    .description('book money for the transaction that it was meant for')
    .option('--amount <n>', 'a part of it, in the smallest unit; needed where the amount is not known')
    .option('--note <text>', 'why; kept in the audit log')
    .option('--yes', 'do not ask')
    .action(
      async (id: string | undefined, transaction: string | undefined, options: ChangeOptions, command: Command) => {
        await inChange(command, async (session) => {
          const paymentId = await pickPayment(session, id)
          const named = await required(transaction, '<transaction_id>')
          const transactionId = await numberOf(named, '<transaction_id>')
          const input = { payment_id: paymentId, transaction_id: transactionId, ...(await changeOf(options)) }
          if (!options.dryRun)
            await goAhead(options.yes, `Book money of payment ${paymentId} for transaction ${transactionId}?`)
          const { movePayment } = await import('#operations/move-payment.ts')
          const moved = await movePayment(session.ctx, session.caller, input)
          session.out.result(moved, () =>
            session.out.line(
              `${moved.amount} of payment ${paymentId} are booked for transaction ${transactionId}: ${moved.status}`,
            ),
          )
        })
      },
    )
  withDryRun(move)
  withExamples(
    move,
    'payment move 12 17 --note "used the code of last month"',
    'payment move 12 17 --note "used the code of last month" --dry-run',
  )
}

function registerRefund(payment: Command): void {
  const refund = payment
    .command('refund [payment_id]')
    .description('give back money that is booked for no transaction')
    .option('--amount <n>', 'a part of it, in the smallest unit; needed where the amount is not known')
    .option('--reference <reference>', 'of your own transfer, where money is refunded manually')
    .option('--note <text>', 'why; kept in the audit log')
    .option('--yes', 'do not ask')
    .action(async (id: string | undefined, options: ChangeOptions, command: Command) => {
      await inChange(command, async (session) => {
        const paymentId = await pickPayment(session, id)
        const { reference } = options
        const terms = { ...(await changeOf(options)), ...(reference === undefined ? {} : { reference }) }
        if (!options.dryRun) await goAhead(options.yes, `Give money of payment ${paymentId} back?`)
        const [{ refundPayment }, { presentRefund }] = await Promise.all([
          import('#operations/refund-payment.ts'),
          import('#payments/present.ts'),
        ])
        const made = await refundPayment(session.ctx, session.caller, { payment_id: paymentId, ...terms })
        session.out.result(presentRefund(made), () =>
          session.out.line(`refund ${made.id} of ${made.amount} is recorded: ${made.status}`),
        )
      })
    })
  withDryRun(refund)
  withExamples(
    refund,
    'payment refund 12 --reference FT26124 --note "sent by mistake"',
    'payment refund 12 --reference FT26124 --note "sent by mistake" --dry-run',
  )
}

function registerClose(payment: Command): void {
  const close = payment
    .command('close [payment_id]')
    .description('take a payment that needs nothing off the list of money that waits')
    .option('--note <text>', 'why; kept in the audit log')
    .option('--yes', 'do not ask')
    .action(async (id: string | undefined, options: ChangeOptions, command: Command) => {
      await inChange(command, async (session) => {
        const paymentId = await pickPayment(session, id)
        const note = await required(options.note, '--note', 'Why? (kept in the audit log)')
        if (!options.dryRun) await goAhead(options.yes, `Close payment ${paymentId}?`)
        const [{ closePayment }, { presentPayment }] = await Promise.all([
          import('#operations/close-payment.ts'),
          import('#payments/present.ts'),
        ])
        const closed = await performAs(session, closePayment, { payment_id: paymentId, note }, null)
        session.out.result(presentPayment(closed), () => session.out.line(`payment ${paymentId} is closed`))
      })
    })
  withDryRun(close)
  withExamples(close, 'payment close 12 --note "interest of the bank"', 'payment close 12 --note "interest" --dry-run')
}

async function changeOf({ amount, note }: ChangeOptions): Promise<{ note: string; amount?: number }> {
  const why = await required(note, '--note', 'Why? (kept in the audit log)')
  return { note: why, ...(amount === undefined ? {} : { amount: await numberOf(amount, '--amount') }) }
}

/** The id; on a terminal one of the payments that wait where it is missing. */
async function pickPayment({ ctx }: Session, id: string | undefined): Promise<number> {
  const text = await requiredChoice(id, '<payment_id>', 'Which payment?', async () => {
    const { listPayments } = await import('#payments/list-payments.ts')
    const { rows } = await listPayments(ctx, { appId: null, waiting: true }, { limit: '100' })
    return rows.map((row) => ({ value: String(row.id), name: paymentName(row) }))
  })
  return numberOf(text, '<payment_id>')
}

function paymentName({ id, provider, amount, currency, flagReason, reference }: ListedPayment): string {
  return `${id}: ${amount ?? '?'} ${currency} by ${provider}, ${flagReason ?? 'unmatched'}, ${reference}`
}
