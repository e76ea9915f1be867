import { realTime } from '#apps/app-time.ts'
import { listApps } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { dueOf } from '#payments/balance.ts'
import { findPayment } from '#payments/store.ts'
import { listPage, presentPage, type Page, type PageRequest } from '#http/page-of.ts'
import { listAssignments } from '#bank-accounts/store.ts'
import { asRealTime, formatTimestamp, type RealTime } from '#shared/time.ts'
import type { Transaction } from '#transactions/store.ts'
import {
  findBankMail,
  listAwaitingTransfers,
  listBankMailRows,
  listMailsByIds,
  type BankMail,
  type Review,
} from './store.ts'
import { suggest } from './suggest.ts'

/** A mail as operators see it. */
export interface ListedMail {
  readonly id: number
  readonly app_id: number | null
  readonly received_at: string
  readonly message_id: string | null
  readonly bank: string | null
  readonly amount: number | null
  readonly transfer_code: string | null
  readonly status: string
  readonly reason: string | null
  /** Why it waits for an operator: `credit`, `not_understood`, `unknown_sender`, `unreadable`; null if it does not. */
  readonly review: Review | null
  readonly transaction_id: number | null
  /** Payments that the money may be meant for, the most likely first; empty for mails that do not wait. */
  readonly suggestions: readonly Suggestion[]
}

export interface Suggestion {
  readonly transaction_id: number
  readonly app_id: number
  readonly external_ref: string
  readonly amount_due: number
  readonly transfer_code: string | null
  readonly created_at: string
}

const MAX_CANDIDATES = 2000
const MAX_MAILS = 100

/**
 * A page of the relay's mails, the newest first; `unmatched` lists those that wait for an operator. Outside development these came to
 * the secret address of an account and are about one of our accounts, because anybody can get genuine bank mails about their own money.
 */
export async function listBankMails(
  ctx: Context,
  options: { readonly unmatched?: boolean } = {},
  page: unknown = { limit: '100' },
): Promise<Page<ListedMail>> {
  const list = (request: PageRequest) => listBankMailRows(ctx.db, { waiting: options.unmatched === true, ...request })
  const mails = await listPage(page, list, ({ receivedAt }) => receivedAt)
  const candidates = await candidatesFor(ctx, mails.rows)
  return presentPage(mails, (mail) => present(mail, candidates))
}

/** One mail as lists show it, with its suggestions; null if there is none. */
export async function listedMail(ctx: Context, mailId: number): Promise<ListedMail | null> {
  const mail = await findBankMail(ctx.db, mailId)
  return mail && present(mail, await candidatesFor(ctx, [mail]))
}

/** Mails with their suggestions, by id. */
export async function suggestionsOf(ctx: Context, mailIds: readonly number[]): Promise<ListedMail[]> {
  const mails = await listMailsByIds(ctx.db, mailIds)
  const candidates = await candidatesFor(ctx, mails)
  return mails.map((mail) => present(mail, candidates))
}

/** Payments that the rest of a payment may be meant for, the most likely first. */
export async function suggestionsForPayment(ctx: Context, paymentId: number): Promise<Suggestion[]> {
  const payment = await findPayment(ctx.db, paymentId)
  if (!payment || payment.currency !== 'VND') return []
  const candidates = await candidatesAmong(ctx, await listAwaitingTransfers(ctx.db, MAX_CANDIDATES))
  const { amountLeft: amount, receivedAt, bankAccountId, appId } = payment
  const ofApp = candidates.filter(({ transaction }) => appId === null || transaction.appId === appId)
  return suggestionsFor({ amount, receivedAt, bankAccountId }, ofApp)
}

async function candidatesFor(ctx: Context, mails: readonly BankMail[]): Promise<PaymentCandidate[]> {
  if (mails.every(({ review }) => review === null)) return []
  return candidatesAmong(ctx, await listAwaitingTransfers(ctx.db, MAX_CANDIDATES))
}

/** The newest mails whose money waits for a match and may be meant for one of these transactions. Suggests no other transactions. */
export async function listMailsFor(ctx: Context, transactions: readonly Transaction[]): Promise<ListedMail[]> {
  const mails = await listBankMailRows(ctx.db, { waiting: true, below: null, limit: MAX_MAILS })
  const candidates = mails.length === 0 ? [] : await candidatesAmong(ctx, transactions)
  return mails.map((mail) => present(mail, candidates)).filter(({ suggestions }) => suggestions.length > 0)
}

interface PaymentCandidate {
  readonly transaction: Transaction
  readonly amountDue: number
  /** In real time, as mails are received. */
  readonly createdAt: RealTime
  readonly isBankPageOpened: boolean
  /** Whether the account belongs or belonged to its app. */
  readonly mayHavePaidOn: (bankAccountId: number) => boolean
}

async function candidatesAmong(ctx: Context, awaiting: readonly Transaction[]): Promise<PaymentCandidate[]> {
  const apps = new Map((await listApps(ctx.db)).map((app) => [app.id, app]))
  const owners = new Map<number, Set<number>>()
  for (const { appId, bankAccountId } of await listAssignments(ctx.db))
    owners.set(bankAccountId, (owners.get(bankAccountId) ?? new Set()).add(appId))
  return awaiting.map((transaction) => {
    const app = apps.get(transaction.appId)
    return {
      transaction,
      amountDue: dueOf(transaction),
      createdAt: app ? realTime(app, transaction.createdAt) : asRealTime(transaction.createdAt),
      isBankPageOpened: transaction.bankPageOpenedAt !== null,
      mayHavePaidOn: (bankAccountId) => owners.get(bankAccountId)?.has(transaction.appId) === true,
    }
  })
}

function present(mail: BankMail, candidates: readonly PaymentCandidate[]): ListedMail {
  return {
    id: mail.id,
    app_id: mail.appId,
    received_at: formatTimestamp(mail.receivedAt),
    message_id: mail.messageId,
    bank: mail.bank,
    amount: mail.amount,
    transfer_code: mail.transferCode,
    status: mail.status,
    reason: mail.reason,
    review: mail.review,
    transaction_id: mail.transactionId,
    suggestions: mail.review !== null ? suggestionsFor(mail, candidates) : [],
  }
}

type Money = Pick<BankMail, 'amount' | 'receivedAt' | 'bankAccountId'>

function suggestionsFor(money: Money, candidates: readonly PaymentCandidate[]): Suggestion[] {
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

/** One mail; null if there is none. */
export async function bankMailOf(ctx: Context, mailId: number): Promise<BankMail | null> {
  return findBankMail(ctx.db, mailId)
}
