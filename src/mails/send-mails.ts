import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow, databasePresent } from '#db/database-now.ts'
import { MailError, type Mailer, type MailFailure } from '#mail/mail.ts'
import { openMailer } from '#mail/open-mailer.ts'
import { MAIL_CONNECTIONS } from '#mail/smtp-mailer.ts'
import { messageOf } from '#shared/errors.ts'
import { MINUTE_MS } from '#shared/time.ts'
import { truncate } from '#shared/truncate.ts'
import { claimMails, releaseUntried } from './claim-mails.ts'
import { listDeadClaims, markHandedOver, type Claim } from './claims/store.ts'
import type { MailKind } from './mail-kinds.ts'
import { Stopped, type ClaimedMail, type MailQueue, type Outcome } from './mail-queue.ts'
import { recordFailure } from './record-failure.ts'

/** A sweep of all apps ends after this long, well before its job counts as hung; the next sweep continues. */
const LONGEST_SWEEP_MS = 10 * MINUTE_MS
/** After this many mails in a row, whoever their customers are, the mail server itself counts as unreachable. */
const MAX_UNREACHABLE_IN_A_ROW = 3
/** Claims of dead sweeps that one sweep releases. */
const MAX_DEAD_CLAIMS = 1000

const OUTCOMES: Record<MailFailure, Outcome> = {
  unknown: 'unconfirmed',
  no_such_address: 'refused',
  unreachable: 'failed',
  refused: 'failed',
}

export interface SweepOptions {
  /** Starts no further mail; those under way are finished. */
  readonly signal?: AbortSignal
  /** Sweeps only this app. */
  readonly appId?: number
}

/** The state of one sweep, which may send several queues. */
export interface MailSweep {
  readonly mailer: Mailer
  readonly signal: AbortSignal
  unreachableInARow: number
}

/**
 * Opens the mail server for the work of one sweep, and frees the mails of this kind whose sweeps have died; returns false if no
 * mail server is configured.
 */
export async function withMailSweep(
  ctx: Context,
  kind: MailKind,
  { signal, appId }: SweepOptions,
  work: (sweep: MailSweep) => Promise<void>,
): Promise<boolean> {
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer) return false
  const signals = [signal, appId === undefined ? AbortSignal.timeout(LONGEST_SWEEP_MS) : undefined]
  const either = AbortSignal.any(signals.filter((each) => each !== undefined))
  try {
    await releaseDead(ctx, kind)
    await work({ mailer, signal: either, unreachableInARow: 0 })
  } finally {
    mailer.close()
  }
  return true
}

/** Releases the claims of sweeps that died, so that their mails are due again and no longer count towards a limit. */
async function releaseDead(ctx: Context, kind: MailKind): Promise<void> {
  const dead = await listDeadClaims(ctx.db, kind.table, await databaseNow(ctx, ctx.db), MAX_DEAD_CLAIMS)
  for (const claim of dead) await inTransaction(ctx, (tx) => releaseUntried(tx, kind, claim))
}

/** Sends what is due in a queue, over several connections at once. Any number of daemons may do so at the same time. */
export async function sendMails<Due>(ctx: Context, sweep: MailSweep, queue: MailQueue<Due>): Promise<void> {
  // While the mail server is unreachable, another attempt would fail too, and would keep its claim from other daemons.
  const shouldStop = (): boolean => sweep.unreachableInARow >= MAX_UNREACHABLE_IN_A_ROW || sweep.signal.aborted
  const claimed = claimMails(ctx, queue, shouldStop)
  const sendOneAfterAnother = async (): Promise<void> => {
    for (let next = await claimed.next(); !next.done; next = await claimed.next())
      await sendOne(ctx, sweep, queue, next.value)
  }
  const senders = await Promise.allSettled(Array.from({ length: MAIL_CONNECTIONS }, sendOneAfterAnother))
  const ends = await Promise.allSettled([claimed.return(undefined)])
  for (const part of [...senders, ...ends]) if (part.status === 'rejected') throw part.reason
}

async function sendOne<Due>(
  ctx: Context,
  sweep: MailSweep,
  queue: MailQueue<Due>,
  mail: ClaimedMail<Due>,
): Promise<void> {
  let to: string | null = null
  try {
    const composed = await queue.compose(mail.due)
    to = composed.to[0]?.address ?? null
    await sweep.mailer.send(composed, { beforeHandOver: () => handOver(ctx, queue, mail) })
  } catch (error) {
    // Another error says nothing about the mail server: the mail did not reach it.
    if (error instanceof MailError)
      sweep.unreachableInARow = error.failure === 'unreachable' ? sweep.unreachableInARow + 1 : 0
    queue.recordOutcome(mail.due, await recordError(ctx, queue, mail.claim, to, error))
    return
  }
  sweep.unreachableInARow = 0
  await queue.recordSent(mail)
  queue.recordOutcome(mail.due, 'sent')
}

/** The last check: a customer who has just paid or opted out gets no reminder. Throws `Stopped`. */
export async function handOver<Due>(
  ctx: Context,
  queue: MailQueue<Due>,
  { due, claim }: ClaimedMail<Due>,
): Promise<void> {
  const now = databasePresent(ctx)
  if (!(await markHandedOver(ctx.db, claim, now, queue.stillDue(due, now)))) throw new Stopped({ isFinal: false })
}

async function recordError<Due>(
  ctx: Context,
  queue: MailQueue<Due>,
  claim: Claim,
  to: string | null,
  error: unknown,
): Promise<Outcome> {
  // The mailer wraps what stopped a hand-over.
  const { failure, cause } = error instanceof MailError ? error : { failure: 'refused' as const, cause: error }
  if (cause instanceof Stopped) {
    await inTransaction(ctx, (tx) => queue.stop(tx, claim, cause))
    return 'dropped'
  }
  const reason = truncate(messageOf(error), 500)
  ctx.log.warn(
    { kind: queue.kind.noun, id: claim.id, appId: claim.appId, failure, reason },
    failure === 'unknown' ? 'a mail may or may not have been sent' : 'a mail was not sent',
  )
  await inTransaction(ctx, (tx) => recordFailure(tx, queue.kind, claim, { failure, reason, to }))
  return OUTCOMES[failure]
}
