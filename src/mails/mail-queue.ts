import type { Tx } from '#commands/transaction.ts'
import type { Condition } from '#db/conditions.ts'
import type { Present } from '#db/database-now.ts'
import type { Mail } from '#mail/mail.ts'
import type { Claim } from './claims/store.ts'
import type { MailKind } from './mail-kinds.ts'

/** What became of a mail that a sweep claimed. */
export type Outcome =
  | 'sent'
  /** Not handed over; a later sweep tries again. */
  | 'failed'
  /** The address does not exist: not tried again with this address. */
  | 'refused'
  /** May have been handed over: not sent again, listed for operators. */
  | 'unconfirmed'
  /** Stopped before it left: there is no reason for it any more, or not yet. */
  | 'dropped'

/** Stops a mail before it leaves. */
export class Stopped extends Error {
  override readonly name = 'Stopped'
  /** Whether it can never leave; otherwise a later sweep looks at it again. */
  readonly isFinal: boolean

  constructor({ isFinal }: { readonly isFinal: boolean }) {
    super(isFinal ? 'the mail is no longer needed' : 'the mail is not due now')
    this.isFinal = isFinal
  }
}

/** A mail that only this sweep may send. */
export interface ClaimedMail<Due> {
  readonly due: Due
  readonly claim: Claim
}

/**
 * The mails of one kind that a sweep sends. `sendMails` sends every kind the same way: a mail is claimed, composed, marked as handed over
 * between the mail server's go-ahead and the first byte, and recorded once the server has accepted it. A daemon that dies before the
 * mark loses nothing; one that dies after it leaves the mail unconfirmed, and it is not sent twice.
 */
export interface MailQueue<Due> {
  readonly kind: MailKind
  /** Mails that are due, not yet claimed. */
  readonly due: AsyncGenerator<Due>
  /** Those of the mails that no other sweep has. */
  claim(mails: readonly Due[]): Promise<ClaimedMail<Due>[]>
  /** Throws `Stopped` for a mail that must not leave. */
  compose(due: Due): Promise<Mail>
  /** What must still be true of the row `r` at the hand-over, at `now` by the database's clock. */
  stillDue(due: Due, now: Present): Condition
  /** Records that the mail server accepted the mail. */
  recordSent(mail: ClaimedMail<Due>): Promise<void>
  /** Ends a claim whose mail was stopped. */
  stop(tx: Tx, claim: Claim, stopped: Stopped): Promise<void>
  /** Called once for each mail that was claimed and not released untried. */
  recordOutcome(due: Due, outcome: Outcome): void
}
