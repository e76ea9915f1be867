import type { Tx } from '#commands/transaction.ts'
import type { Mail, MailFailure } from '#mail/send.ts'

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

/** Stops a mail before it leaves, thrown by `compose` or `handOver`: permanently, or until the time in which its reason may come. */
export class Stopped extends Error {
  override readonly name = 'Stopped'
  readonly until: 'permanently' | 'later'
  /** What operators see of it. */
  readonly reason: string | null

  constructor(until: 'permanently' | 'later', reason: string | null = null) {
    super(reason ?? `stopped ${until}`)
    this.until = until
    this.reason = reason
  }
}

/**
 * What one kind of mails has of its own. `sendMails` sends every kind the same way: a mail is claimed, composed, marked as handed over
 * between the mail server's go-ahead and the first byte, and recorded once the server has accepted it. A daemon that dies before the
 * mark loses nothing; one that dies after it leaves the mail unconfirmed, and it is not sent twice.
 */
export interface MailQueue<Due, Claimed> {
  /** Mails that are due, not yet claimed. */
  readonly due: AsyncGenerator<Due>
  /** Those of the mails that no other sweep has, under a lease by the database's clock. */
  claim(mails: readonly Due[]): Promise<Claimed[]>
  /** Gives back a claim whose mail was not tried. */
  release(tx: Tx, mail: Claimed): Promise<void>
  /** Throws `Stopped` for a mail that must not leave. */
  compose(mail: Claimed): Promise<Mail>
  /** Marks that the mail leaves now: from then on no sweep sends it again. Throws if the claim was lost, and `Stopped`. */
  handOver(mail: Claimed): Promise<void>
  /** Records that the mail server accepted the mails. Several are an error if an operator has settled one of them. */
  recordSent(mails: readonly Claimed[]): Promise<void>
  stop(mail: Claimed, stopped: Stopped): Promise<void>
  /** Records why a mail was not confirmed as sent, and when it is tried again, if ever. */
  fail(mail: Claimed, failure: MailFailure, reason: string): Promise<void>
  /** Called once for each mail. */
  count(mail: Claimed, outcome: Outcome): void
}
