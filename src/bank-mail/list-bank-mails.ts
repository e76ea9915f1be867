import type { Context } from '#context.ts'
import type { PageRequest } from '#db/conditions.ts'
import { ListQuery, listPage, presentPage, type Page } from '#http/list-page.ts'
import { formatTimestamp } from '#shared/time.ts'
import { validate } from '#shared/validate.ts'
import type { Transaction } from '#transactions/store.ts'
import { findBankMail, listBankMailRows, listMailsByIds, type BankMail, type Review } from './store.ts'
import {
  candidatesAmong,
  listCandidates,
  suggestionsFor,
  type PaymentCandidate,
  type Suggestion,
} from './suggest-transactions.ts'

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
  const mails = await listPage('bank-mails', validate(ListQuery, page), list, ({ receivedAt }) => receivedAt)
  const candidates = await candidatesIfAnyWaits(ctx, mails.rows)
  return presentPage(mails, (mail) => present(mail, candidates))
}

/** One mail as lists show it, with its suggestions; null if there is none. */
export async function listedMail(ctx: Context, mailId: number): Promise<ListedMail | null> {
  const mail = await findBankMail(ctx.db, mailId)
  return mail && present(mail, await candidatesIfAnyWaits(ctx, [mail]))
}

/** Mails with their suggestions, by id. */
export async function listMailsWithSuggestions(ctx: Context, mailIds: readonly number[]): Promise<ListedMail[]> {
  const mails = await listMailsByIds(ctx.db, mailIds)
  const candidates = await candidatesIfAnyWaits(ctx, mails)
  return mails.map((mail) => present(mail, candidates))
}

/** The newest mails whose money waits for a match and may be meant for one of these transactions. Suggests no other transactions. */
export async function listMailsFor(ctx: Context, transactions: readonly Transaction[]): Promise<ListedMail[]> {
  const mails = await listBankMailRows(ctx.db, { waiting: true, after: null, limit: MAX_MAILS })
  const candidates = mails.length === 0 ? [] : await candidatesAmong(ctx, transactions)
  return mails.map((mail) => present(mail, candidates)).filter(({ suggestions }) => suggestions.length > 0)
}

async function candidatesIfAnyWaits(ctx: Context, mails: readonly BankMail[]): Promise<PaymentCandidate[]> {
  return mails.every(({ review }) => review === null) ? [] : listCandidates(ctx)
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
