import type { Tx } from '#commands/transaction.ts'
import { where, type Condition } from '#db/conditions.ts'
import type { Present } from '#db/database-now.ts'
import type { Queries, RowMatch } from '#db/queries.ts'
import type { Table } from '#db/table.ts'
import type { MailRow, MailStatus } from '#mail/mail-columns.ts'
import { returnReservedMail } from '#mails/limits/store.ts'
import { addMs, MINUTE_MS, SECOND_MS, type RealTime } from '#shared/time.ts'

/** A mail that one sweep may send. */
export interface Claim {
  /** The table of the mail. */
  readonly table: Table<MailRow>
  readonly id: number
  readonly appId: number
  /** How often the mail failed before. */
  readonly failures: number
  /** The claim holds while the row has this time. */
  readonly claimedAt: RealTime
  readonly countedOn: string | null
}

/** Throws if no sweep has claimed the mail. */
export function claimOf(table: Table<MailRow>, { id, appId, failures, claimedAt, countedOn }: MailRow): Claim {
  if (!claimedAt) throw new Error(`no sweep has claimed mail ${id}`)
  return { table, id, appId, failures, claimedAt, countedOn }
}

/** Claims a mail as it was read, at `now`. Null if it has changed since: another sweep was faster. */
export async function claimAsRead(
  tx: Tx,
  table: Table<MailRow>,
  mail: MailRow,
  now: RealTime,
  countedOn: string | null = null,
): Promise<Claim | null> {
  const { id, status, claimedAt } = mail
  const claimed = { status: 'claimed', claimedAt: now, refusedTo: null, lastError: null, countedOn } as const
  const isOurs = (await tx.update(table, { id, status, claimedAt }, claimed)) === 1
  return isOurs ? claimOf(table, { ...mail, ...claimed }) : null
}

/**
 * Marks that the mail leaves now, in one autocommitted statement. From then on no sweep sends it again. False if the claim was lost, the
 * day that counts the mail has ended, or `stillDue` does not hold.
 */
export async function markHandedOver(db: Queries, claim: Claim, now: Present, stillDue: Condition): Promise<boolean> {
  const { sql, params } = where(
    [`r.id = ? AND r.status = 'claimed' AND r.claimed_at = ? AND r.handed_over_at IS NULL`, claim.id, claim.claimedAt],
    [`(r.counted_on IS NULL OR r.counted_on = DATE_FORMAT(${now.sql}, '%Y-%m-%d'))`, ...now.params],
    stillDue,
  )
  const marked = `UPDATE ${claim.table.name} r SET r.handed_over_at = ${now.sql} ${sql}`
  return (await db.run(marked, [...now.params, ...params])) === 1
}

/** Records that the mail server accepted the mail. False if an operator has settled it meanwhile: it stays as it is. */
export async function markSent(tx: Tx, claim: Claim, sentAt: RealTime): Promise<boolean> {
  return (await tx.update(claim.table, heldBy(claim), { status: 'sent', sentAt, lastError: null })) === 1
}

/** Notes an error of a mail that may have been sent. The claim stays. */
export async function noteError(tx: Tx, claim: Claim, lastError: string): Promise<void> {
  await tx.update(claim.table, heldBy(claim), { lastError })
}

/** What a mail is once its claim has ended. */
export type Released = Pick<MailRow, 'status'> & Partial<MailRow>

/**
 * Ends a claim whose mail was not handed over. A mail that a slow sweep handed over after it was taken for dead stays claimed: releasing
 * it would send it twice.
 */
export function releaseBeforeHandOver(tx: Tx, claim: Claim, changes: Released): Promise<void> {
  return release(tx, claim, { ...heldBy(claim), handedOverAt: null }, changes)
}

/** Ends a claim whose mail certainly did not leave, although it may have been handed over. */
export function releaseAfterFailure(tx: Tx, claim: Claim, changes: Released): Promise<void> {
  return release(tx, claim, heldBy(claim), changes)
}

/** Ends a claim if its row still matches. The mail then no longer counts towards a daily limit. */
async function release(tx: Tx, claim: Claim, held: RowMatch<MailRow>, changes: Released): Promise<void> {
  const released = await tx.update(claim.table, held, { ...changes, handedOverAt: null, countedOn: null })
  if (released === 1) await returnReservedMail(tx, claim)
}

/** The row of a claim that still holds. */
function heldBy({ id, claimedAt }: Claim): RowMatch<MailRow> {
  return { id, status: 'claimed', claimedAt }
}

/** A claim this old that was not handed over belongs to a sweep that died. */
const CLAIM_LEASE_MS = 60 * SECOND_MS

/** Claims from before this time belong to sweeps that died. */
export function staleBefore(now: RealTime): RealTime {
  return addMs(now, -CLAIM_LEASE_MS)
}

/** Claims of sweeps that died before they handed the mail over; at most `limit`. */
export async function listDeadClaims(
  db: Queries,
  table: Table<MailRow>,
  now: RealTime,
  limit: number,
): Promise<Claim[]> {
  const dead = `WHERE status = 'claimed' AND claimed_at < ? AND handed_over_at IS NULL LIMIT ?`
  return (await db.all(table, dead, [staleBefore(now), limit])).map((row) => claimOf(table, row))
}

/** The mail server answers within this time, or never. */
const CONFIRMATION_MS = 3 * MINUTE_MS

/** Mails that were handed over by this time, and not answered, are unconfirmed. */
function unansweredSince(now: RealTime): RealTime {
  return addMs(now, -CONFIRMATION_MS)
}

/** The rows `r` that are unconfirmed at `now`: they were handed over, and the mail server's answer will not come any more. */
export function areUnconfirmed(now: RealTime): Condition {
  return [`r.status = 'claimed' AND r.handed_over_at <= ?`, unansweredSince(now)]
}

/** The status of a mail; `unconfirmed` for a claimed one as `areUnconfirmed` finds it. */
export function mailState(
  { status, handedOverAt }: Pick<MailRow, 'status' | 'handedOverAt'>,
  now: RealTime,
): MailStatus | 'unconfirmed' {
  const isUnconfirmed = status === 'claimed' && handedOverAt !== null && handedOverAt <= unansweredSince(now)
  return isUnconfirmed ? 'unconfirmed' : status
}
