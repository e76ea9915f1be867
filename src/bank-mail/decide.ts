/** Why a mail is no payment, in the order in which the questions are asked (specification 6, contract 5). */
export type IgnoredReason =
  | 'not_bank_email'
  | 'no_transfer_code'
  | 'unknown_transaction'
  | 'transaction_not_pending'
  | 'not_bank_transfer_transaction'
  | 'bank_account_unavailable'
export type RejectedReason = 'untrusted_sender' | 'invalid_recipient'

/** What the relay is told. */
export type Answer =
  | { readonly status: 'processed' | 'already_completed' | 'duplicate' | 'underpaid' }
  | { readonly status: 'ignored'; readonly reason: IgnoredReason }
  | { readonly status: 'rejected'; readonly reason: RejectedReason }

/** What a mail says, as far as the decision needs it. */
export interface MailFacts {
  readonly bank: string | null
  readonly isTrusted: boolean
  readonly credit: { readonly account: string | null; readonly codes: readonly string[] } | null
}

/** The transaction of the mail's transfer code. */
export interface PayableFacts {
  readonly currency: string
  /** From then on it takes bank transfers. */
  readonly isBankPageOpened: boolean
  /** The account that the app is paid to now; null where there is none, or where it is disabled. */
  readonly account: AccountFacts | null
  /** Whether the mail is about an account that the app had before. */
  readonly isAboutFormerAccount: boolean
}

export interface AccountFacts {
  readonly number: string
  /** Whether mails of the mail's bank are about accounts like this. */
  readonly isOfMailsBank: boolean
  /** Whether it is known which mailbox the bank writes to about it. */
  readonly hasMailbox: boolean
  /**
   * Whether the mail came to this account's secret address, or that is not asked (development), and the bank wrote it to the account's
   * mailbox, or that is not known.
   */
  readonly isRecipient: boolean
}

/** The one transfer code of the mail; null where it has none, or two that differ. */
export function transferCodeOf(mail: MailFacts): string | null {
  const [code, ...others] = mail.isTrusted ? (mail.credit?.codes ?? []) : []
  return code !== undefined && others.length === 0 ? code : null
}

/** Why the mail is no payment; null where its money is to be taken, which then decides the rest. */
export function refusalOf(mail: MailFacts, payable: PayableFacts | null): Answer | null {
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

/** What became of the money, in the relay's words. `transactionStatus` is the transaction's after it. */
export function answerOf(
  outcome: 'processed' | 'underpaid' | 'already_completed' | 'duplicate',
  transactionStatus: string,
): Answer {
  const isSettledOtherwise = outcome === 'already_completed' && transactionStatus !== 'completed'
  return isSettledOtherwise ? ignored('transaction_not_pending') : { status: outcome }
}

const INVALID_RECIPIENT: Answer = { status: 'rejected', reason: 'invalid_recipient' }

/**
 * A mail that names no account may be one that the bank wrote to anybody, about an account of his own: it counts only where the account
 * says which mailbox the bank writes to.
 */
function isAvailable(mail: MailFacts, account: AccountFacts | null): account is AccountFacts {
  if (!account?.isOfMailsBank) return false
  const named = mail.credit?.account ?? null
  return named === null ? account.hasMailbox : named === account.number
}

function ignored(reason: IgnoredReason): Answer {
  return { status: 'ignored', reason }
}
