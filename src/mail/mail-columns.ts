import { bigint, exact, id, int, realTime, words } from '#db/columns.ts'
import type { Values } from '#db/table.ts'

/**
 * The state of a mail, a reminder or a receipt.
 *
 * - `due`: no sweep has tried it. Only a receipt has a row then.
 * - `claimed`: a sweep is sending it. Once `handedOverAt` is set, the mail server may have it, and no sweep sends it again.
 * - `failed`: it did not leave, or waits for its refund. A sweep may claim it again from `retryAt` on.
 * - `sent`: the mail server accepted it.
 * - `refused`: the address does not exist. A sweep may claim it again once the customer has another one.
 * - `dropped`: nobody gets it any more.
 */
export type MailStatus = 'due' | 'claimed' | 'failed' | 'sent' | 'refused' | 'dropped'

/** The columns that every table of mails has. Times are by the database's clock, except `sentAt`. */
export const mailColumns = {
  id: id(),
  appId: bigint('app_id'),
  status: exact('status', 16).as<MailStatus>(),
  /** When the latest claim began, which distinguishes it from earlier ones; null before the first one. */
  claimedAt: realTime('claimed_at').nullable(),
  handedOverAt: realTime('handed_over_at').nullable(),
  /** When the daemon recorded it, by its own clock. */
  sentAt: realTime('sent_at').nullable(),
  /** When a sweep may claim it; null for at once. */
  retryAt: realTime('retry_at').nullable(),
  /** How often it failed. */
  failures: int('failures'),
  lastError: words('last_error', 500).nullable(),
  /** The address that does not exist. */
  refusedTo: exact('refused_to', 254).nullable(),
  /** The UTC day, `YYYY-MM-DD`, whose daily limit the claim counts towards; null without a limit. */
  countedOn: exact('counted_on', 10).nullable(),
}

/** The values of a mail that no sweep has tried. */
export const UNTRIED = {
  claimedAt: null,
  handedOverAt: null,
  sentAt: null,
  retryAt: null,
  failures: 0,
  lastError: null,
  refusedTo: null,
  countedOn: null,
} as const

/** The part of a row that every table of mails has. */
export type MailRow = Values<typeof mailColumns>
