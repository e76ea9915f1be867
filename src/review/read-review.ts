import { listApps } from '#apps/store.ts'
import { listMailsWithSuggestions } from '#bank-mail/list-bank-mails.ts'
import { fitOf } from '#bank-mail/fits.ts'
import type { Context } from '#context.ts'
import { databaseNow } from '#db/database-now.ts'
import { AppError } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { secondsSince } from '#shared/time.ts'
import { countWaiting, listWaiting, REVIEW_KINDS, type ReviewKind, type WaitingRow } from './store.ts'

/** A case that waits for an operator, as `review` prints it. */
export interface ReviewItem {
  readonly kind: ReviewKind
  /** As the commands take it: a number, or `evt_17` of an event. */
  readonly id: number | string
  /** Null where no app is known, and so is `sandbox`. */
  readonly app_id: number | null
  readonly sandbox: boolean | null
  /** Of real time. */
  readonly age_seconds: number
  /** What waits, in the smallest unit; null where no money waits, or nobody knows how much. */
  readonly amount: number | null
  readonly currency: string | null
  readonly subject: string
  /** A command that shows or decides the case. */
  readonly next_step: string
}

/** More than an operator works off; the list says when it is cut. */
export const MAX_ITEMS = 1000

/** What waits for an operator, the oldest first: each case once. `appId` null reads those of all apps, and of none. */
export async function readReview(ctx: Context, appId: number | null): Promise<ReviewItem[]> {
  const now = await databaseNow(ctx, ctx.db)
  const rows = await listWaiting(ctx.db, now, { appId, limit: MAX_ITEMS })
  const sandboxes = new Map((await listApps(ctx.db)).map(({ id, isSandbox }) => [id, isSandbox]))
  const matches = await matchesOf(ctx, rows)
  return rows.map((row) => ({
    kind: row.kind,
    id: row.kind === 'failed_webhook' ? formatId('evt', row.id) : row.id,
    app_id: row.appId,
    sandbox: row.appId === null ? null : (sandboxes.get(row.appId) ?? null),
    age_seconds: Math.floor(secondsSince(row.since, now)),
    amount: row.amount,
    currency: row.currency,
    subject: subjectOf(row),
    next_step: `billing-cli ${matches.get(row) ?? STEPS[row.kind](row)}`,
  }))
}

/** Throws `invalid_request` unless the case still waits as it did when it was read: another operator may have decided it. */
export async function requireUnchanged(ctx: Context, { kind, id, app_id, amount, subject }: ReviewItem): Promise<void> {
  const isSame = (item: ReviewItem): boolean =>
    item.kind === kind && item.id === id && item.amount === amount && item.subject === subject
  if (!(await readReview(ctx, app_id)).some(isSame))
    throw new AppError('invalid_request', 'nothing was done: the case has changed since it was opened')
}

/** How many cases of a kind wait, and for how long the oldest has. */
export interface ReviewSize {
  readonly kind: ReviewKind
  readonly cases: number
  readonly oldestSeconds: number
}

/** The size of the queue, by kind; each kind is there. */
export async function measureReview(ctx: Context): Promise<ReviewSize[]> {
  const now = await databaseNow(ctx, ctx.db)
  const counts = new Map((await countWaiting(ctx.db, now)).map((count) => [count.kind, count]))
  return REVIEW_KINDS.map((kind) => {
    const { cases = 0, oldest = now } = counts.get(kind) ?? {}
    return { kind, cases, oldestSeconds: secondsSince(oldest, now) }
  })
}

/** For unmatched money that fits a payment, the command that books it there. */
async function matchesOf(ctx: Context, rows: readonly WaitingRow[]): Promise<ReadonlyMap<WaitingRow, string>> {
  const mails = new Map(rows.filter(({ kind }) => kind === 'unmatched_bank_mail').map((row) => [row.id, row]))
  const commands = new Map<WaitingRow, string>()
  for (const mail of await listMailsWithSuggestions(ctx, [...mails.keys()])) {
    const row = mails.get(mail.id)
    const fit = fitOf(mail)
    if (row && fit) commands.set(row, fit.command)
  }
  return commands
}

/** The mail that an `unconfirmed_mail` is about. */
export function mailIn({ subject }: Pick<ReviewItem, 'subject'>): 'reminder' | 'receipt' {
  return subject.startsWith('receipt') ? 'receipt' : 'reminder'
}

const SUBJECTS: Partial<Record<ReviewKind, (row: WaitingRow) => string>> = {
  unmatched_bank_mail: ({ subject }) => subject ?? 'unknown bank',
  unreadable_bank_mail: ({ subject, reason }) => `${subject ?? 'unknown bank'}: ${reason ?? ''}`,
  unconfirmed_mail: ({ mail, subject }) => `${mail ?? ''} to ${subject ?? ''}`,
}

/** `user-1: underpaid` */
function subjectOf(row: WaitingRow): string {
  const { subject, reason } = row
  return SUBJECTS[row.kind]?.(row) ?? [subject, reason].filter((part) => part !== null && part !== '').join(': ')
}

const STEPS: Readonly<Record<ReviewKind, (row: WaitingRow) => string>> = {
  flagged_payment: ({ id }) => `transaction resolve ${id}`,
  unapplied_payment: ({ id }) => `payment show ${id}`,
  unmatched_bank_mail: () => 'bank-mail list --unmatched',
  unreadable_bank_mail: () => 'bank-mail list --unmatched',
  unconfirmed_mail: ({ id, mail }) => `${mail ?? 'reminder'}s settle ${id} --sent`,
  failed_webhook: ({ id }) => `webhook retry ${formatId('evt', id)}`,
  paused_account: ({ appId }) => `reconcile --app ${appId ?? ''}`,
  refused_address: () => 'reminders refused --retry',
}
