import type { Tx } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import type { MailFailure } from '#mail/send.ts'
import { addMs, HOUR_MS, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { uncountMail } from './limits/store.ts'
import type { MailKind, MailRow } from './mail-kinds.ts'
import type { Claim } from './store.ts'

/** A mail that the server refused waits this long, then twice as long each time, up to an hour. */
const FIRST_PAUSE_MS = MINUTE_MS
const LONGEST_PAUSE_MS = HOUR_MS

/** Columns of every kind. */
const common = <Mail extends MailRow>(changes: Partial<Pick<MailRow, 'status' | 'lastError' | 'sentAt'>>) =>
  changes as Partial<Mail>

/** Records that the mail server accepted the mails; returns how many, without those that an operator has settled in the meantime. */
export async function markSent<Mail extends MailRow>(
  tx: Tx,
  { table, heldBy }: MailKind<Mail>,
  claims: readonly Claim[],
  sentAt: RealTime,
): Promise<number> {
  let sent = 0
  for (const alike of Map.groupBy(claims, ({ marks }) => marks.map(Number).join(' ')).values())
    sent += await tx.update(table, heldBy(alike), common<Mail>({ status: 'sent', sentAt, lastError: null }))
  return sent
}

/** Ends a claim whose mail did not leave, so that it counts no more; `changes` make it wait, or give it up. */
export async function release<Mail extends MailRow>(
  tx: Tx,
  { table, heldBy }: MailKind<Mail>,
  claim: Claim,
  changes: Partial<Mail>,
): Promise<void> {
  if ((await tx.update(table, heldBy([claim]), changes)) === 1) await uncountMail(tx, claim)
}

/** Why a mail was not confirmed as sent. */
export interface Failed {
  readonly failure: MailFailure
  readonly reason: string
  /** The address that it was for; null where the kind keeps none. */
  readonly to: string | null
}

/** Records why a mail was not confirmed as sent. If it did not leave, it is tried again later, or given up. */
export async function recordFailure<Mail extends MailRow>(
  tx: Tx,
  kind: MailKind<Mail>,
  claim: Claim,
  failed: Failed,
): Promise<void> {
  const lastError = failed.reason
  if (failed.failure === 'unknown') await tx.update(kind.table, kind.heldBy([claim]), common<Mail>({ lastError }))
  else await release(tx, kind, claim, { ...nextAfter(kind, claim, failed, await databaseNow(tx.ctx, tx)), lastError })
}

function nextAfter<Mail extends MailRow>(
  { waiting, givenUp, unreachableMs, mostFailures }: MailKind<Mail>,
  claim: Claim,
  { failure, to }: Failed,
  now: RealTime,
): Partial<Mail> {
  if (failure === 'no_such_address') return givenUp(to)
  if (failure === 'unreachable') return waiting(addMs(now, unreachableMs))
  const failures = claim.failures + 1
  const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(claim.failures, 10), LONGEST_PAUSE_MS)
  return { ...(failures > mostFailures ? givenUp(to) : waiting(addMs(now, pauseMs))), failures }
}
