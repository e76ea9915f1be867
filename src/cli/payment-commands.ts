import type { Command } from 'commander'
import type { PresentedPayment } from '#payments/list-payments.ts'
import type { ListedPayment } from '#payments/store.ts'
import { goAhead, required, requiredChoice } from './ask.ts'
import { appCell, methodCells, minuteCell, moneyCell, stateCell } from './cells.ts'
import { inChange, noteFor, withDryRun } from './change.ts'
import { Coloured } from './coloured.ts'
import { withExamples } from './examples.ts'
import { readMoneyFilter, withMoneyFilter, type MoneyFilterOptions } from './money-filter.ts'
import { numberOf } from './number-of.ts'
import { gatherRows, readLimit, withPages, type PageOptions } from './pages.ts'
import { banner, bannerOf, inSession, performAs, withSandbox, type Session } from './session.ts'
import { listOf } from './table.ts'

/** `payment …`: money that arrived, what it was booked for, and what of it waits for a decision. */
export function registerPaymentCommands(program: Command): void {
  const payment = program.command('payment').description('money that arrived, and what still needs a decision')
  registerList(payment)
  registerShow(payment)
  registerMove(payment)
  registerRefund(payment)
  registerClose(payment)
}

interface ListOptions extends PageOptions, MoneyFilterOptions {
  readonly app?: string
  readonly unallocated?: boolean
  readonly limit: string
}

function registerList(payment: Command): void {
  const list = payment
    .command('list')
    .description('payments, newest first')
    .option('--app <app>', 'only of this app')
    .option('--unallocated', 'only those with money that needs review: booked for nothing, or flagged')
    .action(async (options: ListOptions, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, async (session) => {
        const { listPayments, presentListedPayment } = await import('#payments/list-payments.ts')
        const app = options.app === undefined ? null : await session.app(options.app)
        const filter = { appId: app?.id ?? null, waiting: options.unallocated === true }
        const money = await readMoneyFilter(options)
        const rows = await gatherRows(session.out, limit, options, (page) =>
          listPayments(session.ctx, { ...filter, ...money }, page),
        )
        const shown = await withSandbox(session.ctx, rows.map(presentListedPayment))
        const methodCell = await methodCells()
        session.out.result(shown, () => {
          if (app) session.out.line(banner(app))
          session.out.table({
            ...listOf(shown, [
              ['id', (row) => row.payment_id],
              ['received (UTC)', (row) => minuteCell(row.received_at)],
              !app && ['app', appCell],
              ['method', (row) => methodCell(row.provider_code)],
              ['amount', (row) => moneyCell(row.amount, row.currency)],
              shown.some(({ reason }) => reason !== null) && ['needs review', reviewCell],
              ['for', (row) => row.transaction_id],
              ['reference', (row) => row.reference],
            ]),
            none: options.unallocated ? 'No money needs review.' : 'no payments',
            optional: ['reference'],
            codes: ['method', 'needs review'],
            right: ['id', 'amount', 'for'],
          })
        })
      })
    })
  withMoneyFilter(list, 'received')
  withPages(list)
  withExamples(
    list,
    'payment list --unallocated',
    'payment list --app 1 --json',
    'payment list --since 2026-10-01 --method payos',
  )
}

/** Why a payment waits for a decision, with the amount if only a part of it does. */
function reviewCell({ amount, amount_unapplied: waiting, currency, reason }: PresentedPayment): Coloured | null {
  if (reason === null) return null
  return new Coloured(waiting === amount ? reason : `${moneyCell(waiting, currency)} ${reason}`, 'red')
}

function registerShow(payment: Command): void {
  const show = payment
    .command('show [id]')
    .description('what a payment was booked for and by whom, what was refunded, and which bank mails report it')
    .action(async (id: string | undefined, _options: object, command: Command) => {
      await inSession(command, async (session) => {
        const paymentId = await pickPayment(session, id)
        const { showPayment } = await import('#decisions/show-payment.ts')
        const {
          payment: fields,
          allocations,
          refunds,
          bankMails,
          decisions,
        } = await showPayment(session.ctx, paymentId)
        const app = fields.app_id === null ? null : await bannerOf(session.ctx, fields.app_id)
        session.out.result({ ...fields, allocations, refunds, bank_mail_ids: bankMails, decisions }, () => {
          const { out } = session
          const money = (amount: number | null): string => moneyCell(amount, fields.currency)
          const left = { amount: money(fields.amount), amount_left: money(fields.amount_left) }
          if (app !== null) out.line(app)
          out.fields({ ...fields, ...left, bank_mails: bankMails.join(' ') || null })
          out.table({
            head: ['at (UTC)', 'transaction', 'amount', 'cause', 'who', 'note'],
            rows: allocations.map((row) => [
              minuteCell(row.at),
              row.transaction_id,
              money(row.amount),
              row.cause,
              row.actor,
              row.note,
            ]),
            none: 'booked for no transaction',
          })
          out.table({
            head: ['refund', 'at (UTC)', 'amount', 'status', 'reference', 'note'],
            rows: refunds.map((row) => [
              row.refund_id,
              minuteCell(row.created_at),
              money(row.amount),
              stateCell(row.status),
              row.reference,
              row.failure ?? row.note,
            ]),
            none: 'nothing was refunded',
          })
          if (decisions.length > 0)
            out.table({
              head: ['at (UTC)', 'who', 'action', 'note'],
              rows: decisions.map((row) => [minuteCell(row.at), row.actor, row.action, row.note]),
              none: '',
            })
        })
      })
    })
  withExamples(show, 'payment show 12', 'payment show 12 --json')
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
    .description('book money for the transaction it was meant for')
    .option('--amount <n>', 'a part of it, in the smallest unit; required if the amount is unknown')
    .option('--note <text>', 'why; kept in the audit log')
    .option('--yes', 'do not ask')
    .action(
      async (id: string | undefined, transaction: string | undefined, options: ChangeOptions, command: Command) => {
        await inChange(command, async (session) => {
          const paymentId = await pickPayment(session, id)
          const named = await required(transaction, '<transaction_id>')
          const transactionId = await numberOf(named, '<transaction_id>')
          const { movePayment } = await import('#decisions/move-payment.ts')
          const amount = await amountOf(options)
          const change = ({ ctx, caller }: Session, note: string) =>
            movePayment(ctx, caller, { payment_id: paymentId, transaction_id: transactionId, note, ...amount })
          const note = await noteFor(session, options.note, change)
          if (!options.dryRun)
            await goAhead(options.yes, `Book money of payment ${paymentId} for transaction ${transactionId}?`)
          const moved = await change(session, note)
          const money = await moneyOf(session, paymentId, moved.amount)
          const { outcomeOf } = await import('#support/outcome-of.ts')
          const outcome = options.dryRun ? moved.status : await outcomeOf(session.ctx, transactionId)
          session.out.result(moved, () => {
            session.out.line(`${money} of payment ${paymentId} is booked for transaction ${transactionId}`)
            session.out.line(outcome)
          })
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
    .description('refund money that is not booked for a transaction')
    .option('--amount <n>', 'a part of it, in the smallest unit; required if the amount is unknown')
    .option('--reference <reference>', 'of your own transfer, if money is refunded manually')
    .option('--note <text>', 'why; kept in the audit log')
    .option('--yes', 'do not ask')
    .action(async (id: string | undefined, options: ChangeOptions, command: Command) => {
      await inChange(command, async (session) => {
        const paymentId = await pickPayment(session, id)
        const [{ refundPayment }, { presentRefund }] = await Promise.all([
          import('#decisions/refund-payment.ts'),
          import('#payments/present.ts'),
        ])
        const reference = options.reference === undefined ? {} : { reference: options.reference }
        const terms = { ...(await amountOf(options)), ...reference }
        const change = ({ ctx, caller }: Session, note: string) =>
          refundPayment(ctx, caller, { payment_id: paymentId, note, ...terms })
        const note = await noteFor(session, options.note, change)
        if (!options.dryRun) await goAhead(options.yes, `Give money of payment ${paymentId} back?`)
        const made = await change(session, note)
        const money = await moneyOf(session, paymentId, made.amount)
        session.out.result(presentRefund(made), () =>
          session.out.line(`refund ${made.id} of ${money} is recorded: ${made.status}`),
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
    .description('take a payment that needs no action off the list of unallocated money')
    .option('--note <text>', 'why; kept in the audit log')
    .option('--yes', 'do not ask')
    .action(async (id: string | undefined, options: ChangeOptions, command: Command) => {
      await inChange(command, async (session) => {
        const paymentId = await pickPayment(session, id)
        const [{ closePayment }, { presentPayment }] = await Promise.all([
          import('#decisions/close-payment.ts'),
          import('#payments/present.ts'),
        ])
        const change = (target: Session, note: string) =>
          performAs(target, closePayment, { payment_id: paymentId, note }, null)
        const note = await noteFor(session, options.note, change)
        if (!options.dryRun) await goAhead(options.yes, `Close payment ${paymentId}?`)
        const closed = await change(session, note)
        session.out.result(presentPayment(closed), () => session.out.line(`payment ${paymentId} is closed`))
      })
    })
  withDryRun(close)
  withExamples(close, 'payment close 12 --note "interest of the bank"', 'payment close 12 --note "interest" --dry-run')
}

async function amountOf({ amount }: ChangeOptions): Promise<{ amount?: number }> {
  return amount === undefined ? {} : { amount: await numberOf(amount, '--amount') }
}

/** The id; on a terminal it is picked from the payments that wait if it is missing. */
async function pickPayment({ ctx }: Session, id: string | undefined): Promise<number> {
  const text = await requiredChoice(id, '<payment_id>', 'Which payment?', async () => {
    const { listPayments } = await import('#payments/list-payments.ts')
    const { rows } = await listPayments(ctx, { appId: null, waiting: true }, { limit: '100' })
    return rows.map((row) => ({ value: String(row.id), name: paymentName(row) }))
  })
  return numberOf(text, '<payment_id>')
}

function paymentName({ id, provider, amount, currency, flagReason, reference }: ListedPayment): string {
  return `${id}: ${moneyCell(amount, currency)} by ${provider}, ${flagReason ?? 'unmatched'}, ${reference}`
}

/** A part of a payment, in the payment's currency. */
async function moneyOf({ ctx }: Session, paymentId: number, amount: number): Promise<string> {
  const { showPayment } = await import('#decisions/show-payment.ts')
  return moneyCell(amount, (await showPayment(ctx, paymentId)).payment.currency)
}
