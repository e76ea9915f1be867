import { getApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { inTransaction } from '#db/transaction.ts'
import type { ReadOnly } from '#db/transaction.ts'
import { receivingAccount } from '#providers/bank-transfer/receiving-account.ts'
import { findBankAccountByForwardCode } from '#providers/bank-transfer/store.ts'
import type { BankAccount } from '#providers/bank-transfer/store.ts'
import { closeSoon } from '#providers/reconcile-payments.ts'
import { constantTimeEqual, sha256Hex } from '#shared/crypto.ts'
import { tellOutcome } from '#transactions/confirm-payment.ts'
import { findTransactionByTransferCode } from '#transactions/store.ts'
import type { Transaction } from '#transactions/store.ts'
import { readerOf } from './banks/readers.ts'
import { bookMoney } from './book-money.ts'
import type { MailMoney } from './book-money.ts'
import { answerOf, refusalOf, transferCodeOf } from './decide.ts'
import type { Answer, MailFacts, PayableFacts } from './decide.ts'
import { forwardCodeIn } from './envelope.ts'
import type { RelayedMail } from './envelope.ts'
import type { MailReading } from './read-mail.ts'
import { insertBankMail } from './store.ts'
import type { BankMail } from './store.ts'

/** A mail as it was read, or null where it could not be. */
export interface ReceivedMail extends RelayedMail {
  readonly reading: MailReading | null
}

/**
 * Decides on a mail that the relay posted, books its money where it is a payment, and keeps the redacted summary (specification 6,
 * contract 5). Money and summary are written together, so that a mail that is posted again after a crash is taken exactly once.
 */
export async function receiveMail(ctx: Context, mail: ReceivedMail): Promise<Answer> {
  const facts = factsOf(mail.reading)
  const transferCode = transferCodeOf(facts)
  const transaction = transferCode === null ? null : await findTransactionByTransferCode(ctx.db, transferCode)
  const recipient = await recipientAccount(ctx.db, mail)
  const payable = transaction && (await payableFacts(ctx, mail, transaction))
  const summary = summaryOf(mail, { transferCode, transaction, recipient })
  const refusal = refusalOf(facts, payable)
  const money = moneyOf(ctx, mail.reading)
  const answer =
    refusal || !money || !transaction
      ? await keep(ctx, summary, refusal ?? { status: 'ignored', reason: 'no_transfer_code' })
      : await take(ctx, summary, money, transaction)
  tell(ctx, summary, answer)
  return answer
}

async function keep(ctx: Context, summary: MailSummary, answer: Answer): Promise<Answer> {
  await inTransaction(ctx, (tx) => insertBankMail(tx, { ...summary, ...columnsOf(answer), receivedAt: tx.now }))
  return answer
}

async function take(ctx: Context, summary: MailSummary, money: MailMoney, transaction: Transaction): Promise<Answer> {
  const booked = await inTransaction(ctx, async (tx) => {
    const outcome = await bookMoney(tx, money, transaction.id)
    const answer = answerOf(outcome.kind, outcome.transactionStatus)
    await insertBankMail(tx, { ...summary, ...columnsOf(answer), receivedAt: tx.now })
    return { ...outcome, answer }
  })
  if (booked.confirmed) tellOutcome(ctx, booked.payment, booked.confirmed)
  // Nobody shall pay by card what came by transfer. The relay waits for no provider.
  if (booked.kind === 'processed') closeSoon(ctx, transaction.id)
  return booked.answer
}

function factsOf(reading: MailReading | null): MailFacts {
  return { bank: reading?.bank ?? null, isTrusted: (reading?.trust ?? null) !== null, credit: reading?.credit ?? null }
}

function moneyOf(ctx: Context, reading: MailReading | null): MailMoney | null {
  if (!reading?.bank || !reading.credit) return null
  const { reference, amount } = reading.credit
  // The time of receipt: a bank's own time is of the minute at best, and a period must not begin before its money was known of.
  const paidAt = ctx.clock.now()
  return { bank: reading.bank, reference, messageIdHash: reading.messageIdHash, amount, paidAt }
}

async function payableFacts(ctx: Context, mail: ReceivedMail, transaction: Transaction): Promise<PayableFacts> {
  const account = await receivingAccount(ctx.db, await getApp(ctx.db, transaction.appId))
  return {
    currency: transaction.currency,
    isBankPageOpened: transaction.bankPageOpenedAt !== null,
    account: account && {
      number: account.number,
      isOfMailsBank: isOfMailsBank(account, mail.reading),
      isRecipient: ctx.config.env === 'development' || isAddressOf(account, mail),
    },
  }
}

function isOfMailsBank(account: BankAccount, reading: MailReading | null): boolean {
  return readerOf(reading?.bank ?? null)?.bins.includes(account.bin) ?? false
}

function isAddressOf(account: BankAccount, mail: RelayedMail): boolean {
  const code = forwardCodeIn(mail.envelopeTo)
  return code !== null && constantTimeEqual(code, account.forwardCode)
}

/** The account whose secret address the mail came to, where the mail can be about it. */
async function recipientAccount(db: ReadOnly, mail: ReceivedMail): Promise<BankAccount | null> {
  const code = forwardCodeIn(mail.envelopeTo)
  const account = code === null ? null : await findBankAccountByForwardCode(db, code)
  const named = mail.reading?.credit?.account ?? null
  // The mailbox that is to forward may take mails of any bank.
  if (account && mail.reading?.forwarding) return account
  if (!account || !isOfMailsBank(account, mail.reading)) return null
  return named === null || named === account.number ? account : null
}

type MailSummary = Omit<BankMail, 'id' | 'receivedAt' | 'status' | 'reason'>

function summaryOf(
  { raw, reading }: ReceivedMail,
  found: {
    readonly transferCode: string | null
    readonly transaction: Transaction | null
    readonly recipient: BankAccount | null
  },
): MailSummary {
  const credit = reading?.credit ?? null
  return {
    messageIdHash: reading?.messageIdHash ?? null,
    contentHash: reading?.contentHash ?? sha256Hex(raw),
    bank: reading?.bank ?? null,
    bankReference: credit?.reference ?? null,
    amount: credit?.amount ?? null,
    transferCode: found.transferCode,
    appId: found.transaction?.appId ?? null,
    bankAccountId: found.recipient?.id ?? null,
    transactionId: found.transaction?.id ?? null,
    paidAt: credit?.bookedAt ?? null,
    matchedAt: null,
    // Anybody may send such a mail; whoever does not know an account's address has nothing to ask.
    forwarding: found.recipient ? (reading?.forwarding ?? null) : null,
  }
}

function columnsOf(answer: Answer): Pick<BankMail, 'status' | 'reason'> {
  return { status: answer.status, reason: 'reason' in answer ? answer.reason : null }
}

function tell(ctx: Context, summary: MailSummary, answer: Answer): void {
  const { status, reason } = columnsOf(answer)
  const { bank, transactionId } = summary
  ctx.count('bank_mails_total', { status, reason: reason ?? '' })
  ctx.log.info({ bank, transactionId, status, reason }, 'a bank mail was decided on')
}
