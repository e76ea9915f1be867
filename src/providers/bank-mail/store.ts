import { EntitySchema, In, IsNull, MoreThanOrEqual, Not } from 'typeorm'
import { bigint, exact, id, instant, json, nullable } from '#db/columns.ts'
import { insertedId } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import { transactions } from '#transactions/store.ts'
import type { Transaction } from '#transactions/store.ts'
import type { ForwardingRequest } from './forwarding-request.ts'

/** What is kept of a mail that the relay posted: nothing that a payer wrote but the transfer code, nobody's name. */
export interface BankMail {
  id: number
  receivedAt: Date
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
  /** When an operator matched it to a transaction. */
  matchedAt: Date | null
  /** Gmail's question whether it may forward a mailbox to the account's address. */
  forwarding: ForwardingRequest | null
}

export const bankMails = new EntitySchema<BankMail>({
  name: 'bank_mails',
  columns: {
    id,
    receivedAt: instant('received_at'),
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
    matchedAt: nullable(instant('matched_at')),
    forwarding: nullable(json('forwarding')),
  },
})

export async function insertBankMail(tx: Tx, row: Omit<BankMail, 'id'>): Promise<number> {
  return insertedId(await tx.manager.insert(bankMails, row))
}

export async function findBankMail(db: ReadOnly, mailId: number): Promise<BankMail | null> {
  return db.manager.findOneBy(bankMails, { id: mailId })
}

/** The newest mails first; `reasons` narrows them to ignored ones with an amount that nobody matched. */
export async function listBankMailRows(
  db: ReadOnly,
  filter: { readonly reasons: readonly string[] | null; readonly limit: number },
): Promise<BankMail[]> {
  const unmatched =
    filter.reasons === null
      ? {}
      : { status: 'ignored', reason: In([...filter.reasons]), amount: Not(IsNull()), matchedAt: IsNull() }
  return db.manager.find(bankMails, {
    where: unmatched,
    order: { receivedAt: 'DESC', id: 'DESC' },
    take: filter.limit,
  })
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

/** Writes down that the mail's money was matched; false where it was before. */
export async function markBankMailMatched(
  tx: Tx,
  mailId: number,
  changes: Pick<BankMail, 'transactionId' | 'appId'>,
): Promise<boolean> {
  const result = await tx.manager.update(
    bankMails,
    { id: mailId, matchedAt: IsNull() },
    { ...changes, matchedAt: tx.now },
  )
  return result.affected === 1
}

/** Pending payments that have been offered as bank transfers, the newest first: whom unmatched money may be meant for. */
export async function listAwaitingTransfers(db: ReadOnly, limit: number): Promise<Transaction[]> {
  return db.manager.find(transactions, {
    where: { status: 'pending', currency: 'VND', transferCode: Not(IsNull()) },
    order: { id: 'DESC' },
    take: limit,
  })
}

/** Decisions on mails that brought no money. Others are kept: of those that did, an operator may want to know in years. */
const MONEYLESS = [
  { status: 'ignored', reason: 'not_bank_email' },
  { status: 'rejected', reason: 'untrusted_sender' },
  { status: 'ignored', reason: 'no_transfer_code' },
] as const

/** Removes up to `limit` summaries of mails of before `before` that tell of no money; returns how many. */
export async function deleteMoneylessMails(tx: Tx, before: Date, limit: number): Promise<number> {
  let removed = 0
  for (const { status, reason } of MONEYLESS) {
    const result = await tx.manager.query<{ affectedRows: number }>(
      `DELETE FROM bank_mails WHERE status = ? AND reason = ? AND received_at < ?
         AND amount IS NULL AND transaction_id IS NULL ORDER BY received_at LIMIT ?`,
      [status, reason, before, limit - removed],
    )
    removed += result.affectedRows
  }
  return removed
}
