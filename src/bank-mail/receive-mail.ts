import type { Context } from '#context.ts'
import { provider } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Queries } from '#db/queries.ts'
import {
  findBankAccountByForwardCode,
  findSoleOwner,
  listAccountsOfApp,
  listBankAccountsNumbered,
  type BankAccount,
} from '#bank-accounts/store.ts'
import { closeOpenSessions } from '#providers/reconcile-payments.ts'
import { constantTimeEqual } from '#shared/crypto.ts'
import type { Transaction } from '#transactions/store.ts'
import { readerOf } from './banks/readers.ts'
import { bookMoney, isBooked, movementOf, recordWaitingMoney, type MailMoney, type WaitingMoney } from './book-money.ts'
import { answerOf, refusalOf, transferCodeOf, type Answer, type MailFacts, type PayableFacts } from './decide.ts'
import { forwardCodeIn, type RelayedMail } from './envelope.ts'
import type { MailReading } from './read-mail.ts'
import { endReviewsOfPayment, findPayable, insertBankMail, type BankMail, type Payable } from './store.ts'

/** A mail as it was read. */
export interface ReceivedMail extends RelayedMail {
  readonly reading: MailReading
}

/**
 * Decides on a mail that the relay posted, books its money where it is a payment, and keeps the redacted summary (specification 6,
 * contract 5 and 7). Money and summary are written together, so that a mail that is posted again after a crash is taken exactly once.
 */
export async function receiveMail(ctx: Context, mail: ReceivedMail): Promise<Answer> {
  const facts = factsOf(mail.reading)
  const transferCode = transferCodeOf(facts)
  const payable = transferCode === null ? null : await findPayable(ctx.db, transferCode)
  const subject = await findSubject(ctx, mail, payable?.account ?? null)
  const refusal = refusalOf(facts, payable && (await payableFacts(ctx, mail, payable, subject.account)))
  const transaction = payable?.transaction ?? null
  const summary = summaryOf(mail, { transferCode, transaction, subject })
  const money = moneyOf(ctx, mail.reading)
  const caller = provider('bank mail')
  const answer =
    refusal || !money || !transaction
      ? await perform(ctx, caller, keepMail, undefined, {
          summary,
          answer: refusal ?? { status: 'ignored', reason: 'no_transfer_code' },
        })
      : await perform(ctx, caller, takeMail, undefined, {
          summary: { ...summary, review: null },
          money: { ...money, bankAccountId: summary.bankAccountId },
          transaction,
        })
  tell(ctx, summary, answer)
  return answer
}

/** What a command about a mail works with. */
interface Decided {
  readonly summary: MailSummary
  readonly answer: Answer
}

const keepMail = command({
  name: 'bank-mail.keep',
  input: nothing,
  async run(tx, _input, { summary, answer }: Decided): Promise<Answer> {
    const isReviewed = summary.review !== null && !(await isBooked(tx, summary))
    const waiting = isReviewed ? await recordWaitingMoney(tx, await waitingMoneyOf(tx, summary)) : null
    await insertBankMail(tx, {
      ...summary,
      ...columnsOf(answer),
      paymentId: waiting?.paymentId ?? null,
      review: waiting?.isWaiting === true ? summary.review : null,
      receivedAt: tx.now,
    })
    return answer
  },
})

interface Taken {
  readonly summary: MailSummary
  readonly money: MailMoney
  readonly transaction: Transaction
}

const takeMail = command({
  name: 'bank-mail.take',
  input: nothing,
  // As `payment.confirm`: the unique id of the movement.
  isRepeatable: true,
  async run(tx, _input, { summary, money, transaction }: Taken): Promise<Answer> {
    const outcome = await bookMoney(tx, money, transaction)
    const paymentId = outcome.kind === 'duplicate' ? null : outcome.paymentId
    const answer = outcome.kind === 'duplicate' ? DUPLICATE : answerOf(outcome.kind, outcome.transaction.status)
    await insertBankMail(tx, { ...summary, ...columnsOf(answer), paymentId, receivedAt: tx.now })
    if (outcome.kind !== 'duplicate' && outcome.hadWaited) await endReviewsOfPayment(tx, outcome.paymentId)
    // Nobody shall pay by card what came by transfer. The relay waits for no provider.
    if (outcome.kind === 'processed' || outcome.kind === 'underpaid')
      tx.afterCommit(() => void closeOpenSessions(tx.ctx, transaction.id))
    return answer
  },
})

const DUPLICATE: Answer = { status: 'duplicate' }

function factsOf({ bank, trust, credit }: MailReading): MailFacts {
  return { bank, isTrusted: trust !== null, credit }
}

function moneyOf(ctx: Context, { bank, credit, messageIdHash }: MailReading): Omit<MailMoney, 'bankAccountId'> | null {
  if (!bank || !credit) return null
  const { reference, amount } = credit
  // The time of receipt: a bank's own time is of the minute at best, and a period must not begin before its money was known of.
  return { bank, reference, messageIdHash, amount, paidAt: ctx.clock.now() }
}

async function payableFacts(
  ctx: Context,
  mail: ReceivedMail,
  { transaction, app, account: assigned }: Payable,
  subject: BankAccount | null,
): Promise<PayableFacts> {
  const { reading } = mail
  const account = assigned?.disabledAt === null ? assigned : null
  const isSubjectOther = subject !== null && subject.id !== app.bankAccountId
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
      isSubjectOther && (await listAccountsOfApp(ctx.db, app.id)).some(({ id }) => id === subject.id),
  }
}

function isOfMailsBank(account: BankAccount, reading: MailReading): boolean {
  return readerOf(reading.bank)?.bins.includes(account.bin) ?? false
}

function isAddressOf(account: BankAccount, mail: RelayedMail): boolean {
  const code = forwardCodeIn(mail.envelopeTo)
  return code !== null && constantTimeEqual(code, account.forwardCode)
}

/**
 * Whether the bank wrote the mail to the mailbox of the account, where that is known. Case aside: banks change it, and no provider of
 * mailboxes gives two people addresses that differ in nothing else.
 */
function isToMailbox({ mailbox }: BankAccount, { to }: MailReading): boolean {
  return mailbox === null || (to !== null && `${to.localPart}@${to.domain}`.toLowerCase() === mailbox.toLowerCase())
}

/** What a mail is about, as far as its bank, what it names, its `To` and the secret address that it came to say. */
interface Subject {
  /** The account of ours; null where it is none. */
  readonly account: BankAccount | null
  /** Whether its money is ours, so that operators need to see it. Development asks for no secret address. */
  readonly isOurs: boolean
}

/** `expected`: the account that the mail's payment is to be made to, where that was read; most mails are about it. */
async function findSubject(ctx: Context, mail: ReceivedMail, expected: BankAccount | null): Promise<Subject> {
  const { reading } = mail
  if (expected && isAbout(expected, mail)) return { account: expected, isOurs: true }
  const addressed = await addressedAccount(ctx.db, mail)
  // The mailbox that is to forward may take mails of any bank.
  if (reading.forwarding) return { account: addressed, isOurs: false }
  const named = accountNamedIn(reading)
  const isFree = ctx.config.env === 'development'
  if (named === null) {
    const isFitting = addressed !== null && isOfMailsBank(addressed, reading)
    const isOurs = isFitting ? isToMailbox(addressed, reading) : isFree
    return { account: isFitting && isOurs ? addressed : null, isOurs }
  }
  if (!addressed && !isFree) return { account: null, isOurs: false }
  // A bank's mail that names an account of ours is about it, whichever of our addresses it came to.
  const bins = readerOf(reading.bank)?.bins ?? []
  const accounts = await listBankAccountsNumbered(ctx.db, bins, named)
  const fitting = accounts.filter((account) => isToMailbox(account, reading))
  const account = fitting.find(({ id }) => id === addressed?.id) ?? fitting.at(-1) ?? null
  return { account, isOurs: account !== null || (isFree && accounts.length === 0) }
}

/** Whether all that a mail says is of this account, so that none of the others can be meant. */
function isAbout(account: BankAccount, mail: ReceivedMail): boolean {
  const { reading } = mail
  const named = accountNamedIn(reading) ?? account.number
  return (
    named === account.number &&
    isAddressOf(account, mail) &&
    isOfMailsBank(account, reading) &&
    isToMailbox(account, reading)
  )
}

/** Its number. */
function accountNamedIn({ credit, review }: MailReading): string | null {
  return credit?.account ?? review?.credit?.account ?? null
}

/** The account whose secret address the mail came to. */
async function addressedAccount(db: Queries, mail: RelayedMail): Promise<BankAccount | null> {
  const code = forwardCodeIn(mail.envelopeTo)
  return code === null ? null : findBankAccountByForwardCode(db, code)
}

type MailSummary = Omit<BankMail, 'id' | 'receivedAt' | 'status' | 'reason' | 'paymentId'>

function summaryOf(
  { reading }: ReceivedMail,
  found: { readonly transferCode: string | null; readonly transaction: Transaction | null; readonly subject: Subject },
): MailSummary {
  const { account, isOurs } = found.subject
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
    paidAt: credit?.bookedAt ?? null,
    review: isOurs ? kind : null,
    matchedAt: null,
    closedAt: null,
    // Anybody may send such a mail; whoever does not know an account's address has nothing to ask.
    forwarding: account ? reading.forwarding : null,
  }
}

/** What operators are to find of a mail's money. What a mail does not prove is not counted as money until somebody says how much it is. */
async function waitingMoneyOf(tx: Tx, summary: MailSummary): Promise<WaitingMoney> {
  const { review, amount, bankAccountId, appId } = summary
  const owner = bankAccountId === null ? null : await findSoleOwner(tx, bankAccountId)
  const known = await movementOf(tx, summary)
  const paidAt = tx.now
  return { ...known, amount: review === 'credit' ? amount : null, bankAccountId, appId: appId ?? owner, paidAt }
}

function columnsOf(answer: Answer): Pick<BankMail, 'status' | 'reason'> {
  return { status: answer.status, reason: 'reason' in answer ? answer.reason : null }
}

function tell(ctx: Context, summary: MailSummary, answer: Answer): void {
  const { status, reason } = columnsOf(answer)
  const { bank, transactionId } = summary
  ctx.count('bank_mails_total', { status, reason: reason ?? '' })
  ctx.log.info({ bank, transactionId, status, reason }, 'a bank mail was processed')
}
