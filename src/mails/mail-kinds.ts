import type { Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import type { MailRow, MailStatus } from '#mail/mail-columns.ts'
import type { Table } from '#db/table.ts'
import { MINUTE_MS } from '#shared/time.ts'
import { receipts, type Receipt } from '#transactions/receipts/store.ts'
import { releaseBeforeHandOver, type Claim } from './claims/store.ts'
import { deleteClaim, reminders, type Reminder } from './reminders/store.ts'

/** What differs between the kinds of mails. */
export interface MailKind<Mail extends MailRow = MailRow> {
  readonly noun: 'reminder' | 'receipt'
  readonly table: Table<Mail>
  /** Ends the claim of a mail that never failed and was not tried: it is as before the claim. */
  unclaim(tx: Tx, claim: Claim): Promise<void>
  /** The status of a mail that is not tried again, or not to this address. */
  readonly givenUp: Extract<MailStatus, 'refused' | 'dropped'>
  /** Pause after the mail server was unreachable; such a failure does not count against the mail. */
  readonly unreachablePauseMs: number
  /** A mail with more failures is given up. */
  readonly maxFailures: number
}

/** Renewal mails. A mail has a row from its first claim on. Retries end with the stage. */
export const REMINDERS: MailKind<Reminder> = {
  noun: 'reminder',
  table: reminders,
  unclaim: deleteClaim,
  givenUp: 'refused',
  // The time until the next sweep is pause enough.
  unreachablePauseMs: 0,
  maxFailures: Infinity,
}

/** Mails about money. A mail has a row from the change on that it reports. */
export const RECEIPTS: MailKind<Receipt> = {
  noun: 'receipt',
  table: receipts,
  unclaim: async (tx, claim) =>
    releaseBeforeHandOver(tx, claim, { status: 'due', retryAt: await databaseNow(tx.ctx, tx) }),
  givenUp: 'dropped',
  unreachablePauseMs: MINUTE_MS,
  maxFailures: 30,
}
