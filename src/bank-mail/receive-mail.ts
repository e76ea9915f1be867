import type { Context } from '#context.ts'
import { provider } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Queries } from '#db/queries.ts'
import {
  findBankAccountByForwardCode,
  findAssignment,
  findSoleOwner,
  listAccountsOfApp,
  listBankAccountsNumbered,
  type BankAccount,
} from '#bank-accounts/store.ts'
import { closeOpenSessions } from '#providers/engine/reconcile-payments.ts'
import { constantTimeEqual } from '#shared/crypto.ts'
import type { Transaction } from '#transactions/store.ts'
import { bankReaderOf } from './banks/readers.ts'
import {
  bookMoney,
  isBooked,
  movementOf,
  paymentReferenceOf,
  recordUnallocatedMoney,
  type MailMoney,
  type RecordedMoney,
  type UnallocatedMoney,
} from './book-money.ts'
import {
  relayAnswerOf,
  mailRefusalOf,
  transferCodeOf,
  type RelayAnswer,
  type MailFacts,
  type PayableFacts,
} from './mail-answer.ts'
import { forwardCodeIn, type RelayedMail } from './envelope.ts'
import type { MailReading } from './read-mail.ts'
import {
  endReviewsOfPayment,
  findPayableByCode,
  insertBankMail,
  listMailsOfPayment,
  type BankMail,
  type Payable,
} from './store.ts'

/** A relayed mail with its reading. */
export interface ReceivedMail extends RelayedMail {
  readonly reading: MailReading
}

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
      ? await perform(ctx, caller, keepMail, undefined, { summary, answer: refusal ?? NO_TRANSFER_CODE })
      : await perform(ctx, caller, takeMail, undefined, { summary, money, transaction })
  report(ctx, summary, answer)
  return answer
}

/** A mail that is not a payment, and the decision. */
interface Decided {
  readonly summary: MailSummary
  readonly answer: RelayAnswer
}

const keepMail = command({
  name: 'bank-mail.keep',
  input: nothing,
  async run(tx, _input, { summary, answer }: Decided): Promise<RelayAnswer> {
    await keep(tx, summary, answer)
    return answer
  },
})

/** Keeps a mail whose money no transaction gets. Operators see the money if it was not booked before. */
async function keep(tx: Tx, summary: MailSummary, answer: RelayAnswer): Promise<void> {
  const isReviewed = summary.review !== null && !(await isBooked(tx, summary))
  const waiting = isReviewed ? await recordMoneyOf(tx, summary) : null
  await insertBankMail(tx, {
    ...summary,
    ...columnsOf(answer),
    paymentId: waiting?.paymentId ?? null,
    review: waiting?.isWaiting === true ? summary.review : null,
    receivedAt: tx.now,
  })
}

interface Taken {
  readonly summary: MailSummary
  readonly money: MailMoney
  readonly transaction: Transaction
}

const takeMail = command({
  name: 'bank-mail.take',
  input: nothing,
  async run(tx, _input, { summary, money, transaction }: Taken): Promise<RelayAnswer> {
    const outcome = await bookMoney(tx, money, transaction.id)
    if (outcome.kind === 'duplicate') {
      // It may be another movement under the same Message-ID.
      await keep(tx, summary, DUPLICATE)
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

function isOfMailsBank(account: BankAccount, reading: MailReading): boolean {
  return bankReaderOf(reading.bank)?.bins.includes(account.bin) ?? false
}

function isAddressOf(account: BankAccount, mail: RelayedMail): boolean {
  const code = forwardCodeIn(mail.envelopeTo)
  return code !== null && constantTimeEqual(code, account.forwardCode)
}

/**
 * Whether the bank wrote the mail to the account's mailbox, if it has one. Ignores case: banks change it, and no mail provider gives two
 * people addresses that differ only in case.
 */
function isToMailbox({ mailbox }: BankAccount, { to }: MailReading): boolean {
  return mailbox === null || (to !== null && `${to.localPart}@${to.domain}`.toLowerCase() === mailbox.toLowerCase())
}

/** The account that a mail is about, by its bank, the account that it names, its `To` and the secret address that it came to. */
interface AccountOfMail {
  /** Null if it is not one of ours. */
  readonly account: BankAccount | null
  /** Whether the money is ours, so that operators must see the mail. */
  readonly isOurs: boolean
}

/** `expected` is the account of the mail's payment, if known. Most mails are about it. */
async function findAccountOf(ctx: Context, mail: ReceivedMail, expected: BankAccount | null): Promise<AccountOfMail> {
  const { reading } = mail
  if (expected && isAbout(expected, mail)) return { account: expected, isOurs: true }
  const addressed = await addressedAccount(ctx.db, mail)
  // The forwarding mailbox may get mails of any bank.
  if (reading.forwarding) return { account: addressed, isOurs: false }
  const number = accountNumberIn(reading)
  // Development does not check the secret address.
  const takesAnyAddress = ctx.config.env === 'development'
  return number === null
    ? accountByAddress(reading, addressed, takesAnyAddress)
    : accountByNumber(ctx.db, reading, { number, addressed, takesAnyAddress })
}

/** Of a mail that names no account. */
function accountByAddress(
  reading: MailReading,
  addressed: BankAccount | null,
  takesAnyAddress: boolean,
): AccountOfMail {
  if (!addressed || !isOfMailsBank(addressed, reading)) return { account: null, isOurs: takesAnyAddress }
  const isOurs = isToMailbox(addressed, reading)
  return { account: isOurs ? addressed : null, isOurs }
}

interface NumberAndAddress {
  readonly number: string
  readonly addressed: BankAccount | null
  readonly takesAnyAddress: boolean
}

/** Of a mail that names one of our accounts: it is about that account, whichever of our addresses it came to. */
async function accountByNumber(
  db: Queries,
  reading: MailReading,
  { number, addressed, takesAnyAddress }: NumberAndAddress,
): Promise<AccountOfMail> {
  if (!addressed && !takesAnyAddress) return { account: null, isOurs: false }
  const bins = bankReaderOf(reading.bank)?.bins ?? []
  const accounts = await listBankAccountsNumbered(db, bins, number)
  const fitting = accounts.filter((account) => isToMailbox(account, reading))
  const account = fitting.find(({ id }) => id === addressed?.id) ?? fitting.at(-1) ?? null
  return { account, isOurs: account !== null || (takesAnyAddress && accounts.length === 0) }
}

/** Whether everything in the mail fits this account, so that the mail cannot be about another. */
function isAbout(account: BankAccount, mail: ReceivedMail): boolean {
  const { reading } = mail
  const number = accountNumberIn(reading) ?? account.number
  return (
    number === account.number &&
    isAddressOf(account, mail) &&
    isOfMailsBank(account, reading) &&
    isToMailbox(account, reading)
  )
}

/** The number of the account that the mail names. */
function accountNumberIn({ credit, review }: MailReading): string | null {
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

/**
 * Records the money of a mail that waits. A bank may write the same words about another movement: once the money of such a mail is booked
 * or closed, another mail with its content is about new money.
 */
async function recordMoneyOf(tx: Tx, summary: MailSummary): Promise<RecordedMoney> {
  const money = await unallocatedMoneyOf(tx, summary)
  const recorded = await recordUnallocatedMoney(tx, money)
  const { bankReference, messageIdHash } = summary
  if (recorded.isWaiting || bankReference !== null || messageIdHash === null) return recorded
  const isCopy = (await listMailsOfPayment(tx, recorded.paymentId)).some((mail) => mail.messageIdHash === messageIdHash)
  if (isCopy) return recorded
  return recordUnallocatedMoney(tx, { ...money, reference: `${money.reference} ${messageIdHash}` })
}

/** The money of a mail for operators. Its amount counts only if the mail proves it. */
async function unallocatedMoneyOf(tx: Tx, summary: MailSummary): Promise<UnallocatedMoney> {
  const { review, amount, bankAccountId, appId } = summary
  const owner = bankAccountId === null ? appId : await ownerOf(tx, bankAccountId, appId)
  const { reference } = await movementOf(tx, summary)
  const paidAt = tx.now
  return { reference, amount: review === 'credit' ? amount : null, bankAccountId, appId: owner, paidAt }
}

/** The app that owns the money. If several apps have or had the account, it is the app of the transfer code, unless that app never had it. */
async function ownerOf(tx: Tx, bankAccountId: number, codesAppId: number | null): Promise<number | null> {
  const sole = await findSoleOwner(tx, bankAccountId)
  if (sole !== null || codesAppId === null) return sole
  return (await findAssignment(tx, codesAppId, bankAccountId)) ? codesAppId : null
}

function columnsOf(answer: RelayAnswer): Pick<BankMail, 'status' | 'reason'> {
  return { status: answer.status, reason: 'reason' in answer ? answer.reason : null }
}

function report(ctx: Context, summary: MailSummary, answer: RelayAnswer): void {
  const { status, reason } = columnsOf(answer)
  const { bank, transactionId } = summary
  ctx.count('bank_mails_total', { status, reason: reason ?? '' })
  ctx.log.info({ bank, transactionId, status, reason }, 'a bank mail was processed')
}
