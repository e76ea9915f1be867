import type { Context } from '#context.ts'
import { listAccountsOfApp, type BankAccount } from '#bank-accounts/store.ts'
import { provider } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { closeOpenSessions } from '#providers/engine/reconcile-payments.ts'
import type { Transaction } from '#transactions/store.ts'
import {
  findAccountOf,
  isAddressOf,
  isOfMailsBank,
  isToMailbox,
  type AccountOfMail,
  type ReceivedMail,
} from './account-of-mail.ts'
import { bookMoney, paymentReferenceOf, type MailMoney } from './book-money.ts'
import { columnsOf, keepMail, type MailSummary } from './keep-mail.ts'
import {
  relayAnswerOf,
  mailRefusalOf,
  transferCodeOf,
  type RelayAnswer,
  type MailFacts,
  type PayableFacts,
} from './mail-answer.ts'
import type { MailReading } from './read-mail.ts'
import { endReviewsOfPayment, findPayableByCode, insertBankMail, type Payable } from './store.ts'

/**
 * Decides on a mail that the relay posted, books its money if it is a payment, and keeps the redacted summary. Money and
 * summary are committed together, so that a mail that is posted again after a crash is booked exactly once (R199).
 */
export async function receiveMail(ctx: Context, mail: ReceivedMail): Promise<RelayAnswer> {
  const facts = factsOf(mail.reading)
  const transferCode = transferCodeOf(facts)
  const payable = transferCode === null ? null : await findPayableByCode(ctx.db, transferCode)
  const about = await findAccountOf(ctx, mail, payable?.account ?? null)
  const refusal = mailRefusalOf(facts, payable && (await payableFacts(ctx, mail, payable, about.account)))
  const transaction = payable?.transaction ?? null
  const summary = summaryOf(mail, { transferCode, transaction, about })
  const money = moneyOf(ctx, mail.reading, summary.bankAccountId)
  const caller = provider('bank mail')
  // A mail that is not refused has money and the code of a transaction; the types do not say so.
  const answer =
    refusal || !money || !transaction
      ? await perform(ctx, caller, keep, undefined, { summary, answer: refusal ?? NO_TRANSFER_CODE })
      : await perform(ctx, caller, take, undefined, { summary, money, transaction })
  report(ctx, summary, answer)
  return answer
}

/** A mail that is not a payment, and the decision. */
interface Decided {
  readonly summary: MailSummary
  readonly answer: RelayAnswer
}

const keep = command({
  name: 'bank-mail.keep',
  input: nothing,
  async run(tx, _input, { summary, answer }: Decided): Promise<RelayAnswer> {
    await keepMail(tx, summary, answer)
    return answer
  },
})

interface Taken {
  readonly summary: MailSummary
  readonly money: MailMoney
  readonly transaction: Transaction
}

const take = command({
  name: 'bank-mail.take',
  input: nothing,
  async run(tx, _input, { summary, money, transaction }: Taken): Promise<RelayAnswer> {
    const outcome = await bookMoney(tx, money, transaction.id)
    if (outcome.kind === 'duplicate') {
      // It may be another movement under the same Message-ID.
      await keepMail(tx, summary, DUPLICATE)
      return DUPLICATE
    }
    const { kind, paymentId, wasUnallocated } = outcome
    const answer = relayAnswerOf(kind, outcome.transaction.status)
    await insertBankMail(tx, { ...summary, ...columnsOf(answer), review: null, paymentId, receivedAt: tx.now })
    if (wasUnallocated) await endReviewsOfPayment(tx, paymentId)
    // The relay does not wait for the providers.
    if (kind === 'processed' || kind === 'underpaid')
      tx.afterCommit(() => void closeOpenSessions(tx.ctx, transaction.id))
    return answer
  },
})

const DUPLICATE: RelayAnswer = { status: 'duplicate' }
const NO_TRANSFER_CODE: RelayAnswer = { status: 'ignored', reason: 'no_transfer_code' }

function factsOf({ bank, trust, credit }: MailReading): MailFacts {
  return { bank, isTrusted: trust !== null, credit }
}

function moneyOf(
  ctx: Context,
  { bank, credit, messageIdHash }: MailReading,
  bankAccountId: number | null,
): MailMoney | null {
  if (!bank || !credit) return null
  const reference = paymentReferenceOf(bank, credit.reference)
  // The time of receipt: the bank's time has minutes at best, and a period must not begin before its money is known.
  return { bank, reference, messageIdHash, bankAccountId, amount: credit.amount, paidAt: ctx.clock.now() }
}

async function payableFacts(
  ctx: Context,
  mail: ReceivedMail,
  { transaction, app, account: assigned }: Payable,
  aboutAccount: BankAccount | null,
): Promise<PayableFacts> {
  const { reading } = mail
  const account = assigned?.disabledAt === null ? assigned : null
  const isAboutAnother = aboutAccount !== null && aboutAccount.id !== app.bankAccountId
  return {
    currency: transaction.currency,
    isBankPageOpened: transaction.bankPageOpenedAt !== null,
    account: account && {
      number: account.number,
      isOfMailsBank: isOfMailsBank(account, reading),
      hasMailbox: account.mailbox !== null,
      isRecipient: (ctx.config.env === 'development' || isAddressOf(account, mail)) && isToMailbox(account, reading),
    },
    isAboutFormerAccount:
      isAboutAnother && (await listAccountsOfApp(ctx.db, app.id)).some(({ id }) => id === aboutAccount.id),
  }
}

function summaryOf(
  { reading }: ReceivedMail,
  found: {
    readonly transferCode: string | null
    readonly transaction: Transaction | null
    readonly about: AccountOfMail
  },
): MailSummary {
  const { account, isOurs } = found.about
  const credit = reading.credit ?? reading.review?.credit ?? null
  const kind = reading.review?.kind ?? (reading.credit ? 'credit' : null)
  return {
    messageId: reading.messageId,
    messageIdHash: reading.messageIdHash,
    contentHash: reading.contentHash,
    bank: reading.bank,
    bankReference: credit?.reference ?? null,
    amount: credit?.amount ?? null,
    transferCode: found.transferCode,
    appId: found.transaction?.appId ?? null,
    bankAccountId: account?.id ?? null,
    transactionId: found.transaction?.id ?? null,
    bookedAt: credit?.bookedAt ?? null,
    review: isOurs ? kind : null,
    matchedAt: null,
    closedAt: null,
    // Anybody can cause such a mail. Operators see only those that came to an account's secret address.
    forwarding: account ? reading.forwarding : null,
  }
}

function report(ctx: Context, summary: MailSummary, answer: RelayAnswer): void {
  const { status, reason } = columnsOf(answer)
  const { bank, transactionId } = summary
  ctx.count('bank_mails_total', { status, reason: reason ?? '' })
  ctx.log.info({ bank, transactionId, status, reason }, 'a bank mail was processed')
}
