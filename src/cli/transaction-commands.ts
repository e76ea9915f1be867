import type { Command } from 'commander'
import type { Resolution } from '#decisions/resolution.ts'
import { counted } from '#shared/counted.ts'
import { englishMoney } from '#shared/money.ts'
import { askNote, goAhead, isTerminal, required, requiredChoice, type Choice } from './ask.ts'
import { appCell, methodCells, minuteCell, moneyCell, receivedCell, standingCell } from './cells.ts'
import { printEffects } from './change.ts'
import { withExamples } from './examples.ts'
import { readMoneyFilter, withMoneyFilter, type MoneyFilterOptions } from './money-filter.ts'
import { numberOf } from './number-of.ts'
import { oneOf } from './one-of.ts'
import { gatherRows, readLimit, withPages, type PageOptions } from './pages.ts'
import { banner, inSession, withSandbox, type Session } from './session.ts'
import { listOf } from './table.ts'
import { UsageError } from './usage-error.ts'

/** `transaction …` and `ledger …`: payments, and those that need review. */
export function registerTransactionCommands(program: Command): void {
  const transaction = program.command('transaction').description('payments, and those that need review')
  registerList(transaction)
  registerShow(transaction)
  registerResolve(transaction)
  registerLedger(program)
}

const STATUSES = ['pending', 'completed', 'refunded', 'void'] as const

interface ListOptions extends PageOptions, MoneyFilterOptions {
  readonly app?: string
  readonly flagged?: boolean
  readonly status?: string
  readonly externalRef?: string
  readonly limit: string
}

function registerList(transaction: Command): void {
  const list = transaction
    .command('list')
    .description('transactions, newest first')
    .option('--app <app>', 'only of this app')
    .option('--flagged', 'only those that need review')
    .option('--status <status>', 'pending, completed, refunded or void', oneOf(...STATUSES))
    .option('--external-ref <ref>', 'only of this end user')
    .action(async (options: ListOptions, command: Command) => {
      const limit = readLimit(options.limit)
      await inSession(command, async (session) => {
        const [{ listTransactions }, { presentTransaction }] = await Promise.all([
          import('#transactions/list-transactions.ts'),
          import('#transactions/present.ts'),
        ])
        const app = options.app === undefined ? null : await session.app(options.app)
        const filter = {
          status: options.status,
          external_ref: options.externalRef,
          flagged: options.flagged ? 'true' : undefined,
        }
        const money = await readMoneyFilter(options)
        const rows = await gatherRows(session.out, limit, options, (page) =>
          listTransactions(session.ctx, app?.id ?? null, { ...filter, ...page }, money),
        )
        const shown = await withSandbox(
          session.ctx,
          rows.map((row) => ({ app_id: row.appId, ...presentTransaction(row) })),
        )
        const methodCell = await methodCells()
        session.out.result(shown, () => {
          if (app) session.out.line(banner(app))
          session.out.table({
            ...listOf(shown, [
              ['id', (row) => row.transaction_id],
              ['opened (UTC)', (row) => minuteCell(row.created_at)],
              !app && ['app', appCell],
              ['external_ref', (row) => row.external_ref],
              ['plan', (row) => row.plan_ref],
              ['method', (row) => methodCell(row.provider_code)],
              ['amount', receivedCell],
              ['status', (row) => standingCell(row.status, row.flag_reason)],
            ]),
            none: options.flagged ? 'Nothing needs review.' : 'no transactions',
            optional: ['plan'],
            codes: ['method', 'status'],
            right: ['id', 'amount'],
          })
        })
      })
    })
  withMoneyFilter(list, 'opened')
  withPages(list)
  withExamples(
    list,
    'transaction list --flagged',
    'transaction list --app 1 --status pending',
    'transaction list --since 2026-10-01 --until 2026-10-31 --method bank_transfer',
  )
}

function registerShow(transaction: Command): void {
  const show = transaction
    .command('show [id]')
    .description('the timeline of a payment: checkout, money, events, webhooks, mails, audit')
    .action(async (id: string | undefined, _options: object, command: Command) => {
      await inSession(command, async (session) => {
        const transactionId = await pickTransaction(session, id)
        const [{ getTransactionTimeline }, { printTimeline }] = await Promise.all([
          import('#support/transaction-timeline.ts'),
          import('./transaction-timeline.ts'),
        ])
        printTimeline(session.out, await getTransactionTimeline(session.ctx, transactionId))
      })
    })
  withExamples(show, 'transaction show 17', 'transaction show 17 --json')
}

interface ResolveOptions {
  readonly action?: Resolution
  readonly note?: string
  readonly reference?: string
  readonly amount?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
}

const ACTIONS: readonly Choice<Resolution>[] = [
  { value: 'refund', name: 'refund: give the money back' },
  { value: 'complete', name: 'complete: accept what was received and apply it' },
  { value: 'dismiss', name: 'dismiss: clear the flag, change nothing else' },
]

function registerResolve(transaction: Command): void {
  const resolve = transaction
    .command('resolve [id]')
    .description('resolve a transaction that needs review; shows what it will do before it does it')
    .option('--action <action>', 'refund, complete or dismiss', oneOf(...ACTIONS.map(({ value }) => value)))
    .option('--note <text>', 'why; kept in the audit log')
    .option('--amount <n>', 'of a refund: a part of the money, in the smallest unit of its currency')
    .option('--reference <reference>', 'of your own transfer, if money is refunded manually')
    .option('--dry-run', 'only show what it would do')
    .option('--yes', 'do not ask')
    .action(async (id: string | undefined, options: ResolveOptions, command: Command) => {
      await inSession(command, async (session) => resolveOne(session, id, options))
    })
  withExamples(
    resolve,
    'transaction resolve 17 --action complete --note "short by the transfer fee" --dry-run',
    'transaction resolve 17 --action refund --reference FT26123 --note "paid twice"',
    'transaction resolve 17 --action refund --amount 30000 --note "a third of it"',
  )
}

async function resolveOne(session: Session, id: string | undefined, options: ResolveOptions): Promise<void> {
  const [{ previewResolution, resolveTransaction }, { presentTransaction }] = await Promise.all([
    import('#decisions/resolve-transaction.ts'),
    import('#transactions/present.ts'),
  ])
  const { ctx, out, caller } = session
  const transactionId = await pickTransaction(session, id)
  const amount = options.amount === undefined ? {} : { amount: await numberOf(options.amount, '--amount') }
  const action = await pickAction(session, transactionId, options.action, amount.amount)
  if (options.amount !== undefined && action !== 'refund') throw new UsageError('--amount is for --action refund')
  // A script fails at once without a note. On a terminal the note is asked for once the action is known to be possible.
  if (!isTerminal() && !options.dryRun) await askNote(options.note)
  const reference = action === 'refund' ? await refundReference(session, transactionId, options) : options.reference
  const terms = { ...amount, ...(reference === undefined ? {} : { reference }) }
  const preview = await previewResolution(ctx, caller, { transactionId, action, ...terms })
  if (options.dryRun) {
    printEffects(out, presentTransaction(preview.transaction), preview.effects)
    return
  }
  if (process.stdin.isTTY) preview.effects.forEach((effect) => out.hint(`- ${effect}`))
  const note = await askNote(options.note)
  await goAhead(options.yes, `Resolve transaction ${transactionId}?`)
  const resolved = await resolveTransaction(ctx, caller, { transactionId, action, note, ...terms })
  const { refundsOf } = await import('#payments/list-payments.ts')
  const refunds = action === 'refund' ? await refundsOf(ctx, transactionId) : []
  const { outcomeOf } = await import('#support/outcome-of.ts')
  const outcome = action === 'complete' ? await outcomeOf(ctx, transactionId) : null
  out.result({ ...presentTransaction(resolved), ...(action === 'refund' ? { refunds } : {}) }, () => {
    out.line(
      `transaction ${resolved.id} is ${resolved.status}, ${resolved.flagReason === null ? 'not flagged' : `flagged ${resolved.flagReason}`}`,
    )
    if (outcome !== null) out.line(outcome)
    for (const refund of refunds)
      out.line(
        `refund ${refund.refund_id} of ${englishMoney(refund.amount, resolved.currency)} ${refund.status === 'pending' ? 'is pending' : refund.status}`,
      )
  })
}

/** The action; on a terminal it is picked from the possible ones if it is missing. */
async function pickAction(
  { ctx }: Session,
  transactionId: number,
  given: Resolution | undefined,
  amount: number | undefined,
): Promise<Resolution> {
  return requiredChoice(given, '--action', 'Choose an action', async () => {
    const { possibleResolutions } = await import('#decisions/resolve-transaction.ts')
    const possible = await possibleResolutions(ctx, transactionId, amount)
    return ACTIONS.filter(({ value }) => possible.includes(value))
  })
}

/** The reference of a manual refund; on a terminal it is asked for where no provider can refund the money. */
async function refundReference(
  { ctx }: Session,
  transactionId: number,
  { reference, dryRun }: ResolveOptions,
): Promise<string | undefined> {
  if (reference !== undefined || dryRun === true || !isTerminal()) return reference
  const [{ paymentsOf }, { isRefundedByProvider }] = await Promise.all([
    import('#payments/list-payments.ts'),
    import('#providers/engine/refunds.ts'),
  ])
  const payments = await paymentsOf(ctx, transactionId)
  const isManual = payments.some(({ kept, provider }) => kept > 0 && !isRefundedByProvider(provider))
  return isManual ? required(reference, '--reference', 'Reference of your own transfer:') : undefined
}

/** The id; on a terminal it is picked from the flagged transactions if it is missing. */
async function pickTransaction({ ctx }: Session, id: string | undefined): Promise<number> {
  const [{ parseNumericId }, { listTransactions }] = await Promise.all([
    import('#shared/ids.ts'),
    import('#transactions/list-transactions.ts'),
  ])
  const text = await requiredChoice(id, '<id>', 'Which flagged transaction?', async () => {
    const { rows } = await listTransactions(ctx, null, { flagged: 'true', limit: '100' })
    return rows.map((row) => ({
      value: String(row.id),
      name: `${row.id}: ${row.externalRef} ${moneyCell(row.amount, row.currency)} ${row.flagReason ?? ''}`,
    }))
  })
  const transactionId = parseNumericId(text)
  if (transactionId === null) throw new UsageError(`<id> must be a transaction id, not ${text}`)
  return transactionId
}

function registerLedger(program: Command): void {
  const verify = program
    .command('ledger')
    .description('the ledgers')
    .command('verify')
    .description('recompute every period and sum; exit 1 if anything does not add up')
    .option('--app <app>', 'only of this app')
    .action(async (options: { app?: string }, command: Command) => {
      await inSession(command, async (session) => {
        const { verifyLedger } = await import('#transactions/ledger.ts')
        const report = await verifyLedger(
          session.ctx,
          options.app === undefined ? null : (await session.app(options.app)).id,
        )
        session.out.result(report, () => {
          const found = report.faults.length === 1 ? '1 discrepancy' : `${report.faults.length} discrepancies`
          session.out.line(`${counted(report.checked, 'subscription')} checked, ${found}`)
          if (report.faults.length > 0)
            session.out.table({
              head: ['subject', 'discrepancy'],
              rows: report.faults.map(({ subject, fault }) => [subject, fault]),
              none: '',
            })
        })
        if (report.faults.length > 0) process.exitCode = 1
      })
    })
  withExamples(verify, 'ledger verify', 'ledger verify --app 1 --json')
}
