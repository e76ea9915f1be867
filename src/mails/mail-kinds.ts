import type { MailRow, MailStatus } from '#mail/mail-columns.ts'
import type { Table } from '#db/table.ts'
import { MINUTE_MS } from '#shared/time.ts'
import { receipts, type Receipt } from '#transactions/store.ts'
import { reminders, type Reminder } from './store.ts'

/** What differs between the kinds of mails. */
export interface MailKind<Mail extends MailRow = MailRow> {
  readonly noun: 'reminder' | 'receipt'
  readonly table: Table<Mail>
  /** The status of a mail that is not tried again, or not to this address. */
  readonly givenUp: Extract<MailStatus, 'refused' | 'dropped'>
  /** How long a mail waits where the mail server is unreachable, which is no fault of the mail. */
  readonly unreachableMs: number
  /** A mail that fails more often is given up. */
  readonly mostFailures: number
}

/** Renewal mails. A mail has a row from its first claim on. Retries end with the stage. */
export const REMINDERS: MailKind<Reminder> = {
  noun: 'reminder',
  table: reminders,
  givenUp: 'refused',
  // The time until the next sweep is pause enough.
  unreachableMs: 0,
  mostFailures: Infinity,
}

/** Mails about money. A mail has a row from the change on that it reports. */
export const RECEIPTS: MailKind<Receipt> = {
  noun: 'receipt',
  table: receipts,
  givenUp: 'dropped',
  unreachableMs: MINUTE_MS,
  mostFailures: 30,
}
