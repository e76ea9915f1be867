import type { ShownPayment } from '#decisions/show-payment.ts'
import type { PresentedPayment } from '#payments/list-payments.ts'
import { required } from './ask.ts'
import { appCell, methodCells, minuteCell, moneyCell, stateCell } from './cells.ts'
import { changeWithNote, type Consent } from './change.ts'
import { Coloured } from './coloured.ts'
import { APP, NOTE, YES, type Commands, type Texts } from './declaration.ts'
import { listOfApps, type OfApps } from './list.ts'
import { moneyOptions, readMoneyFilter, type MoneyFilterOptions } from './money-filter.ts'
import { numberOf, pickId } from './number-of.ts'
import type { Output } from './output.ts'
import { bannersOf, performAs, type Session } from './session.ts'
import { listOf } from './table.ts'

/** `payment …`: money that arrived, what it was booked for, and the part that waits for a decision. */
export const commands: Commands = {
  'payment list': listOfApps({
    isHeaded: true,
    description: 'payments, newest first',
    options: [
      APP,
      ['--unallocated', 'only those with money that needs review: booked for nothing, or flagged'],
      ...moneyOptions('received'),
    ],
    examples: [
      'payment list --unallocated',
      'payment list --app 1 --json',
      'payment list --since 2026-10-01 --method payos',
    ],
    async page({ ctx, app, options }: OfApps<MoneyFilterOptions & { unallocated?: boolean }>, query) {
      const { listPayments, presentListedPayment } = await import('#payments/list-payments.ts')
      const { presentPage } = await import('#http/list-page.ts')
      const money = await readMoneyFilter(options)
      const filter = { appId: app?.id ?? null, waiting: options.unallocated === true, ...money }
      return presentPage(await listPayments(ctx, filter, query), presentListedPayment)
    },
    async columns({ app }, rows) {
      const methodCell = await methodCells()
      return [
        ['id', (row) => row.payment_id],
        ['received (UTC)', (row) => minuteCell(row.received_at)],
        !app && ['app', appCell],
        ['method', (row) => methodCell(row.provider_code)],
        ['amount', (row) => moneyCell(row.amount, row.currency)],
        rows.some(({ reason }) => reason !== null) && ['needs review', reviewCell],
        ['for', (row) => row.transaction_id],
        ['reference', (row) => row.reference],
      ]
    },
    none: ({ options }) => (options.unallocated ? 'No money needs review.' : 'no payments'),
    optional: ['reference'],
    lastOptional: ['method'],
    codes: ['method', 'needs review'],
    right: ['id', 'amount', 'for'],
  }),
  'payment show [payment_id]': {
    description: 'what a payment was booked for and by whom, what was refunded, and which bank mails report it',
    examples: ['payment show 12', 'payment show 12 --json'],
    async run(session, [id]) {
      const paymentId = await pickPayment(session, id)
      const { showPayment } = await import('#decisions/show-payment.ts')
      const found = await showPayment(session.ctx, paymentId)
      const { payment, allocations, refunds, bankMails: bank_mail_ids, decisions } = found
      const banners = await bannersOf(session.ctx, [payment.app_id])
      session.out.result({ ...payment, allocations, refunds, bank_mail_ids, decisions }, () => {
        for (const line of banners) session.out.line(line)
        printPayment(session.out, found)
      })
    },
  },
  'payment move [payment_id] [transaction_id]': {
    description: 'book money for the transaction it was meant for',
    options: [['--amount <n>', 'a part of it, in the smallest unit; required if the amount is unknown'], NOTE, YES],
    examples: [
      'payment move 12 17 --note "used the code of last month"',
      'payment move 12 17 --note "used the code of last month" --dry-run',
    ],
    async change(session, [id, transaction], options: ChangeOptions) {
      const paymentId = await pickPayment(session, id)
      const transactionId = numberOf(await required(transaction, '<transaction_id>'), '<transaction_id>')
      const { movePayment } = await import('#decisions/move-payment.ts')
      const amount = amountOf(options)
      const question = `Book money of payment ${paymentId} for transaction ${transactionId}?`
      const moved = await changeWithNote(session, options, question, ({ ctx, caller }, note) =>
        movePayment(ctx, caller, { payment_id: paymentId, transaction_id: transactionId, note, ...amount }),
      )
      const money = await moneyOf(session, paymentId, moved.amount)
      const { outcomeOf } = await import('#support/outcome-of.ts')
      const outcome = options.dryRun ? moved.status : await outcomeOf(session.ctx, transactionId)
      session.out.result(moved, () => {
        session.out.line(`${money} of payment ${paymentId} is booked for transaction ${transactionId}`)
        session.out.line(outcome)
      })
    },
  },
  'payment refund [payment_id]': {
    description: 'refund money that is not booked for a transaction',
    options: [
      ['--amount <n>', 'a part of it, in the smallest unit; required if the amount is unknown'],
      ['--reference <reference>', 'of your own transfer, if money is refunded manually'],
      NOTE,
      YES,
    ],
    examples: [
      'payment refund 12 --reference FT26124 --note "sent by mistake"',
      'payment refund 12 --reference FT26124 --note "sent by mistake" --dry-run',
    ],
    async change(session, [id], options: ChangeOptions) {
      const paymentId = await pickPayment(session, id)
      const { refundPayment } = await import('#decisions/refund-payment.ts')
      const { presentRefund } = await import('#payments/present.ts')
      const reference = options.reference === undefined ? {} : { reference: options.reference }
      const terms = { ...amountOf(options), ...reference }
      const question = `Give money of payment ${paymentId} back?`
      const made = await changeWithNote(session, options, question, ({ ctx, caller }, note) =>
        refundPayment(ctx, caller, { payment_id: paymentId, note, ...terms }),
      )
      const money = await moneyOf(session, paymentId, made.amount)
      session.out.result(presentRefund(made), () =>
        session.out.line(`refund ${made.id} of ${money} is recorded: ${made.status}`),
      )
    },
  },
  'payment close [payment_id]': {
    description: 'take a payment that needs no action off the list of unallocated money',
    options: [NOTE, YES],
    examples: ['payment close 12 --note "interest of the bank"', 'payment close 12 --note "interest" --dry-run'],
    async change(session, [id], options: ChangeOptions) {
      const paymentId = await pickPayment(session, id)
      const { closePayment } = await import('#decisions/close-payment.ts')
      const { presentPayment } = await import('#payments/present.ts')
      const closed = await changeWithNote(session, options, `Close payment ${paymentId}?`, (target, note) =>
        performAs(target, closePayment, { payment_id: paymentId, note }, null),
      )
      session.out.result(presentPayment(closed), () => session.out.line(`payment ${paymentId} is closed`))
    },
  },
}

/** Why a payment waits for a decision, with the amount if only a part of it does. */
function reviewCell({ amount, amount_unapplied: waiting, currency, reason }: PresentedPayment): Coloured | null {
  if (reason === null) return null
  return new Coloured(waiting === amount ? reason : `${moneyCell(waiting, currency)} ${reason}`, 'red')
}

type ChangeOptions = Consent & Texts<'amount' | 'reference'>

function printPayment(out: Output, { payment, allocations, refunds, bankMails, decisions }: ShownPayment): void {
  const money = (amount: number | null): string => moneyCell(amount, payment.currency)
  const left = { amount: money(payment.amount), amount_left: money(payment.amount_left) }
  out.fields({ ...payment, ...left, bank_mails: bankMails.join(' ') || null })
  out.table({
    ...listOf(allocations, [
      ['at (UTC)', (row) => minuteCell(row.at)],
      ['transaction', (row) => row.transaction_id],
      ['amount', (row) => money(row.amount)],
      ['cause', (row) => row.cause],
      ['who', (row) => row.actor],
      ['note', (row) => row.note],
    ]),
    none: 'booked for no transaction',
  })
  out.table({
    ...listOf(refunds, [
      ['refund', (row) => row.refund_id],
      ['at (UTC)', (row) => minuteCell(row.created_at)],
      ['amount', (row) => money(row.amount)],
      ['status', (row) => stateCell(row.status)],
      ['reference', (row) => row.reference],
      ['note', (row) => row.failure ?? row.note],
    ]),
    none: 'nothing was refunded',
  })
  const decided = decisions.map((row) => [minuteCell(row.at), row.actor, row.action, row.note])
  out.table({ head: ['at (UTC)', 'who', 'action', 'note'], rows: decided })
}

function amountOf({ amount }: ChangeOptions): { amount?: number } {
  return amount === undefined ? {} : { amount: numberOf(amount, '--amount') }
}

/** The id; on a terminal it is picked from the payments that wait if it is missing. */
function pickPayment({ ctx }: Session, given: string | undefined): Promise<number> {
  return pickId(given, {
    name: '<payment_id>',
    question: 'Which payment?',
    async choices() {
      const { listPayments } = await import('#payments/list-payments.ts')
      const { rows } = await listPayments(ctx, { appId: null, waiting: true }, { limit: '100' })
      return rows.map(({ id, provider, amount, currency, flagReason, reference }) => ({
        id,
        words: `${moneyCell(amount, currency)} by ${provider}, ${flagReason ?? 'unmatched'}, ${reference}`,
      }))
    },
  })
}

/** A part of a payment, in the payment's currency. */
async function moneyOf({ ctx }: Session, paymentId: number, amount: number): Promise<string> {
  const { showPayment } = await import('#decisions/show-payment.ts')
  return moneyCell(amount, (await showPayment(ctx, paymentId)).payment.currency)
}
