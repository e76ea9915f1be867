import { listApps } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { formatTimestamp } from '#shared/time.ts'
import type { Transaction } from '#transactions/store.ts'
import { UNMATCHED_REASONS } from './decide.ts'
import { listAwaitingTransfers, listBankMailRows } from './store.ts'
import type { BankMail } from './store.ts'
import { suggest } from './suggest.ts'

/** A mail as operators see it (contract 6). */
export interface ListedMail {
  readonly id: number
  readonly received_at: string
  readonly bank: string | null
  readonly amount: number | null
  readonly transfer_code: string | null
  readonly status: string
  readonly reason: string | null
  readonly transaction_id: number | null
  /** Payments that the money may be meant for, the likeliest first; none for mails that need no match. */
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

const MOST_LISTED = 200
const MOST_CANDIDATES = 2000

/**
 * The relay's mails, the newest first; `unmatched` lists those that brought money which is nobody's yet. Outside development that is
 * only what came to the secret address of an account, about that account: anybody can have a bank mail them of money of their own.
 */
export async function listBankMails(
  ctx: Context,
  options: { readonly unmatched?: boolean } = {},
): Promise<ListedMail[]> {
  const reasons = options.unmatched ? UNMATCHED_REASONS : null
  const mails = await listBankMailRows(ctx.db, { reasons, limit: MOST_LISTED })
  const shown = options.unmatched ? mails.filter((mail) => isUnmatched(ctx, mail)) : mails
  const candidates = shown.some((mail) => isUnmatched(ctx, mail)) ? await listCandidates(ctx) : []
  return shown.map((mail) => present(ctx, mail, candidates))
}

/** Whether the mail's money waits for an operator to match it. */
export function isUnmatched(ctx: Context, mail: BankMail): boolean {
  const isOurs = mail.bankAccountId !== null || ctx.config.env === 'development'
  const isOpen = mail.status === 'ignored' && mail.amount !== null && mail.matchedAt === null
  return isOurs && isOpen && UNMATCHED_REASONS.some((reason) => reason === mail.reason)
}

interface PaymentCandidate {
  readonly transaction: Transaction
  readonly transactionId: number
  readonly amountDue: number
  readonly createdAt: Date
  readonly isBankPageOpened: boolean
  /** The account that its app is paid to. */
  readonly bankAccountId: number | null
}

async function listCandidates(ctx: Context): Promise<PaymentCandidate[]> {
  const accounts = new Map((await listApps(ctx.db)).map((app) => [app.id, app.bankAccountId]))
  const awaiting = await listAwaitingTransfers(ctx.db, MOST_CANDIDATES)
  return awaiting.map((transaction) => ({
    transaction,
    transactionId: transaction.id,
    amountDue: transaction.amount - transaction.amountReceived,
    createdAt: transaction.createdAt,
    isBankPageOpened: transaction.bankPageOpenedAt !== null,
    bankAccountId: accounts.get(transaction.appId) ?? null,
  }))
}

function present(ctx: Context, mail: BankMail, candidates: readonly PaymentCandidate[]): ListedMail {
  return {
    id: mail.id,
    received_at: formatTimestamp(mail.receivedAt),
    bank: mail.bank,
    amount: mail.amount,
    transfer_code: mail.transferCode,
    status: mail.status,
    reason: mail.reason,
    transaction_id: mail.transactionId,
    suggestions: isUnmatched(ctx, mail) ? suggestionsFor(mail, candidates) : [],
  }
}

function suggestionsFor(mail: BankMail, candidates: readonly PaymentCandidate[]): Suggestion[] {
  const { amount, receivedAt, bankAccountId } = mail
  if (amount === null) return []
  const ofAccount = candidates.filter(
    (candidate) => bankAccountId === null || candidate.bankAccountId === bankAccountId,
  )
  return suggest({ amount, receivedAt }, ofAccount).map(({ transaction, amountDue }) => ({
    transaction_id: transaction.id,
    app_id: transaction.appId,
    external_ref: transaction.externalRef,
    amount_due: amountDue,
    transfer_code: transaction.transferCode,
    created_at: formatTimestamp(transaction.createdAt),
  }))
}
