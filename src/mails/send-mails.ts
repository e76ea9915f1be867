import type { Context } from '#context.ts'
import { MAIL_CONNECTIONS, MailError, openMailer, type Mailer, type MailFailure } from '#mail/send.ts'
import { messageOf } from '#shared/errors.ts'
import { MINUTE_MS } from '#shared/time.ts'
import { openMailClaimer } from './claim-mails.ts'
import { Stopped, type MailQueue, type Outcome } from './mail-queue.ts'
import { openSentRecorder, type SentRecorder } from './sent-recorder.ts'

/** A sweep of all apps ends after this long, well before its job counts as hung; the next sweep continues. */
const LONGEST_SWEEP_MS = 10 * MINUTE_MS
/** After this many mails in a row, whoever their customers are, the mail server itself counts as unreachable. */
const MAX_UNREACHABLE_IN_A_ROW = 3

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

/** Opens the mail server for the work of one sweep; returns false if none is configured. */
export async function withMailSweep(
  ctx: Context,
  { signal, appId }: SweepOptions,
  work: (sweep: MailSweep) => Promise<void>,
): Promise<boolean> {
  const mailer = openMailer(ctx.config, ctx.log)
  if (!mailer) return false
  const signals = [signal, appId === undefined ? AbortSignal.timeout(LONGEST_SWEEP_MS) : undefined]
  const either = AbortSignal.any(signals.filter((each) => each !== undefined))
  try {
    await work({ mailer, signal: either, unreachableInARow: 0 })
  } finally {
    mailer.close()
  }
  return true
}

/** Sends what is due in a queue, over several connections at once. Any number of daemons may do so at the same time. */
export async function sendMails<Due, Claimed>(
  ctx: Context,
  sweep: MailSweep,
  queue: MailQueue<Due, Claimed>,
): Promise<void> {
  // While the mail server is unreachable, another attempt would fail too, and would keep its claim from other daemons.
  const shouldStop = (): boolean => sweep.unreachableInARow >= MAX_UNREACHABLE_IN_A_ROW || sweep.signal.aborted
  const claimer = openMailClaimer(ctx, queue, shouldStop)
  const recorder = openSentRecorder(queue)
  const sendInTurn = async (): Promise<void> => {
    for (let mail = await claimer.next(); mail; mail = await claimer.next()) await sendOne(sweep, queue, mail, recorder)
  }
  const turns = await Promise.allSettled(Array.from({ length: MAIL_CONNECTIONS }, sendInTurn))
  const ends = await Promise.allSettled([recorder.end(), claimer.releaseAll()])
  await queue.due.return(undefined)
  for (const part of [...turns, ...ends]) if (part.status === 'rejected') throw part.reason
}

async function sendOne<Due, Claimed>(
  sweep: MailSweep,
  queue: MailQueue<Due, Claimed>,
  mail: Claimed,
  recorder: SentRecorder<Claimed>,
): Promise<void> {
  try {
    await sweep.mailer.send(await queue.compose(mail), { beforeHandOver: () => queue.handOver(mail) })
  } catch (error) {
    const failure = error instanceof MailError ? error.failure : 'refused'
    sweep.unreachableInARow = failure === 'unreachable' ? sweep.unreachableInARow + 1 : 0
    queue.count(mail, await recordFailure(queue, mail, failure, error))
    return
  }
  sweep.unreachableInARow = 0
  await recorder.record(mail)
}

async function recordFailure<Due, Claimed>(
  queue: MailQueue<Due, Claimed>,
  mail: Claimed,
  failure: MailFailure,
  error: unknown,
): Promise<Outcome> {
  // The mailer wraps what stopped a hand-over.
  const cause = error instanceof MailError ? error.cause : error
  if (cause instanceof Stopped) {
    await queue.stop(mail, cause)
    return 'dropped'
  }
  await queue.fail(mail, failure, messageOf(error).slice(0, 500))
  return OUTCOMES[failure]
}
