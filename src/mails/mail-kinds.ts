import type { Condition } from '#db/conditions.ts'
import type { Where } from '#db/queries.ts'
import type { Table } from '#db/table.ts'
import { addMs, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { receipts, type Receipt } from '#transactions/store.ts'
import { claimOf, reminders, type Claim, type Reminder } from './store.ts'

/** What the rows of every kind have. */
export interface MailRow {
  readonly id: number
  readonly appId: number
  readonly status: string
  readonly failures: number
  readonly lastError: string | null
  readonly sentAt: RealTime | null
}

/**
 * One kind of mails: what its rows store in the states that all mails have. `claims.ts` has the rules that lead from one to the next.
 *
 * - waiting: a reminder has no row, or is `failed` and may be claimed from `retryAt` on; a receipt is `due` from `nextTryAt` on.
 * - claimed: a reminder is `claimed` since `claimedAt`; a receipt is `due`, and `nextTryAt` is the end of the sweep's lease.
 * - handed over: a reminder is `claimed` with `handedOverAt`; a receipt is `handed_over`, and `nextTryAt` the end of a lease from then on.
 *   If the mail server has not answered after three minutes, the mail is unconfirmed: no sweep sends it again, an operator settles it.
 * - sent: the mail server accepted it.
 * - given up: a reminder is `refused`, until the customer has another address; a receipt is `dropped`.
 */
export interface MailKind<Mail extends MailRow> {
  readonly noun: 'reminder' | 'receipt'
  readonly table: Table<Mail>
  readonly claimOf: (mail: Mail) => Claim
  /** The rows of these claims as long as they hold; several claims must have the same marks. */
  readonly heldBy: (claims: readonly Claim[]) => Where<Mail>
  /** No sweep has it, and one may claim it from then on. */
  readonly waiting: (from: RealTime) => Partial<Mail>
  /** No sweep tries it again, or none to this address. */
  readonly givenUp: (to: string | null) => Partial<Mail>
  /** When it was handed over, if the mail server has not answered yet; else null. */
  readonly handedOverAt: (mail: Mail) => RealTime | null
  /** The rows `r` that were handed over by then, and not answered yet. */
  readonly handedOverBy: (then: RealTime) => Condition
  /** How long it waits where the mail server is unreachable, which is no fault of the mail. */
  readonly unreachableMs: number
  /** It is given up when it failed more often. */
  readonly mostFailures: number
}

const idOf = ({ id }: Claim): number => id
const marksOf = ({ marks }: Claim): Claim['marks'] => marks

/** Renewal mails: a row from their first claim on. Their stage ends, and with it what failed. */
export const REMINDERS: MailKind<Reminder> = {
  noun: 'reminder',
  table: reminders,
  claimOf,
  heldBy: (claims) => ({ id: claims.map(idOf), status: 'claimed', claimedAt: claims.flatMap(marksOf) }),
  waiting: (from) => ({ status: 'failed', handedOverAt: null, countedOn: null, retryAt: from }),
  givenUp: (to) => ({ status: 'refused', handedOverAt: null, countedOn: null, refusedTo: to }),
  handedOverAt: ({ status, handedOverAt }) => (status === 'claimed' ? handedOverAt : null),
  handedOverBy: (then) => [`r.status = 'claimed' AND r.handed_over_at <= ?`, then],
  // The time until the next sweep is pause enough.
  unreachableMs: 0,
  mostFailures: Infinity,
}

/** How long a sweep keeps a receipt from other sweeps; the hand-over begins the lease anew. */
const RECEIPT_LEASE_MS = 2 * MINUTE_MS

/** The end of a receipt's lease that begins then: what its row keeps as `nextTryAt`. */
export function leaseFrom(at: RealTime): RealTime {
  return addMs(at, RECEIPT_LEASE_MS)
}

/** Mails about money: a row from the change on that they report. One that is claimed is still `due`, when its lease ends. */
export const RECEIPTS: MailKind<Receipt> = {
  noun: 'receipt',
  table: receipts,
  // The hand-over counts it.
  claimOf: ({ id, appId, failures, nextTryAt }) => ({ id, appId, failures, marks: [nextTryAt], countedOn: null }),
  heldBy: (claims) => ({ id: claims.map(idOf), status: ['due', 'handed_over'], nextTryAt: claims.flatMap(marksOf) }),
  waiting: (from) => ({ status: 'due', nextTryAt: from }),
  givenUp: () => ({ status: 'dropped' }),
  handedOverAt: ({ status, nextTryAt }) => (status === 'handed_over' ? addMs(nextTryAt, -RECEIPT_LEASE_MS) : null),
  handedOverBy: (then) => [`r.status = 'handed_over' AND r.next_try_at <= ?`, leaseFrom(then)],
  unreachableMs: MINUTE_MS,
  mostFailures: 30,
}

/** A mail that was handed over this long ago will not be confirmed any more. */
const CONFIRMATION_MS = 3 * MINUTE_MS

/** Mails that were handed over at this time or earlier, by the database's clock, will not be answered any more. */
export function confirmedBy(now: RealTime): RealTime {
  return addMs(now, -CONFIRMATION_MS)
}

/** The stored status; `unconfirmed` where the mail was handed over so long before `now`, by the database's clock, that no answer will come. */
export function mailState<Mail extends MailRow>(
  { handedOverAt }: MailKind<Mail>,
  mail: Mail,
  now: RealTime,
): Mail['status'] | 'unconfirmed' {
  const at = handedOverAt(mail)
  return at !== null && at <= confirmedBy(now) ? 'unconfirmed' : mail.status
}
