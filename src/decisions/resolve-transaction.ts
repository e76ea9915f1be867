import { z } from 'zod'
import { refuseAboveLimit, type Grant, type RefundRequest } from '#approvals/refund-limit.ts'
import { orStoreApproval } from '#approvals/request-approval.ts'
import { appNow } from '#apps/app-time.ts'
import { getApp, type App } from '#apps/store.ts'
import { rehearsing, type Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command, type CommandTx } from '#commands/command.ts'
import { noteField, noteOf, type OperatorNote } from '#commands/operator-note.ts'
import { perform } from '#commands/perform.ts'
import { rehearsedEvents } from '#commands/rehearsed-events.ts'
import type { Tx } from '#commands/transaction.ts'
import { balanceOf, balanceAfterDismissal, keptOf } from '#payments/balance.ts'
import { isUnanswered } from '#payments/refund-state.ts'
import { listRefundsOfTransaction, type Refund } from '#payments/store.ts'
import { closeOpenSessions } from '#providers/engine/reconcile-payments.ts'
import { bankPageProvider, providerOfCode } from '#providers/providers.ts'
import { refundWayOf, sendRefunds } from '#providers/engine/refunds.ts'
import { AppError, found } from '#shared/errors.ts'
import { englishMoney } from '#shared/money.ts'
import { integer, text } from '#shared/validate.ts'
import { findLineOfTransaction, findSubscriptionOfEndUser, type Subscription } from '#subscriptions/store.ts'
import { changeTransaction } from '#transactions/change-transaction.ts'
import { applySuperseded, completeTransaction } from '#transactions/complete-transaction.ts'
import { effectOfCompletion, periodEndText } from '#transactions/effect-of-completion.ts'
import { lockTransactions } from '#transactions/lock-transactions.ts'
import { presentStanding } from '#transactions/present.ts'
import { orderRefunds, type OrderedRefund } from '#transactions/order-refunds.ts'
import {
  getTransactionRows,
  getShownTransaction,
  getTransaction,
  type ShownTransaction,
  type Transaction,
} from '#transactions/store.ts'
import { explainRefusal } from './possible-resolutions.ts'
import { amountToRefund, keepsPeriod, RESOLUTIONS, wasSuperseded } from './resolution.ts'

const ResolveInput = z.strictObject({
  transactionId: integer(1),
  action: z.enum(RESOLUTIONS),
  /** Of a refund, in the smallest unit. Absent: everything that can be refunded. */
  amount: integer(1).nullable().default(null),
  /** The bank's reference of a refund made manually. */
  reference: text(191).nullable().default(null),
  note: noteField,
  /** Of the preview that was agreed to; null without one. */
  seen: z.string().nullable().default(null),
})
type Terms = Readonly<z.infer<typeof ResolveInput>>
type Optional = 'amount' | 'reference' | 'seen'
export type ResolveInput = Omit<Terms, Optional> & Partial<Pick<Terms, Optional>>

/** What a resolution would do, shown before it is confirmed. */
export interface ResolutionPreview {
  /** The state that this is true of. */
  readonly seen: string
  /** The transaction before the resolution. */
  readonly transaction: ShownTransaction
  /** Sentences for the operator. */
  readonly effects: readonly string[]
}

/** Shows what `resolveTransaction` would do: runs it and rolls it back. Throws the same errors. */
export async function previewResolution(
  ctx: Context,
  caller: Caller,
  input: Omit<ResolveInput, 'note'>,
): Promise<ResolutionPreview> {
  const transaction = await getShownTransaction(ctx.db, input.transactionId)
  const unanswered = await listUnanswered(ctx, input)
  if (unanswered.length > 0) {
    const effects = unanswered.map((refund) => resendEffect(refund, transaction))
    return { seen: stateOf(transaction, { unanswered }), transaction, effects }
  }
  const { seen, effects, waits } = await rehearse(ctx, caller, input)
  return { seen, transaction, effects: waits === null ? effects : [...effects, waits] }
}

/** What else a preview depends on, beside the transaction. */
interface Shown {
  /** The refunds that the command would send again. */
  readonly unanswered?: readonly Refund[]
  /** The subscription that `complete` would change. */
  readonly subscription?: Subscription | null
}

function stateOf(transaction: Transaction, { unanswered = [], subscription }: Shown): string {
  const { id, status, flagReason } = transaction
  const refundIds = unanswered.map((refund) => refund.id)
  return JSON.stringify([id, status, flagReason, balanceOf(transaction), refundIds, subscription?.revision ?? null])
}

/** Another operator, or more money, may have come first while the preview was read (R138). */
function refuseUnseen(seen: string | null, { id }: Transaction, state: string): void {
  if (seen !== null && seen !== state)
    throw new AppError(
      'invalid_request',
      `transaction ${id}, or its subscription, has changed since this was shown: run the command again`,
    )
}

function resendEffect({ id, amount }: Refund, { currency }: Transaction): string {
  return `refund ${id} of ${englishMoney(amount, currency)}, which the provider never answered, is sent again`
}

async function rehearse(ctx: Context, caller: Caller, input: Omit<ResolveInput, 'note'>): Promise<Resolved> {
  const rehearsed = rehearsing(ctx)
  const done = await perform(rehearsed, caller, resolve, { ...input, note: 'a preview' }, { grant: null })
  return { ...done, effects: [...done.effects, ...rehearsedEvents(rehearsed.rehearsal)] }
}

/**
 * Resolves a transaction that needs an operator (R130 to R135). `refund` refunds all or part of its money, through the provider if it makes
 * refunds; otherwise it records a manual transfer. `complete` accepts what was received and applies it. `dismiss` clears the flag. Returns
 * the changed transaction. Throws `not_found`, `invalid_request` (also if it has changed since it was `seen`), `provider_error` if a refund
 * was refused or its outcome is unknown, and `forbidden` if it waits for another operator. With `grant` it is made by an approval.
 */
export async function resolveTransaction(
  ctx: Context,
  caller: Caller,
  input: ResolveInput,
  grant: Grant | null = null,
): Promise<ShownTransaction> {
  const { transactionId, action, seen = null } = input
  const unanswered = grant ? [] : await listUnanswered(ctx, input)
  if (unanswered.length > 0) {
    const transaction = await getTransaction(ctx.db, transactionId)
    refuseUnseen(seen, transaction, stateOf(transaction, { unanswered }))
    await sendRefunds(ctx, unanswered, { isRepeated: true })
    return getShownTransaction(ctx.db, transactionId)
  }
  const { ordered } = await orStoreApproval(
    ctx,
    caller,
    () => perform(ctx, caller, resolve, input, { grant }),
    async () => (await rehearse(ctx, caller, input)).effects,
  )
  if (ctx.rehearsal) return getShownTransaction(ctx.db, transactionId)
  if (action === 'complete') await closeOpenSessions(ctx, transactionId)
  const pending = ordered.map(({ refund }) => refund).filter(({ status }) => status === 'pending')
  await sendRefunds(ctx, pending, { isRepeated: false })
  return getShownTransaction(ctx.db, transactionId)
}

/** Refunds that were ordered and that the provider never answered: the same command sends them again. Empty for any other command. */
async function listUnanswered(
  ctx: Context,
  { transactionId, action, amount = null }: Omit<ResolveInput, 'note'>,
): Promise<Refund[]> {
  if (action !== 'refund') return []
  const refunds = await listRefundsOfTransaction(ctx.db, transactionId)
  const unanswered = refunds.filter(isUnanswered)
  const sum = unanswered.reduce((total, refund) => total + refund.amount, 0)
  return amount === null || amount === sum ? unanswered : []
}

interface Resolved {
  /** The state before. */
  readonly seen: string
  readonly effects: readonly string[]
  readonly ordered: readonly OrderedRefund[]
  /** In a rehearsal: why it waits for another operator. */
  readonly waits: string | null
}

const resolve = command({
  name: 'transaction.resolve',
  input: ResolveInput,
  async run(tx, terms, { grant }: { readonly grant: Grant | null }): Promise<Resolved> {
    const { transactionId, action, note } = terms
    const transactions = await lockTransactions(tx, [transactionId])
    const before = found(transactions.get(transactionId), `transaction ${transactionId}`)
    const refusal = await explainRefusal(tx, before, action, terms.amount)
    if (refusal !== null && !grant) throw new AppError('invalid_request', `transaction ${transactionId}: ${refusal}`)
    const subscription = action === 'complete' ? await findSubscriptionOfEndUser(tx, before.endUserId) : null
    const state = stateOf(before, { subscription })
    refuseUnseen(terms.seen, before, state)
    const request = action === 'refund' ? refundRequestOf(before, terms) : null
    const waits = request && (await refuseAboveLimit(tx, tx.caller, request, grant))
    const app = await getApp(tx, before.appId)
    const { after, ...done } = await act(tx, app, before, terms, noteOf(tx, note))
    await audit(tx, before, after, { ...terms, grant })
    return { seen: state, ...done, waits }
  },
})

function refundRequestOf(before: Transaction, { amount, reference, note }: Terms): RefundRequest {
  const { id: transactionId, appId, currency, amountRefunded: refundedBefore } = before
  return {
    terms: { of: 'transaction', id: transactionId, amount, reference, note },
    seen: JSON.stringify({ ...presentStanding(before), ...balanceOf(before) }),
    appId,
    transactionId,
    paymentId: null,
    currency,
    refundedBefore,
    amount: amountToRefund(before, amount),
  }
}

interface Done extends Omit<Resolved, 'seen' | 'waits'> {
  readonly after: Transaction
}

async function act(tx: Tx, app: App, before: Transaction, terms: Terms, operatorNote: OperatorNote): Promise<Done> {
  switch (terms.action) {
    case 'complete':
      return complete(tx, before, operatorNote)
    case 'dismiss': {
      const flag = before.flagReason ?? ''
      const resolution = { resolution: 'dismissed', resolvedAt: appNow(app, tx.now) } as const
      const changes = { ...balanceAfterDismissal(before), flagReason: null, ...resolution }
      const after = await changeTransaction(tx, app, before, changes, operatorNote)
      return { after, ordered: [], effects: [`the flag ${flag} is cleared; nothing else changes`] }
    }
    case 'refund':
      return refund(tx, app, before, terms, operatorNote)
  }
}

async function complete(tx: Tx, before: Transaction, operatorNote: OperatorNote): Promise<Done> {
  const rows = await getTransactionRows(tx, before.id)
  const endBefore = await periodEndText(tx, before)
  const providerCode = before.providerCode ?? bankPageProvider().code
  const after = wasSuperseded(before)
    ? await applySuperseded(tx, rows, providerCode, operatorNote)
    : await completeTransaction(tx, rows, { providerCode, paidAt: tx.now }, operatorNote)
  const accepted = wasSuperseded(before)
    ? await appliedWords(tx, after)
    : `accepts ${englishMoney(keptOf(before), before.currency)} of ${englishMoney(before.amount, before.currency)} as full payment`
  return { after, ordered: [], effects: [accepted, ...(await effectOfCompletion(tx, after, endBefore))] }
}

async function appliedWords(tx: Tx, { id, planRef, isTrial }: Transaction): Promise<string> {
  if ((await findLineOfTransaction(tx, id))?.kind === 'extended') return 'extends the current period'
  return isTrial ? `starts the trial of ${planRef} now` : `starts a period of ${planRef} now`
}

async function refund(
  tx: Tx,
  app: App,
  before: Transaction,
  { amount, reference }: Terms,
  operatorNote: OperatorNote,
): Promise<Done> {
  const order = { amount: amountToRefund(before, amount), wayOf: refundWayOf, reference, operatorNote }
  const earlier = amount === null ? [] : await listRefundsOfTransaction(tx, before.id)
  const { transaction: after, ordered } = await orderRefunds(tx, app, before, order)
  const effects = [
    ...earlier.filter((one) => one.status !== 'failed' && one.taken === amount).map(anotherEffect),
    ...ordered.map((one) => refundEffect(one)),
    ...(keptOf(after) === 0 && after.amount > 0 ? ['the transaction ends as refunded'] : []),
    ...(keepsPeriod(before) ? ['the period that was paid for stays'] : []),
  ]
  return { after, ordered, effects }
}

/** For an operator who repeats a command whose answer was lost, and whose refund is recorded by now. */
function anotherEffect({ id }: Refund): string {
  return `refund ${id} of the same amount was ordered before: this is another one`
}

function refundEffect({ refund: { amount, reference }, payment: { provider, currency } }: OrderedRefund): string {
  const money = englishMoney(amount, currency)
  const recorded = `${money} by ${provider} is recorded as refunded`
  return (
    providerOfCode(provider)?.refunds?.describe(money) ??
    (reference === null ? recorded : `${recorded} manually (${reference})`)
  )
}

async function audit(
  tx: CommandTx,
  before: Transaction,
  after: Transaction,
  { action, amount, reference, note, grant }: Terms & { readonly grant: Grant | null },
): Promise<void> {
  await tx.audit({
    action: `transaction.resolve.${action}`,
    appId: before.appId,
    subject: `transaction ${before.id}`,
    before: presentStanding(before),
    after: {
      ...presentStanding(after),
      ...(amount === null ? {} : { amount_refunded: amount }),
      ...(reference === null ? {} : { reference }),
      ...(grant === null ? {} : { approval: grant.approvalId }),
    },
    reason: note,
  })
}
