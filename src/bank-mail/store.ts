import { bigint, exact, id, json, realTime, text } from '#db/columns.ts'
import { shape, table, joinedRows, type Row } from '#db/table.ts'
import { following, where, type PageRequest } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import type { Tx } from '#commands/transaction.ts'
import { apps } from '#apps/store.ts'
import { bankAccounts } from '#bank-accounts/store.ts'
import { transactions, type Transaction } from '#transactions/store.ts'
import type { RealTime } from '#shared/time.ts'
import type { ForwardingRequest } from './forwarding-request.ts'

/**
 * Why a mail waits for an operator. `credit`: its money is not matched. `not_understood`: the bank's notice address sent it.
 * `unknown_sender`: another address of the bank sent it, and it seems to report money. `unreadable`: it could not be read.
 */
export type Review = (typeof REVIEWS)[number]
const REVIEWS = ['credit', 'not_understood', 'unknown_sender', 'unreadable'] as const

/** The redacted summary of a mail that the relay posted. It contains no names, and no text of the payer except the transfer code. */
export const bankMails = table('bank_mails', {
  id: id(),
  receivedAt: realTime('received_at'),
  messageId: exact('message_id', 998).nullable(),
  /** Hash of the whole message id, which may be longer than the stored part. */
  messageIdHash: exact('message_id_hash', 64).nullable(),
  /** Hash of the bytes below the header. */
  contentHash: exact('content_hash', 64),
  /** Short code of the bank in `From`. */
  bank: exact('bank', 32).nullable(),
  /** The bank's id of the movement, or a fingerprint of it. */
  bankReference: exact('bank_reference', 191).nullable(),
  /** Whole dong. */
  amount: bigint('amount').nullable(),
  transferCode: exact('transfer_code', 12).nullable(),
  status: exact('status', 32),
  reason: exact('reason', 64).nullable(),
  appId: bigint('app_id').nullable(),
  /** Our account whose secret address it came to, or which it names; null if there is none. */
  bankAccountId: bigint('bank_account_id').nullable(),
  transactionId: bigint('transaction_id').nullable(),
  /** The bank's own time of the movement. */
  bookedAt: realTime('paid_at').nullable(),
  /** Why it waits for an operator; null if it does not. */
  review: exact('review', 32).as<Review>().nullable(),
  /** When an operator matched it to a transaction. */
  matchedAt: realTime('matched_at').nullable(),
  /** When an operator closed it without one. */
  closedAt: realTime('closed_at').nullable(),
  /** The payment that it reports, once that is recorded. */
  paymentId: bigint('payment_id').nullable(),
  /** Gmail's request to forward a mailbox to the account's address. */
  forwarding: json<ForwardingRequest>('forwarding').nullable(),
})
export type BankMail = Row<typeof bankMails>

const PAYABLE = joinedRows(
  `transactions transaction
   JOIN apps app ON app.id = transaction.app_id
   LEFT JOIN bank_accounts account ON account.id = app.bank_account_id`,
  { transaction: transactions, app: apps },
  { account: bankAccounts },
  {},
)
/** A transaction, and the account that is assigned to its app now, disabled or not. */
export type Payable = Row<typeof PAYABLE>

export async function findPayableByCode(db: Queries, transferCode: string): Promise<Payable | null> {
  return db.one(PAYABLE, 'WHERE transaction.transfer_code = ?', [transferCode])
}

export async function insertBankMail(tx: Tx, row: Omit<BankMail, 'id'>): Promise<number> {
  return tx.insert(bankMails, row)
}

export async function findBankMail(db: Queries, mailId: number): Promise<BankMail | null> {
  return db.one(bankMails, 'WHERE id = ?', [mailId])
}

export async function listMailsByIds(db: Queries, mailIds: readonly number[]): Promise<BankMail[]> {
  return mailIds.length === 0 ? [] : db.all(bankMails, 'WHERE id IN (?) ORDER BY id', [mailIds])
}

/** The newest mails first; with `waiting`, only those that wait for an operator. */
export async function listBankMailRows(
  db: Queries,
  filter: PageRequest & { readonly waiting: boolean },
): Promise<BankMail[]> {
  const listed = where(
    filter.waiting ? ['review IS NOT NULL'] : null,
    following(filter.after, ['received_at', 'id'], 'desc'),
  )
  return db.all(bankMails, `${listed.sql} ORDER BY received_at DESC, id DESC LIMIT ?`, [...listed.params, filter.limit])
}

/** How many mails wait for an operator, by reason. */
export async function countWaitingMails(db: Queries): Promise<{ readonly review: Review; readonly mails: number }[]> {
  return db.all(
    shape({ review: text().as<Review>(), mails: bigint() }),
    'SELECT review, COUNT(*) AS mails FROM bank_mails WHERE review IS NOT NULL GROUP BY review ORDER BY review',
  )
}

/** How many genuine mails since `since` were for a payment, but came neither to the secret address nor to the mailbox of its account. */
export async function countMisaddressedMails(db: Queries, since: RealTime): Promise<number> {
  return db.count(
    bankMails,
    `WHERE status = 'rejected' AND reason = 'invalid_recipient' AND received_at >= ? AND bank_account_id IS NULL`,
    [since],
  )
}

/** How often mails of this content were deferred. */
export async function countDeferredMails(db: Queries, contentHash: string): Promise<number> {
  return db.count(bankMails, `WHERE content_hash = ? AND status = 'deferred'`, [contentHash])
}

/** Forwarding requests since `since`, newest first. */
export async function listForwardingRows(db: Queries, since: RealTime, limit: number): Promise<BankMail[]> {
  return db.all(
    bankMails,
    `WHERE status = 'ignored' AND reason = 'not_bank_email' AND received_at >= ? AND forwarding IS NOT NULL
     ORDER BY received_at DESC, id DESC LIMIT ?`,
    [since, limit],
  )
}

/** Records that the mail's money was matched; returns false if the mail no longer waits. */
export async function markBankMailMatched(
  tx: Tx,
  mailId: number,
  changes: Pick<BankMail, 'transactionId' | 'appId' | 'amount' | 'paymentId'>,
): Promise<boolean> {
  return endReview(tx, mailId, { ...changes, matchedAt: tx.now })
}

/** Records that the mail was closed; returns false if it no longer waits. */
export async function markBankMailClosed(tx: Tx, mailId: number): Promise<boolean> {
  return endReview(tx, mailId, { closedAt: tx.now })
}

async function endReview(tx: Tx, mailId: number, changes: Partial<Omit<BankMail, 'forwarding'>>): Promise<boolean> {
  return (await tx.update(bankMails, { id: mailId, review: REVIEWS }, { ...changes, review: null })) === 1
}

/** Ends the reviews of mails whose money is booked or refunded, wholly or in part: what is left of it waits as a payment. */
export async function endReviewsOfPayment(tx: Tx, paymentId: number): Promise<void> {
  await tx.update(bankMails, { review: REVIEWS, paymentId }, { review: null })
}

/** As `endReviewsOfPayment`, for mails whose money an operator closed. */
export async function closeReviewsOfPayment(tx: Tx, paymentId: number): Promise<void> {
  await tx.update(bankMails, { review: REVIEWS, paymentId }, { review: null, closedAt: tx.now })
}

/** The mails about a payment, the oldest first. */
export async function listMailsOfPayment(db: Queries, paymentId: number): Promise<BankMail[]> {
  return db.all(bankMails, 'WHERE payment_id = ? ORDER BY id', [paymentId])
}

/** Whether the same mail came before, named no movement, and had its money booked or refunded. */
export async function hasBookedCopy(
  db: Queries,
  { messageId, messageIdHash }: Pick<BankMail, 'messageId' | 'messageIdHash'>,
): Promise<boolean> {
  const copies = await db.count(
    bankMails,
    `WHERE message_id = ? AND message_id_hash = ? AND bank_reference IS NULL
       AND payment_id IS NOT NULL AND review IS NULL AND closed_at IS NULL`,
    [messageId, messageIdHash],
  )
  return copies > 0
}

/** Pending transactions with a transfer code, newest first: unmatched money may be for one of them. */
export async function listAwaitingTransfers(db: Queries, limit: number): Promise<Transaction[]> {
  return db.all(
    transactions,
    `WHERE status = 'pending' AND currency = 'VND' AND transfer_code IS NOT NULL ORDER BY id DESC LIMIT ?`,
    [limit],
  )
}

/** Decisions on mails that brought no money. All others are kept: an operator may need them years later. */
const MONEYLESS = [
  { status: 'deferred', reason: 'unreadable' },
  { status: 'ignored', reason: 'not_bank_email' },
  { status: 'rejected', reason: 'untrusted_sender' },
  { status: 'ignored', reason: 'no_transfer_code' },
] as const

/** Deletes up to `limit` summaries from before `before` that report no money and do not wait for an operator; returns how many. */
export async function deleteMoneylessMails(tx: Tx, before: RealTime, limit: number): Promise<number> {
  let removed = 0
  for (const { status, reason } of MONEYLESS) {
    removed += await tx.run(
      `DELETE FROM bank_mails WHERE status = ? AND reason = ? AND received_at < ?
         AND amount IS NULL AND transaction_id IS NULL AND review IS NULL ORDER BY received_at LIMIT ?`,
      [status, reason, before, limit - removed],
    )
  }
  return removed
}
