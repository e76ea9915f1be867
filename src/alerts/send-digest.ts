import type { Context } from '#context.ts'
import { inTransaction } from '#commands/transaction.ts'
import { databaseNow } from '#db/database-now.ts'
import { measureReview } from '#review/read-review.ts'
import { counted } from '#shared/counted.ts'
import { formatUtc, type RealTime } from '#shared/time.ts'
import { digestDay } from './digest-day.ts'
import { channelsOf, writeMessages, type Content } from './messages.ts'
import { beginChore, findChore, listAlertsSince, type Alert } from './store.ts'

const CHORE = 'digest'
const MAX_COUNTED = 5000
/** Of each section; the rest is counted. */
const MAX_NAMED = 100

/**
 * Writes the daily digest once its time has come, by one of the daemons. The first call ever only records the time, so the first digest
 * is sent at the next such time.
 */
export async function sendDigest(ctx: Context): Promise<boolean> {
  const { digest } = ctx.config.alerts
  if (!digest) return false
  const now = await databaseNow(ctx, ctx.db)
  const last = await findChore(ctx.db, CHORE)
  if (last && digestDay(last.begunAt, digest) >= digestDay(now, digest)) return false
  const content = last && (await composeDigest(ctx, last.begunAt, now))
  return inTransaction(ctx, async (tx) => {
    if (!(await beginChore(tx, CHORE, last, now)) || !content) return false
    await writeMessages(tx, channelsOf(ctx.config), content)
    return true
  })
}

/** What was closed at `now` or since is still open here: the next digest has it as resolved. */
async function composeDigest(ctx: Context, since: RealTime, now: RealTime): Promise<Content> {
  const alerts = await listAlertsSince(ctx.db, since, MAX_COUNTED)
  const isOver = ({ closedAt }: Alert): boolean => closedAt !== null && closedAt < now
  const open = alerts.filter((alert) => !isOver(alert))
  const resolved = alerts.filter(isOver)
  const waiting = (await measureReview(ctx)).filter(({ cases }) => cases > 0)
  const review = waiting.map(({ kind, cases }) => `- ${counted(cases, kind.replaceAll('_', ' '))}`)
  return {
    alertId: null,
    type: 'alert.digest',
    kind: 'digest',
    since,
    subject: `${counted(open.length, 'open alert')}, ${counted(resolved.length, 'alert')} resolved since the last digest`,
    text: [
      ...section('Open', open.map(lineOf)),
      ...section('Resolved since the last digest', resolved.map(lineOf)),
      ...section('Waiting for review (billing-cli review)', review),
    ].join('\n'),
  }
}

function section(title: string, lines: readonly string[]): string[] {
  const named = lines.length === 0 ? ['- nothing'] : lines.slice(0, MAX_NAMED)
  const others = lines.length - named.length
  return [`${title}:`, ...named, ...(others > 0 ? [`- and ${others} more: billing-cli alert list`] : []), '']
}

function lineOf({ kind, subject, since }: Alert): string {
  return `- ${kind}: ${subject}, since ${formatUtc(since)}`
}
