import type { Resolution } from '#decisions/resolution.ts'
import { counted } from '#shared/counted.ts'
import { englishMoney } from '#shared/money.ts'
import { mayDo } from '#operators/role.ts'
import type { ShownTransaction } from '#transactions/store.ts'
import { isTerminal, required, requiredChoice, type Choice } from './ask.ts'
import { appCell, methodCells, minuteCell, moneyCell, receivedCell, standingCell } from './cells.ts'
import { agreeTo, refuseWithoutNote, type Consent } from './change.ts'
import { APP, NOTE, YES, type Commands, type Flags, type Texts } from './declaration.ts'
import { listOfApps, type OfApps } from './list.ts'
import { moneyOptions, readMoneyFilter, type MoneyFilterOptions } from './money-filter.ts'
import { numberOf, pickId } from './number-of.ts'
import { oneOf } from './one-of.ts'
import { neededRole } from './permissions.ts'
import { bannersOf, fail, type Session } from './session.ts'
import { UsageError } from './usage-error.ts'

const STATUSES = ['pending', 'completed', 'refunded', 'void'] as const
const ACTIONS: readonly Choice<Resolution>[] = [
  { value: 'refund', name: 'refund: give the money back' },
  { value: 'complete', name: 'complete: accept what was received and apply it' },
  { value: 'dismiss', name: 'dismiss: clear the flag, change nothing else' },
]

/** `transaction …` and `ledger …`: payments, and those that need review. */
export const commands: Commands = {
  'transaction list': listOfApps({
    isHeaded: true,
    description: 'transactions, newest first',
    options: [
      APP,
      ['--flagged', 'only those that need review'],
      ['--status <status>', 'pending, completed, refunded or void', oneOf(...STATUSES)],
      ['--external-ref <ref>', 'only of this end user'],
      ...moneyOptions('opened'),
    ],
    examples: [
      'transaction list --flagged',
      'transaction list --app 1 --status pending',
      'transaction list --since 2026-10-01 --until 2026-10-31 --method bank_transfer',
    ],
    async page({ ctx, app, options }: OfApps<ListOptions>, query) {
      const { listTransactions } = await import('#transactions/list-transactions.ts')
      const { presentTransaction } = await import('#transactions/present.ts')
      const { presentPage } = await import('#http/list-page.ts')
      const { status, externalRef: external_ref } = options
      const filter = { status, external_ref, flagged: options.flagged ? 'true' : undefined, ...query }
      const found = await listTransactions(ctx, app?.id ?? null, filter, await readMoneyFilter(options))
      return presentPage(found, (row) => ({ app_id: row.appId, ...presentTransaction(row) }))
    },
    async columns({ app }) {
      const methodCell = await methodCells()
      return [
        ['id', (row) => row.transaction_id],
        ['opened (UTC)', (row) => minuteCell(row.created_at)],
        !app && ['app', appCell],
        ['external_ref', (row) => row.external_ref],
        ['plan', (row) => row.plan_ref],
        ['method', (row) => methodCell(row.provider_code)],
        ['amount', receivedCell],
        ['status', (row) => standingCell(row.status, row.flag_reason)],
      ]
    },
    none: ({ options }) => (options.flagged ? 'Nothing needs review.' : 'no transactions'),
    optional: ['plan'],
    lastOptional: ['method'],
    codes: ['method', 'status'],
    right: ['id', 'amount'],
  }),
  'transaction show [id]': {
    description: 'the timeline of a payment: checkout, money, events, webhooks, mails, audit',
    examples: ['transaction show 17', 'transaction show 17 --json'],
    async run(session, [id]) {
      const transactionId = await pickTransaction(session, id)
      const { getTransactionTimeline } = await import('#support/transaction-timeline.ts')
      const { printTimeline } = await import('./transaction-timeline.ts')
      printTimeline(session.out, await getTransactionTimeline(session.ctx, transactionId))
    },
  },
  'transaction resolve [id]': {
    description: 'resolve a transaction that needs review; shows what it will do before it does it',
    options: [
      ['--action <action>', 'refund, complete or dismiss', oneOf(...ACTIONS.map(({ value }) => value))],
      NOTE,
      ['--amount <n>', 'of a refund: a part of the money, in the smallest unit of its currency'],
      ['--reference <reference>', 'of your own transfer, if money is refunded manually'],
      ['--dry-run', 'only show what it would do'],
      YES,
    ],
    examples: [
      'transaction resolve 17 --action complete --note "short by the transfer fee" --dry-run',
      'transaction resolve 17 --action refund --reference FT26123 --note "paid twice"',
      'transaction resolve 17 --action refund --amount 30000 --reference FT26124 --note "a third"',
    ],
    run: (session, [id], options: ResolveOptions) => resolveOne(session, id, options),
  },
  'ledger verify': {
    description: 'recompute every period and sum; exit 1 if anything does not add up',
    options: [APP],
    examples: ['ledger verify', 'ledger verify --app 1 --json'],
    async run(session, _args, options: { app?: string }) {
      const { verifyLedger } = await import('#ledger/verify-ledger.ts')
      const app = options.app === undefined ? null : await session.pickApp(options.app)
      const report = await verifyLedger(session.ctx, app && app.id)
      const rows = report.faults.map(({ subject, fault }) => [subject, fault])
      session.out.result(report, () => {
        const found = rows.length === 1 ? '1 discrepancy' : `${rows.length} discrepancies`
        session.out.line(`${counted(report.checked, 'subscription')} checked, ${found}`)
        session.out.table({ head: ['subject', 'discrepancy'], rows })
      })
      if (report.faults.length > 0) await fail('invalid_request', 'the ledger does not add up')
    },
  },
}

type ListOptions = MoneyFilterOptions & Texts<'status' | 'externalRef'> & Flags<'flagged'>

type ResolveOptions = Consent & Texts<'reference' | 'amount'> & { readonly action?: Resolution }

async function resolveOne(session: Session, id: string | undefined, options: ResolveOptions): Promise<void> {
  const { previewResolution, resolveTransaction } = await import('#decisions/resolve-transaction.ts')
  const { presentTransaction } = await import('#transactions/present.ts')
  const { ctx, caller } = session
  const transactionId = await pickTransaction(session, id)
  const amount = options.amount === undefined ? {} : { amount: numberOf(options.amount, '--amount') }
  const action = await pickAction(session, transactionId, options.action, amount.amount)
  if (action !== 'refund' && (options.amount ?? options.reference) !== undefined)
    throw new UsageError('--amount and --reference are for --action refund')
  await refuseWithoutNote(options)
  const reference = action === 'refund' ? await refundReference(session, transactionId, options) : undefined
  const terms = { transactionId, action, ...amount, ...(reference === undefined ? {} : { reference }) }
  const { seen, transaction, effects } = await previewResolution(ctx, caller, terms)
  const banners = await bannersOf(ctx, [transaction.appId])
  const preview = { banners, answer: presentTransaction(transaction), effects }
  const note = await agreeTo(session, options, `Resolve transaction ${transactionId}?`, () => preview)
  if (note !== null) await printResult(session, action, await resolveTransaction(ctx, caller, { ...terms, note, seen }))
}

async function printResult({ ctx, out }: Session, action: Resolution, resolved: ShownTransaction): Promise<void> {
  const { presentTransaction } = await import('#transactions/present.ts')
  const { refundsOf } = await import('#payments/list-payments.ts')
  const { outcomeOf } = await import('#support/outcome-of.ts')
  const { id, status, flagReason, currency } = resolved
  const refunds = action === 'refund' ? await refundsOf(ctx, id) : []
  const outcome = action === 'complete' ? await outcomeOf(ctx, id) : null
  out.result({ ...presentTransaction(resolved), ...(action === 'refund' ? { refunds } : {}) }, () => {
    out.line(`transaction ${id} is ${status}, ${flagReason === null ? 'not flagged' : `flagged ${flagReason}`}`)
    if (outcome !== null) out.line(outcome)
    for (const refund of refunds) {
      const state = refund.status === 'pending' ? 'is pending' : refund.status
      out.line(`refund ${refund.refund_id} of ${englishMoney(refund.amount, currency)} ${state}`)
    }
  })
}

/** The action; on a terminal it is picked from the possible ones if it is missing. */
async function pickAction(
  { ctx, who }: Session,
  transactionId: number,
  given: Resolution | undefined,
  amount: number | undefined,
): Promise<Resolution> {
  return requiredChoice(given, '--action', 'Choose an action', async () => {
    const { possibleResolutions } = await import('#decisions/possible-resolutions.ts')
    const possible = await possibleResolutions(ctx, transactionId, amount)
    const isAllowed = (action: Resolution): boolean => mayDo(who.role, neededRole('transaction resolve', { action }))
    return ACTIONS.filter(({ value }) => possible.includes(value) && isAllowed(value))
  })
}

/** The reference of a manual refund; on a terminal it is asked for where the money goes back by a transfer. */
async function refundReference(
  { ctx }: Session,
  transactionId: number,
  { reference, dryRun }: ResolveOptions,
): Promise<string | undefined> {
  if (reference !== undefined || dryRun === true || !isTerminal()) return reference
  const { listPaymentsOf } = await import('#payments/store.ts')
  const { refundWayOf } = await import('#providers/engine/refunds.ts')
  const payments = await listPaymentsOf(ctx.db, transactionId)
  const isManual = payments.some(({ kept, provider }) => kept > 0 && refundWayOf(provider) === 'transfer')
  return isManual ? required(reference, '--reference', 'Reference of your own transfer:') : undefined
}

/** The id; on a terminal it is picked from the flagged transactions if it is missing. */
function pickTransaction({ ctx }: Session, given: string | undefined): Promise<number> {
  return pickId(given, {
    question: 'Which flagged transaction?',
    async choices() {
      const { listTransactions } = await import('#transactions/list-transactions.ts')
      const { rows } = await listTransactions(ctx, null, { flagged: 'true', limit: '100' })
      return rows.map(({ id, externalRef, amount, currency, flagReason }) => ({
        id,
        words: `${externalRef} ${moneyCell(amount, currency)} ${flagReason ?? ''}`,
      }))
    },
    refusal: (text) => `<id> must be a transaction id, not ${text}`,
  })
}
