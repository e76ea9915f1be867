/**
 * Why a mail does not count as a payment, in the order of the checks (R193). Only `transaction_not_pending` is about money that is
 * recorded: for a transaction that is no longer payable, which is then flagged (R123).
 */
export type IgnoredReason =
  | 'not_bank_email'
  | 'no_transfer_code'
  | 'unknown_transaction'
  | 'transaction_not_pending'
  | 'not_bank_transfer_transaction'
  | 'bank_account_unavailable'
export type RejectedReason = 'untrusted_sender' | 'invalid_recipient'

/** The answer to the relay. */
export type RelayAnswer =
  | { readonly status: 'processed' | 'already_completed' | 'duplicate' | 'underpaid' }
  | { readonly status: 'ignored'; readonly reason: IgnoredReason }
  | { readonly status: 'rejected'; readonly reason: RejectedReason }

/** The facts of a mail for the decision. */
export interface MailFacts {
  readonly bank: string | null
  readonly isTrusted: boolean
  readonly credit: { readonly account: string | null; readonly codes: readonly string[] } | null
}

/** The facts of the transaction of the mail's transfer code. */
export interface PayableFacts {
  readonly currency: string
  /** Whether it takes bank transfers. */
  readonly isBankPageOpened: boolean
  /** The account that receives the app's payments now; null if there is none or if it is disabled. */
  readonly account: AccountFacts | null
  /** Whether the mail is about an account that the app had before. */
  readonly isAboutFormerAccount: boolean
}

export interface AccountFacts {
  readonly number: string
  /** Whether the mail's bank writes about accounts of this BIN. */
  readonly isOfMailsBank: boolean
  /** Whether the account has a mailbox that the bank writes to. */
  readonly hasMailbox: boolean
  /**
   * Whether the mail came to this account's secret address (not checked in development), and the bank wrote it to the account's
   * mailbox (if it has one).
   */
  readonly isRecipient: boolean
}

/** The one transfer code of the mail; null if it has none, or two that differ. */
export function transferCodeOf(mail: MailFacts): string | null {
  const [code, ...others] = mail.isTrusted ? (mail.credit?.codes ?? []) : []
  return code !== undefined && others.length === 0 ? code : null
}

/** Why the mail is not a payment; null if its money must be booked. Booking then decides the rest. */
export function mailRefusalOf(mail: MailFacts, payable: PayableFacts | null): RelayAnswer | null {
  if (mail.bank === null) return ignored('not_bank_email')
  if (!mail.isTrusted) return { status: 'rejected', reason: 'untrusted_sender' }
  if (transferCodeOf(mail) === null) return ignored('no_transfer_code')
  if (!payable) return ignored('unknown_transaction')
  if (!payable.isBankPageOpened || payable.currency !== 'VND') return ignored('not_bank_transfer_transaction')
  if (!isAvailable(mail, payable.account))
    return payable.isAboutFormerAccount ? INVALID_RECIPIENT : ignored('bank_account_unavailable')
  if (!payable.account.isRecipient) return INVALID_RECIPIENT
  return null
}

/** The answer for an outcome of booking. `transactionStatus` is the status after it. */
export function relayAnswerOf(
  outcome: 'processed' | 'underpaid' | 'already_completed' | 'duplicate',
  transactionStatus: string,
): RelayAnswer {
  const isClosedOtherwise = outcome === 'already_completed' && transactionStatus !== 'completed'
  return isClosedOtherwise ? ignored('transaction_not_pending') : { status: outcome }
}

const INVALID_RECIPIENT: RelayAnswer = { status: 'rejected', reason: 'invalid_recipient' }

/** A mail that names no account may have been sent to anybody, about their own account. It counts only if our account has a mailbox. */
function isAvailable(mail: MailFacts, account: AccountFacts | null): account is AccountFacts {
  if (!account?.isOfMailsBank) return false
  const named = mail.credit?.account ?? null
  return named === null ? account.hasMailbox : named === account.number
}

function ignored(reason: IgnoredReason): RelayAnswer {
  return { status: 'ignored', reason }
}
