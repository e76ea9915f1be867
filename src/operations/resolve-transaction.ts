import { appNow } from '#apps/app-time.ts'
import { getApp, type App } from '#apps/store.ts'
import type { Context, Rehearsal } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { dismissed, keptOf } from '#payments/balance.ts'
import { listRefundsOfTransaction, type Refund } from '#payments/store.ts'
import { closeOpenSessions } from '#providers/reconcile-payments.ts'
import { bankPageProvider, providerOfCode } from '#providers/providers.ts'
import { isRefundedByProvider, sendRefund } from '#providers/refunds.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { formatTimestampOrNull } from '#shared/time.ts'
import { findApplicationOfTransaction, findSubscriptionOfEndUser } from '#subscriptions/store.ts'
import { changeTransaction, type Decision } from '#transactions/change-transaction.ts'
import { applySuperseded, completeTransaction } from '#transactions/complete-transaction.ts'
import { lockTransactions } from '#transactions/lock-transactions.ts'
import { presentTransaction } from '#transactions/present.ts'
import { orderRefunds, type OrderedRefund } from '#transactions/refund-money.ts'
import { getTransaction, type Transaction } from '#transactions/store.ts'
import { amountToRefund, isSuperseded, keepsPeriod, refusalOf, type Resolution } from './resolution.ts'

export interface ResolveInput {
  readonly transactionId: number
  readonly action: Resolution
  /** Why; kept in the audit log. */
  readonly note: string
  /** Of a refund: a part of what is kept, in the smallest unit. Absent: all that is to be given back. */
  readonly amount?: number
  /** The bank's reference of a refund made manually. */
  readonly reference?: string
}

/** What a resolution would do, shown before it is confirmed. */
export interface ResolutionPreview {
  /** As it is before. */
  readonly transaction: Transaction
  /** Sentences for the operator. */
  readonly effects: readonly string[]
}

/** Says what `resolveTransaction` would do: does it, looks, and takes it back. Throws as it would. */
export async function previewResolution(ctx: Context, input: Omit<ResolveInput, 'note'>): Promise<ResolutionPreview> {
  const rehearsal: Rehearsal = { changes: [], events: [] }
  const { before, effects } = await inTransaction({ ...ctx, rehearsal }, (tx) =>
    resolveIn(tx, { ...input, note: 'a preview' }, ''),
  )
  return { transaction: before, effects }
}

/**
 * Resolves a transaction that needs an operator (contract 6 and 7): `refund` gives a part or all of its money back, through the provider
 * where that makes refunds, otherwise recorded with the reference of a transfer; `complete` accepts what was received and applies it;
 * `dismiss` clears the flag. Returns the transaction as it is then. Throws `not_found`, `invalid_request`, and `provider_error` where a
 * refund was refused, or where nobody knows yet whether it was made.
 */
export async function resolveTransaction(ctx: Context, actor: string, input: ResolveInput): Promise<Transaction> {
  if (input.note.trim() === '') throw invalidField('note', 'must say why')
  const { transactionId, action, amount } = input
  const unsent = action === 'refund' ? await listUnsent(ctx, transactionId) : []
  if (unsent.length > 0 && (amount === undefined || amount === sumOf(unsent))) {
    await sendAll(ctx, unsent, true)
    return getTransaction(ctx.db, transactionId)
  }
  const { ordered } = await inTransaction(ctx, (tx) => resolveIn(tx, input, actor))
  if (action === 'complete') await closeOpenSessions(ctx, transactionId)
  const pending = ordered.map(({ refund }) => refund).filter(({ status }) => status === 'pending')
  await sendAll(ctx, pending, false)
  return getTransaction(ctx.db, transactionId)
}

/** Refunds that were ordered, and of which the provider was never heard: the same command given again goes on with them. */
async function listUnsent(ctx: Context, transactionId: number): Promise<Refund[]> {
  const refunds = await listRefundsOfTransaction(ctx.db, transactionId)
  return refunds.filter(({ status, reference }) => status === 'pending' && reference === null)
}

function sumOf(refunds: readonly Refund[]): number {
  return refunds.reduce((sum, { amount }) => sum + amount, 0)
}

/** One that fails does not keep the others from being sent. */
async function sendAll(ctx: Context, refunds: readonly Refund[], isRepeated: boolean): Promise<void> {
  const faults: string[] = []
  for (const { id } of refunds) {
    const { refund, message } = await sendRefund(ctx, id, isRepeated)
    if (message !== null)
      faults.push(`${message}: refund ${id} stays pending, and billing-cli reconcile goes on with it`)
    else if (refund.status === 'failed')
      faults.push(`refund ${id} was refused (${refund.failure ?? 'no reason given'})`)
  }
  if (faults.length > 0) throw new AppError('provider_error', faults.join('; '))
}

interface Resolved {
  readonly before: Transaction
  readonly effects: readonly string[]
  readonly ordered: readonly OrderedRefund[]
}

/** The one course of a resolution, for the real thing and for its preview. */
async function resolveIn(tx: Tx, input: ResolveInput, actor: string): Promise<Resolved> {
  const { transactionId, action, note } = input
  const before = (await lockTransactions(tx, [transactionId])).get(transactionId)
  if (!before) throw new AppError('not_found', `transaction ${transactionId} not found`)
  const refusal = refusalOf(before, action, input.amount ?? null)
  if (refusal !== null) throw new AppError('invalid_request', `transaction ${transactionId}: ${refusal}`)
  const app = await getApp(tx, before.appId)
  const { after, ...done } = await act(tx, app, before, input, { actor, note })
  await audit(tx, actor, before, after, input)
  return { before, ...done }
}

interface Done extends Omit<Resolved, 'before'> {
  readonly after: Transaction
}

async function act(tx: Tx, app: App, before: Transaction, input: ResolveInput, decision: Decision): Promise<Done> {
  switch (input.action) {
    case 'complete':
      return complete(tx, app, before, decision)
    case 'dismiss': {
      const flag = before.flagReason ?? ''
      const resolution = { resolution: 'dismissed', resolvedAt: appNow(app, tx.now) } as const
      const changes = { ...dismissed(before), flagReason: null, ...resolution }
      const after = await changeTransaction(tx, app, before, changes, decision)
      return { after, ordered: [], effects: [`the flag ${flag} is cleared; nothing else changes`] }
    }
    case 'refund':
      return refund(tx, app, before, input, decision)
  }
}

async function complete(tx: Tx, app: App, before: Transaction, decision: Decision): Promise<Done> {
  const endBefore = await validUntil(tx, before)
  const providerCode = before.providerCode ?? bankPageProvider().code
  const after = isSuperseded(before)
    ? await applySuperseded(tx, app, before, providerCode, decision)
    : await completeTransaction(tx, app, before, { providerCode, paidAt: tx.now }, decision)
  const accepted = isSuperseded(before)
    ? await appliedWords(tx, after)
    : `accepts ${keptOf(before)} of ${before.amount} ${before.currency} as full payment`
  return { after, ordered: [], effects: [accepted, await effectOfCompletion(tx, after, endBefore)] }
}

async function appliedWords(tx: Tx, { id, planRef, isTrial }: Transaction): Promise<string> {
  if ((await findApplicationOfTransaction(tx, id))?.kind === 'extended') return 'extends the present period'
  return isTrial ? `starts the trial of ${planRef} now` : `starts a period of ${planRef} now`
}

async function effectOfCompletion(tx: Tx, after: Transaction, endBefore: string): Promise<string> {
  if (after.flagReason !== null) return `cannot be applied, stays flagged: ${after.flagReason}`
  if (after.mode === 'payment') return 'the app is told transaction.completed'
  return `valid until: ${endBefore} -> ${await validUntil(tx, after)}`
}

async function validUntil(tx: Tx, { endUserId }: Transaction): Promise<string> {
  const subscription = await findSubscriptionOfEndUser(tx, endUserId)
  if (!subscription) return 'no subscription'
  return formatTimestampOrNull(subscription.currentPeriodEnd) ?? 'lifetime'
}

async function refund(tx: Tx, app: App, before: Transaction, input: ResolveInput, decision: Decision): Promise<Done> {
  const amount = amountToRefund(before, input.amount ?? null)
  const reference = input.reference ?? null
  const order = { amount, isSent: isRefundedByProvider, reference, decision }
  const { transaction: after, ordered } = await orderRefunds(tx, app, before, order)
  const effects = [
    ...ordered.map((one) => refundEffect(one)),
    ...(keptOf(after) === 0 ? ['the transaction ends as refunded'] : []),
    ...(keepsPeriod(before) ? ['the period that was paid for stays'] : []),
  ]
  return { after, ordered, effects }
}

function refundEffect({ refund: { amount, reference }, payment: { provider, currency } }: OrderedRefund): string {
  const money = `${amount} ${currency}`
  return (
    providerOfCode(provider)?.refunds?.describe(money) ??
    `${money} by ${provider} is recorded as refunded by hand (${reference ?? ''})`
  )
}

async function audit(
  tx: Tx,
  actor: string,
  before: Transaction,
  after: Transaction,
  { action, note, amount, reference }: ResolveInput,
): Promise<void> {
  await recordAudit(tx, {
    actor,
    action: `transaction.resolve.${action}`,
    appId: before.appId,
    subject: `transaction ${before.id}`,
    before: presentTransaction(before),
    after: {
      ...presentTransaction(after),
      ...(amount === undefined ? {} : { amount_refunded: amount }),
      ...(reference ? { reference } : {}),
    },
    reason: note,
  })
}
