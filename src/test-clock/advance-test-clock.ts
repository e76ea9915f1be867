import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { appNow } from '#apps/app-time.ts'
import { getApp, moveAppClock, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { databaseNow } from '#db/database-now.ts'
import { AppError, InvalidInput, invalidField } from '#shared/errors.ts'
import { SECOND_MS, addMs, formatTimestamp, parseAppTime, type AppTime, type RealTime } from '#shared/time.ts'
import { integer, timestamp } from '#shared/validate.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { staleBefore } from '#mails/claims/store.ts'
import { listOpenClaims, type ReminderWithOwner } from '#mails/lists/store.ts'

/** Later times would let a period of a hundred years end beyond year 9999. */
const LATEST = '9000-01-01 00:00:00'
const MAX_SECONDS = 100 * 366 * 86_400
const POLL_MS = 20
/** How long to wait for the work of other daemons. Mails take seconds; a daemon that takes longer may have died. */
const OTHERS_MS = 15 * SECOND_MS
/** Maximum number of mails that a response lists as pending. */
const MAX_PENDING = 100

/** The body of `POST /api/v1/test-clock`: one of the two (R250). */
export const AdvanceClockInput = z
  .strictObject({
    advance_seconds: integer(0, MAX_SECONDS).optional().describe('How far to move, at most a hundred years.'),
    now: z.string().optional().describe('The time to move to, `2027-01-01 09:30:00`.'),
  })
  .refine(
    (input) => (input.advance_seconds === undefined) !== (input.now === undefined),
    'must contain either advance_seconds or now',
  )
  .meta({ examples: [{ advance_seconds: 86400 }] })

/** A reminder that another daemon has claimed and not finished; `claimed_at` is real time. */
const PendingReminder = z.strictObject({
  external_ref: z.string(),
  reminder_day: z.union([z.literal(3), z.literal(1), z.literal(0)]),
  claimed_at: timestamp,
})

/** The answer of `GET /api/v1/test-clock`. */
export const TestClockOutput = z.strictObject({ now: timestamp }).meta({ examples: [{ now: '2026-12-01 09:30:00' }] })

/** The answer of `POST /api/v1/test-clock`. */
export const AdvancedClockOutput = z
  .strictObject({
    now: timestamp,
    pending: z
      .array(PendingReminder)
      .optional()
      .describe('Reminders that another daemon is still sending; absent if there are none.'),
  })
  .meta({ examples: [{ now: '2026-12-02 09:30:00' }] })
export type AdvancedClock = z.infer<typeof AdvancedClockOutput>

/** The app's own time. Throws `forbidden` for live apps. */
export function readTestClock(ctx: Context, app: App): { now: string } {
  requireSandbox(app)
  return { now: formatTimestamp(appNow(app, ctx.clock.now())) }
}

/**
 * Moves a sandbox app's own time forward in one jump, then completes its reminder and expiry work, as after a daemon was down. Work that
 * another daemon has not finished within `othersMs` is returned as `pending`. That is not an error: the clock has moved, and repeating the
 * call would move it twice. Throws `forbidden` for live apps, `invalid_request` for a step back.
 */
export async function advanceTestClock(
  ctx: Context,
  caller: Caller,
  app: App,
  input: unknown,
  othersMs = OTHERS_MS,
): Promise<AdvancedClock> {
  requireSandbox(app)
  let moved: App | null = null
  // Of several calls at once, one succeeds in each round.
  while (!moved) moved = await perform(ctx, caller, moveClock, input, { app })
  // The work depends on the clock, which a rehearsal has not moved.
  if (ctx.rehearsal) return readTestClock(ctx, moved)
  await expireDue(ctx, { appId: moved.id })
  const open = await sendRemindersToTheEnd(ctx, moved.id, othersMs)
  const { now } = readTestClock(ctx, moved)
  return open.length === 0 ? { now } : { now, pending: open.map(presentPending) }
}

function requireSandbox(app: App): void {
  if (!app.isSandbox) throw new AppError('forbidden', 'the test clock exists on sandbox apps only')
}

/** Null if another call has moved the clock since it was read. */
const moveClock = command({
  name: 'app.clock',
  input: AdvanceClockInput,
  async run(tx, input, { app }: { readonly app: App }): Promise<App | null> {
    const current = await getApp(tx, app.id)
    // Jobs use the database's clock: the work of the new time must be due by that one, too.
    const now = earlierOf(tx.now, await databaseNow(tx.ctx, tx))
    const from = appNow(current, now)
    const to = targetOf(input, from)
    const clockOffsetMs = to.getTime() - now.getTime()
    if (!(await moveAppClock(tx, app.id, current.clockOffsetMs, clockOffsetMs))) return null
    await tx.audit({
      appId: app.id,
      subject: `app ${app.id}`,
      before: { now: formatTimestamp(from), clock_offset_ms: current.clockOffsetMs },
      after: { now: formatTimestamp(to), clock_offset_ms: clockOffsetMs },
    })
    return { ...current, clockOffsetMs }
  },
})

function earlierOf(one: RealTime, other: RealTime): RealTime {
  return one < other ? one : other
}

function targetOf(input: z.infer<typeof AdvanceClockInput>, from: AppTime): AppTime {
  if (input.advance_seconds !== undefined) {
    const to = addMs(from, input.advance_seconds * SECOND_MS)
    if (formatTimestamp(to) > LATEST) throw invalidField('advance_seconds', `must not lead beyond ${LATEST}`)
    return to
  }
  const to = parseAppTime(input.now ?? '')
  if (!to) throw new InvalidInput('now', 'must be a time written YYYY-MM-DD HH:MM:SS')
  if (formatTimestamp(to) < formatTimestamp(from)) {
    throw invalidField('now', `must not be before the current time of the clock, ${formatTimestamp(from)}`)
  }
  if (formatTimestamp(to) > LATEST) throw new InvalidInput('now', `must not be after ${LATEST}`)
  // Callers see whole seconds: a `now` within the current second does not move the clock.
  return to < from ? from : to
}

/**
 * Sends what is due. A daemon's sweep may have claimed mails just before: this waits until those are finished, and sends what that
 * daemon released. Returns what is still open after `othersMs`.
 */
async function sendRemindersToTheEnd(ctx: Context, appId: number, othersMs: number): Promise<ReminderWithOwner[]> {
  const endMs = performance.now() + othersMs
  for (;;) {
    const before = await listOpen(ctx, appId)
    const { sendDueReminders } = await import('#mails/reminders/send-due-reminders.ts')
    await sendDueReminders(ctx, { appId })
    let open = await listOpen(ctx, appId)
    // A claim that was open before the sweep may have been released after the sweep passed it: sweep again.
    if (before.length + open.length === 0) return []
    while (open.length > 0) {
      if (performance.now() >= endMs) return open
      await delay(POLL_MS)
      open = await listOpen(ctx, appId)
    }
  }
}

async function listOpen(ctx: Context, appId: number): Promise<ReminderWithOwner[]> {
  return listOpenClaims(ctx.db, appId, staleBefore(await databaseNow(ctx, ctx.db)), MAX_PENDING)
}

function presentPending({ externalRef, stage, claimedAt }: ReminderWithOwner): z.infer<typeof PendingReminder> {
  return { external_ref: externalRef, reminder_day: stage, claimed_at: formatTimestamp(claimedAt) }
}
