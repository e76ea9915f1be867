import { EntitySchema, IsNull, MoreThanOrEqual, Not } from 'typeorm'
import { bigint, exact, id, instant, json, nullable } from '#db/columns.ts'
import { insertedId } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import { transactions } from '#transactions/store.ts'
import type { Transaction } from '#transactions/store.ts'
import type { ForwardingRequest } from './forwarding-request.ts'

/**
 * Why a mail waits for an operator: it brought money that is nobody's yet; it is the bank's and was not understood; it is of an address
 * of the bank's that no notices come from, and seems to tell of money; it could not be read.
 */
export type Review = 'credit' | 'not_understood' | 'unknown_sender' | 'unreadable'

/** What is kept of a mail that the relay posted: nothing that a payer wrote but the transfer code, nobody's name. */
export interface BankMail {
  id: number
  receivedAt: Date
  messageId: string | null
  /** Of the whole message id, which may be longer than what is kept of it. */
  messageIdHash: string | null
  /** Of the bytes below the header. */
  contentHash: string
  /** Short code of the bank that it says it is from. */
  bank: string | null
  /** What the bank calls the movement, or a fingerprint of it. */
  bankReference: string | null
  /** Whole dong. */
  amount: number | null
  transferCode: string | null
  status: string
  reason: string | null
  appId: number | null
  /** The account whose secret address it came to, or which it names; null where neither is one of ours. */
  bankAccountId: number | null
  transactionId: number | null
  /** The bank's own time of it. */
  paidAt: Date | null
  /** Why it waits for an operator; null where it does not, or does not any more. */
  review: Review | null
  /** When an operator matched it to a transaction. */
  matchedAt: Date | null
  /** When an operator closed it without one. */
  closedAt: Date | null
  /** Gmail's question whether it may forward a mailbox to the account's address. */
  forwarding: ForwardingRequest | null
}

export const bankMails = new EntitySchema<BankMail>({
  name: 'bank_mails',
  columns: {
    id,
    receivedAt: instant('received_at'),
    messageId: nullable(exact('message_id', 998)),
    messageIdHash: nullable(exact('message_id_hash', 64)),
    contentHash: exact('content_hash', 64),
    bank: nullable(exact('bank', 32)),
    bankReference: nullable(exact('bank_reference', 191)),
    amount: nullable(bigint('amount')),
    transferCode: nullable(exact('transfer_code', 12)),
    status: exact('status', 32),
    reason: nullable(exact('reason', 64)),
    appId: nullable(bigint('app_id')),
    bankAccountId: nullable(bigint('bank_account_id')),
    transactionId: nullable(bigint('transaction_id')),
    paidAt: nullable(instant('paid_at')),
    review: nullable(exact('review', 32)),
    matchedAt: nullable(instant('matched_at')),
    closedAt: nullable(instant('closed_at')),
    forwarding: nullable(json('forwarding')),
  },
})

export async function insertBankMail(tx: Tx, row: Omit<BankMail, 'id'>): Promise<number> {
  return insertedId(await tx.manager.insert(bankMails, row))
}

export async function findBankMail(db: ReadOnly, mailId: number): Promise<BankMail | null> {
  return db.manager.findOneBy(bankMails, { id: mailId })
}

/** The newest mails first, or of them those that wait for an operator. */
export async function listBankMailRows(
  db: ReadOnly,
  filter: {
    readonly waiting: boolean
    readonly below: { readonly createdAt: Date; readonly id: number } | null
    readonly limit: number
  },
): Promise<BankMail[]> {
  const query = db.manager.createQueryBuilder(bankMails, 'm').orderBy('m.receivedAt', 'DESC').addOrderBy('m.id', 'DESC')
  if (filter.waiting) query.andWhere('m.review IS NOT NULL')
  if (filter.below) {
    const { createdAt, id: belowId } = filter.below
    query.andWhere('(m.receivedAt < :createdAt OR (m.receivedAt = :createdAt AND m.id < :belowId))', {
      createdAt,
      belowId,
    })
  }
  return query.limit(filter.limit).getMany()
}

/** How many mails wait for an operator, by why. */
export async function countWaitingMails(db: ReadOnly): Promise<{ readonly review: Review; readonly mails: number }[]> {
  const rows: { review: Review; mails: string }[] = await db.manager.query(
    'SELECT review, COUNT(*) AS mails FROM bank_mails WHERE review IS NOT NULL GROUP BY review ORDER BY review',
  )
  return rows.map(({ review, mails }) => ({ review, mails: Number(mails) }))
}

/** How many genuine mails since `since` were for a payment, and neither to a secret address nor to a mailbox of its account. */
export async function countMisaddressedMails(db: ReadOnly, since: Date): Promise<number> {
  return db.manager.countBy(bankMails, {
    status: 'rejected',
    reason: 'invalid_recipient',
    receivedAt: MoreThanOrEqual(since),
    bankAccountId: IsNull(),
  })
}

/** How many mails of this content were put off, to be read another time. */
export async function countDeferredMails(db: ReadOnly, contentHash: string): Promise<number> {
  return db.manager.countBy(bankMails, { contentHash, status: 'deferred' })
}

/** Mails since `since` that ask whether a mailbox may be forwarded; newest first. */
export async function listForwardingRows(db: ReadOnly, since: Date, limit: number): Promise<BankMail[]> {
  return db.manager.find(bankMails, {
    where: {
      status: 'ignored',
      reason: 'not_bank_email',
      receivedAt: MoreThanOrEqual(since),
      forwarding: Not(IsNull()),
    },
    order: { receivedAt: 'DESC', id: 'DESC' },
    take: limit,
  })
}

/** Writes down that the mail's money was matched; false where it does not wait any more. */
export async function markBankMailMatched(
  tx: Tx,
  mailId: number,
  changes: Pick<BankMail, 'transactionId' | 'appId' | 'amount'>,
): Promise<boolean> {
  return endReview(tx, mailId, { ...changes, matchedAt: tx.now })
}

/** Writes down that the mail needs nothing more; false where it does not wait any more. */
export async function markBankMailClosed(tx: Tx, mailId: number): Promise<boolean> {
  return endReview(tx, mailId, { closedAt: tx.now })
}

async function endReview(tx: Tx, mailId: number, changes: Partial<Omit<BankMail, 'forwarding'>>): Promise<boolean> {
  const waiting = { id: mailId, review: Not(IsNull()) }
  const result = await tx.manager.update(bankMails, waiting, { ...changes, review: null })
  return result.affected === 1
}

/** Mails about a movement that was booked wait for nobody: they came by another way, or again. */
export async function endReviewsOfMovement(tx: Tx, bank: string, bankReference: string): Promise<void> {
  await tx.manager.update(bankMails, { review: Not(IsNull()), bank, bankReference }, { review: null })
}

/** Pending payments that have been offered as bank transfers, the newest first: whom unmatched money may be meant for. */
export async function listAwaitingTransfers(db: ReadOnly, limit: number): Promise<Transaction[]> {
  return db.manager.find(transactions, {
    where: { status: 'pending', currency: 'VND', transferCode: Not(IsNull()) },
    order: { id: 'DESC' },
    take: limit,
  })
}

/** Decisions on mails that brought no money, as far as anybody knows. Others are kept: of those that did, an operator may want to know in years. */
const MONEYLESS = [
  { status: 'deferred', reason: 'unreadable' },
  { status: 'ignored', reason: 'not_bank_email' },
  { status: 'rejected', reason: 'untrusted_sender' },
  { status: 'ignored', reason: 'no_transfer_code' },
] as const

/** Removes up to `limit` summaries of mails of before `before` that tell of no money and wait for nobody; returns how many. */
export async function deleteMoneylessMails(tx: Tx, before: Date, limit: number): Promise<number> {
  let removed = 0
  for (const { status, reason } of MONEYLESS) {
    const result = await tx.manager.query<{ affectedRows: number }>(
      `DELETE FROM bank_mails WHERE status = ? AND reason = ? AND received_at < ?
         AND amount IS NULL AND transaction_id IS NULL AND review IS NULL ORDER BY received_at LIMIT ?`,
      [status, reason, before, limit - removed],
    )
    removed += result.affectedRows
  }
  return removed
}
