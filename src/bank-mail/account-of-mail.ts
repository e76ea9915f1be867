import type { Context } from '#context.ts'
import { findBankAccountByForwardCode, listBankAccountsNumbered, type BankAccount } from '#bank-accounts/store.ts'
import type { Queries } from '#db/queries.ts'
import { constantTimeEqual } from '#shared/crypto.ts'
import { bankReaderOf } from './banks/readers.ts'
import { forwardCodeIn, type RelayedMail } from './envelope.ts'
import type { MailReading } from './read-mail.ts'

/** A relayed mail with its reading. */
export interface ReceivedMail extends RelayedMail {
  readonly reading: MailReading
}

/** The account that a mail is about, by its bank, the account that it names, its `To` and the secret address that it came to. */
export interface AccountOfMail {
  /** Null if it is not one of ours. */
  readonly account: BankAccount | null
  /** Whether the money is ours, so that operators must see the mail. */
  readonly isOurs: boolean
}

/** Finds the account that a mail is about. `expected` is the account of the mail's payment, if known: most mails are about it. */
export async function findAccountOf(
  ctx: Context,
  mail: ReceivedMail,
  expected: BankAccount | null,
): Promise<AccountOfMail> {
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

/** Whether the account is at the bank that `From` names. */
export function isOfMailsBank(account: BankAccount, reading: MailReading): boolean {
  return bankReaderOf(reading.bank)?.bins.includes(account.bin) ?? false
}

/** Whether the mail came to the account's secret address. */
export function isAddressOf(account: BankAccount, mail: RelayedMail): boolean {
  const code = forwardCodeIn(mail.envelopeTo)
  return code !== null && constantTimeEqual(code, account.forwardCode)
}

/**
 * Whether the bank wrote the mail to the account's mailbox, if it has one. Ignores case: banks change it, and no mail provider gives two
 * people addresses that differ only in case.
 */
export function isToMailbox({ mailbox }: BankAccount, { to }: MailReading): boolean {
  return mailbox === null || (to !== null && `${to.localPart}@${to.domain}`.toLowerCase() === mailbox.toLowerCase())
}
