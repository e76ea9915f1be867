import type { MailRow, MailStatus } from '#mail/mail-columns.ts'
import type { Table } from '#db/table.ts'
import { MINUTE_MS } from '#shared/time.ts'
import { receipts, type Receipt } from '#transactions/receipts/store.ts'
import { reminders, type Reminder } from './reminders/store.ts'

/** What differs between the kinds of mails. */
export interface MailKind<Mail extends MailRow = MailRow> {
  readonly noun: 'reminder' | 'receipt'
  readonly table: Table<Mail>
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
  givenUp: 'refused',
  // The time until the next sweep is pause enough.
  unreachablePauseMs: 0,
  maxFailures: Infinity,
}

/** Mails about money. A mail has a row from the change on that it reports. */
export const RECEIPTS: MailKind<Receipt> = {
  noun: 'receipt',
  table: receipts,
  givenUp: 'dropped',
  unreachablePauseMs: MINUTE_MS,
  maxFailures: 30,
}
