import { toRealTime } from '#apps/app-time.ts'
import { listApps } from '#apps/store.ts'
import { listAssignments } from '#bank-accounts/store.ts'
import type { Context } from '#context.ts'
import { dueOf } from '#payments/balance.ts'
import { findPayment } from '#payments/store.ts'
import { asRealTime, formatTimestamp, type RealTime } from '#shared/time.ts'
import type { Transaction } from '#transactions/store.ts'
import { listAwaitingTransfers, type BankMail } from './store.ts'
import { suggest } from './suggest.ts'

/** A pending transaction that money may be for. */
export interface Suggestion {
  readonly transaction_id: number
  readonly app_id: number
  readonly external_ref: string
  readonly amount_due: number
  readonly transfer_code: string | null
  readonly created_at: string
}

const MAX_CANDIDATES = 2000

/** Transactions that a payment's unallocated money may be for, the most likely first. */
export async function suggestionsForPayment(ctx: Context, paymentId: number): Promise<Suggestion[]> {
  const payment = await findPayment(ctx.db, paymentId)
  if (!payment || payment.currency !== 'VND') return []
  const candidates = await listCandidates(ctx)
  const { amountLeft: amount, receivedAt, bankAccountId, appId } = payment
  const ofApp = candidates.filter(({ transaction }) => appId === null || transaction.appId === appId)
  return suggestionsFor({ amount, receivedAt, bankAccountId }, ofApp)
}

/** A transaction that takes transfers, with what decides whether money may be for it. */
export interface PaymentCandidate {
  readonly transaction: Transaction
  readonly amountDue: number
  /** In real time, as mails are received. */
  readonly createdAt: RealTime
  readonly isBankPageOpened: boolean
  /** Whether the account belongs or belonged to its app. */
  readonly mayHavePaidOn: (bankAccountId: number) => boolean
}

export async function candidatesAmong(ctx: Context, awaiting: readonly Transaction[]): Promise<PaymentCandidate[]> {
  const apps = new Map((await listApps(ctx.db)).map((app) => [app.id, app]))
  const owners = new Map<number, Set<number>>()
  for (const { appId, bankAccountId } of await listAssignments(ctx.db))
    owners.set(bankAccountId, (owners.get(bankAccountId) ?? new Set()).add(appId))
  return awaiting.map((transaction) => {
    const app = apps.get(transaction.appId)
    return {
      transaction,
      amountDue: dueOf(transaction),
      createdAt: app ? toRealTime(app, transaction.createdAt) : asRealTime(transaction.createdAt),
      isBankPageOpened: transaction.bankPageOpenedAt !== null,
      mayHavePaidOn: (bankAccountId) => owners.get(bankAccountId)?.has(transaction.appId) === true,
    }
  })
}

/** The newest transactions that wait for a transfer. */
export async function listCandidates(ctx: Context): Promise<PaymentCandidate[]> {
  return candidatesAmong(ctx, await listAwaitingTransfers(ctx.db, MAX_CANDIDATES))
}

type Money = Pick<BankMail, 'amount' | 'receivedAt' | 'bankAccountId'>

/** The transactions that money may be meant for, the most likely first; none if the amount is unknown. */
export function suggestionsFor(money: Money, candidates: readonly PaymentCandidate[]): Suggestion[] {
  const { amount, receivedAt, bankAccountId } = money
  if (amount === null) return []
  const ofAccount = candidates.filter((candidate) => bankAccountId === null || candidate.mayHavePaidOn(bankAccountId))
  return suggest({ amount, receivedAt }, ofAccount).map(({ transaction, amountDue }) => ({
    transaction_id: transaction.id,
    app_id: transaction.appId,
    external_ref: transaction.externalRef,
    amount_due: amountDue,
    transfer_code: transaction.transferCode,
    created_at: formatTimestamp(transaction.createdAt),
  }))
}
