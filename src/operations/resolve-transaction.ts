import { appNow } from '#apps/app-time.ts'
import { getApp } from '#apps/store.ts'
import type { Context, Rehearsal } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { bankPageProvider, providerOfCode } from '#providers/providers.ts'
import { closeOpenSessions } from '#providers/reconcile-payments.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { formatTimestampOrNull, wholeSeconds } from '#shared/time.ts'
import { decidePayment } from '#subscriptions/decide-payment.ts'
import type { PaymentEffect } from '#subscriptions/lifecycle.ts'
import { findSubscriptionOfEndUser, lockEndUser } from '#subscriptions/store.ts'
import { applySuperseded, completeTransaction } from '#transactions/complete-transaction.ts'
import { presentTransaction } from '#transactions/present.ts'
import { quotedPayment } from '#transactions/quoted-payment.ts'
import {
  getTransaction,
  listPayments,
  markPaymentRefunded,
  updateTransactionIn,
  type Payment,
  type Transaction,
} from '#transactions/store.ts'
import { endsRefunded, isSuperseded, keepsPeriod, paymentsToRefund, refusalOf, type Resolution } from './resolution.ts'

export interface ResolveInput {
  readonly transactionId: number
  readonly action: Resolution
  /** Why; kept in the audit log. */
  readonly note: string
  /** The bank's reference of a refund made by hand. */
  readonly reference?: string
}

/** What a resolution would do, shown before it is confirmed. */
export interface ResolutionPreview {
  readonly transaction: Transaction
  /** Sentences for the operator. */
  readonly effects: readonly string[]
}

/** Says what `resolveTransaction` would do; throws as it would. */
export async function previewResolution(
  ctx: Context,
  { transactionId, action, reference }: Omit<ResolveInput, 'note'>,
): Promise<ResolutionPreview> {
  const transaction = await getTransaction(ctx.db, transactionId)
  const payments = await listPayments(ctx.db, transaction.id)
  refuse(transaction, action, payments)
  switch (action) {
    case 'complete':
      return { transaction, effects: await effectsOfCompletion(ctx, transaction) }
    case 'dismiss':
      return { transaction, effects: [`the flag ${transaction.flagReason ?? ''} is cleared; nothing else changes`] }
    case 'refund':
      return { transaction, effects: effectsOfRefund(transaction, payments, reference) }
  }
}

/**
 * Settles a transaction that needs an operator (contract 6): `refund` gives money back, through the provider where it can, otherwise recorded
 * with the reference of a refund made by hand; `complete` accepts what was received and applies it; `dismiss` clears the flag.
 * Returns the transaction as it is then. Throws `not_found`, `invalid_request`, `provider_error`.
 */
export async function resolveTransaction(ctx: Context, actor: string, input: ResolveInput): Promise<Transaction> {
  const transaction = await getTransaction(ctx.db, input.transactionId)
  if (input.note.trim() === '') throw invalidField('note', 'must say why')
  const payments = await listPayments(ctx.db, transaction.id)
  refuse(transaction, input.action, payments)
  switch (input.action) {
    case 'complete':
      await complete(ctx, actor, transaction, input)
      await closeOpenSessions(ctx, transaction.id)
      break
    case 'dismiss':
      await settle(ctx, actor, transaction, input, [], { status: transaction.status, resolution: 'dismissed' })
      break
    case 'refund':
      await refund(ctx, actor, transaction, input, payments)
  }
  return getTransaction(ctx.db, transaction.id)
}

function refuse(transaction: Transaction, action: Resolution, payments: readonly Payment[]): void {
  const refusal = refusalOf(transaction, action, payments)
  if (refusal !== null) throw new AppError('invalid_request', `transaction ${transaction.id}: ${refusal}`)
}

/** What a rehearsal of the completion does: there is no second copy of the rules that could say something else. */
async function effectsOfCompletion(ctx: Context, transaction: Transaction): Promise<string[]> {
  const rehearsal: Rehearsal = { changes: [], events: [] }
  const current = await findSubscriptionOfEndUser(ctx.db, transaction.endUserId)
  const input = { transactionId: transaction.id, action: 'complete', note: '' } as const
  const after = await complete({ ...ctx, rehearsal }, '', transaction, input)
  const accepted = `accepts ${transaction.amountReceived} of ${transaction.amount} ${transaction.currency} as full payment`
  const quote = quotedPayment(transaction)
  if (!quote) return [accepted, 'the app is told transaction.completed']
  if (after.flagReason !== null) return [accepted, `cannot be applied, stays flagged: ${after.flagReason}`]
  const updated = rehearsal.events.find(({ event_type: type }) => type === 'subscription.updated')
  const end = (updated?.data as { current_period_end?: string | null } | undefined)?.current_period_end
  const before = current ? (formatTimestampOrNull(current.currentPeriodEnd) ?? 'lifetime') : 'no subscription'
  const validity = `valid until: ${before} -> ${end ?? 'lifetime'}`
  if (!isSuperseded(transaction)) return [accepted, validity]
  const paidAt = wholeSeconds(appNow(await getApp(ctx.db, transaction.appId), ctx.clock.now()))
  const { effect } = await decidePayment(ctx.db, { ...quote, isAccepted: true }, paidAt)
  return [wordsOf(effect, transaction), validity]
}

function wordsOf({ kind }: PaymentEffect, { planRef, isTrial }: Transaction): string {
  if (kind === 'extended') return 'extends the present period'
  return isTrial ? `starts the trial of ${planRef} now` : `starts a period of ${planRef} now`
}

function effectsOfRefund(
  transaction: Transaction,
  payments: readonly Payment[],
  reference: string | undefined,
): string[] {
  const effects = paymentsToRefund(transaction, payments).map((payment) =>
    providerOfCode(payment.provider)?.refund
      ? `${payment.provider} refunds ${payment.amount} ${payment.currency} to the payer`
      : `${payment.amount} ${payment.currency} by ${payment.provider} is recorded as refunded by hand (${reference ?? 'needs --reference'})`,
  )
  return [
    ...effects,
    ...(endsRefunded(transaction) ? ['the transaction ends as refunded'] : []),
    ...(keepsPeriod(transaction) ? ['the period that was paid for stays'] : []),
  ]
}

async function complete(
  ctx: Context,
  actor: string,
  { id, appId, externalRef }: Transaction,
  input: ResolveInput,
): Promise<Transaction> {
  return inTransaction(ctx, async (tx) => {
    await lockEndUser(tx, appId, externalRef)
    const transaction = await getTransaction(tx, id)
    refuse(transaction, 'complete', [])
    const app = await getApp(tx, appId)
    const providerCode = transaction.providerCode ?? bankPageProvider().code
    if (isSuperseded(transaction)) {
      await applySuperseded(tx, app, transaction, providerCode)
    } else {
      const { amountReceived } = transaction
      await completeTransaction(tx, app, transaction, { providerCode, amountReceived, paidAt: tx.now })
    }
    await updateTransactionIn(tx, id, 'completed', { resolution: 'completed', resolvedAt: appNow(app, tx.now) })
    await audit(tx, actor, transaction, input)
    return getTransaction(tx, id)
  })
}

async function refund(
  ctx: Context,
  actor: string,
  transaction: Transaction,
  input: ResolveInput,
  payments: readonly Payment[],
): Promise<void> {
  const refunded = paymentsToRefund(transaction, payments)
  if (refunded.some(({ provider }) => !providerOfCode(provider)?.refund) && !input.reference) {
    throw invalidField('reference', 'is needed for money that is refunded by hand: the reference of your transfer')
  }
  const references = new Map<number, string>()
  for (const payment of refunded) references.set(payment.id, await referenceOfRefund(ctx, payment, input.reference))
  const status = endsRefunded(transaction) ? 'refunded' : transaction.status
  await settle(ctx, actor, transaction, input, [...references], { status, resolution: 'refunded' })
}

/** The key is the payment's: a refund that is tried again after a crash is the same refund. */
async function referenceOfRefund(ctx: Context, payment: Payment, byHand: string | undefined): Promise<string> {
  const provider = providerOfCode(payment.provider)
  if (!provider?.refund) return byHand ?? ''
  return (await provider.refund(ctx, payment, `paygate-refund-${payment.id}`)).refundReference
}

/** Clears the flag and writes what was decided, unless the flag or the status has changed since it was looked at. */
async function settle(
  ctx: Context,
  actor: string,
  { id, appId, externalRef, status, flagReason }: Transaction,
  input: ResolveInput,
  refunds: readonly (readonly [number, string])[],
  decision: Pick<Transaction, 'status' | 'resolution'>,
): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    await lockEndUser(tx, appId, externalRef)
    const transaction = await getTransaction(tx, id)
    if (transaction.flagReason !== flagReason)
      throw new AppError('invalid_request', `transaction ${id} was resolved by another meanwhile`)
    for (const [paymentId, reference] of refunds) await markPaymentRefunded(tx, paymentId, reference)
    const now = appNow(await getApp(tx, appId), tx.now)
    const changes = { ...decision, flagReason: null, flaggedAt: null, resolvedAt: now, updatedAt: now }
    if (!(await updateTransactionIn(tx, id, status, changes)))
      throw new AppError('invalid_request', `transaction ${id} has changed: look at it again`)
    await audit(tx, actor, transaction, input)
  })
}

async function audit(
  tx: Tx,
  actor: string,
  before: Transaction,
  { action, note, reference }: ResolveInput,
): Promise<void> {
  const after = await getTransaction(tx, before.id)
  await recordAudit(tx, {
    actor,
    action: `transaction.resolve.${action}`,
    appId: before.appId,
    subject: `transaction ${before.id}`,
    before: presentTransaction(before),
    after: { ...presentTransaction(after), ...(reference ? { reference } : {}) },
    reason: note,
  })
}
