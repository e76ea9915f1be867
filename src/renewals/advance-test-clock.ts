import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { appNow } from '#apps/app-time.ts'
import { getApp, moveAppClock, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Caller } from '#commands/caller.ts'
import { command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { databaseNow } from '#db/database-now.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { SECOND_MS, addMs, formatTimestamp, parseAppTime, type AppTime } from '#shared/time.ts'
import { integer, timestamp } from '#shared/validate.ts'
import { expireDue } from './expire-due.ts'
import { listOpenClaims, staleBefore, type OpenClaim } from './store.ts'

/** Beyond it a century's period would end in a year that cannot be written. */
const LATEST = '9000-01-01 00:00:00'
const MOST_SECONDS = 100 * 366 * 86_400
const POLL_MS = 20
/** How long the work of other daemons is waited for: mails take seconds; what takes longer may belong to one that died. */
const OTHERS_MS = 15 * SECOND_MS
/** Mails that an answer lists as pending at most. */
const MOST_PENDING = 100

/** The body of `POST /api/v1/test-clock`: one of the two (contract 3, Test clock). */
export const AdvanceClockInput = z
  .strictObject({
    advance_seconds: integer(0, MOST_SECONDS).optional().describe('How far to move: a hundred years at most.'),
    now: z.string().optional().describe('The time to move to, `2027-01-01 09:30:00`.'),
  })
  .refine(
    (input) => (input.advance_seconds === undefined) !== (input.now === undefined),
    'must hold either advance_seconds or now',
  )
  .meta({ examples: [{ advance_seconds: 86400 }] })

/** A reminder that another daemon has taken up and not finished; `claimed_at` is real time. */
const PendingReminder = z.strictObject({
  external_ref: z.string(),
  reminder_day: z.union([z.literal(3), z.literal(1), z.literal(0)]),
  claimed_at: timestamp,
})

/** The answer of `GET /api/v1/test-clock`. */
export const TestClockOutput = z.strictObject({ now: timestamp }).meta({ examples: [{ now: '2026-12-01 09:30:00' }] })

/** `pending` is there only where something is. */
export const AdvancedClockOutput = z
  .strictObject({
    now: timestamp,
    pending: z
      .array(PendingReminder)
      .optional()
      .describe('Reminders that another daemon is still sending; there only where there are any.'),
  })
  .meta({ examples: [{ now: '2026-12-02 09:30:00' }] })
export type AdvancedClock = z.infer<typeof AdvancedClockOutput>

/** The app's own time, as the test clock tells it. */
export function readTestClock(ctx: Context, app: App): { now: string } {
  requireSandbox(app)
  return { now: formatTimestamp(appNow(app, ctx.clock.now())) }
}

/**
 * Moves a sandbox app's own time forward in one jump, then runs its reminder and expiry work to the end, as for a daemon that was
 * down: it answers when all is done, or, with what is `pending`, when another daemon's part of it has not come to its end after
 * `othersMs`. That is no error: the clock has moved, and who repeated the call would move it twice. Throws `forbidden` for live apps, `invalid_request` for a step back.
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
  // Each round of a race lets one call through.
  while (!moved) moved = await perform(ctx, caller, moveClock, input, { app })
  // The work that follows goes by the clock, which a rehearsal has not moved.
  if (ctx.rehearsal) return readTestClock(ctx, moved)
  await expireDue(ctx, { appId: moved.id })
  const open = await sendRemindersToTheEnd(ctx, moved.id, othersMs)
  const { now } = readTestClock(ctx, moved)
  return open.length === 0 ? { now } : { now, pending: open.map(presentPending) }
}

function requireSandbox(app: App): void {
  if (!app.isSandbox) throw new AppError('forbidden', 'the test clock exists on sandbox apps only')
}

/** Null where another call moved the clock between our look and our step. */
const moveClock = command({
  name: 'app.clock',
  input: AdvanceClockInput,
  async run(tx, input, { app }: { readonly app: App }): Promise<App | null> {
    const current = await getApp(tx, app.id)
    const from = appNow(current, tx.now)
    const to = targetOf(input, from)
    const clockOffsetMs = to.getTime() - tx.now.getTime()
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

function targetOf(input: z.infer<typeof AdvanceClockInput>, from: AppTime): AppTime {
  if (input.advance_seconds !== undefined) {
    const to = addMs(from, input.advance_seconds * SECOND_MS)
    if (formatTimestamp(to) > LATEST) throw invalidField('advance_seconds', `must not lead beyond ${LATEST}`)
    return to
  }
  const to = parseAppTime(input.now ?? '')
  if (!to) throw invalidField('now', 'must be a time written YYYY-MM-DD HH:MM:SS')
  if (formatTimestamp(to) < formatTimestamp(from)) {
    throw invalidField('now', `must not be before the clock's present time, ${formatTimestamp(from)}`)
  }
  if (formatTimestamp(to) > LATEST) throw invalidField('now', `must not be after ${LATEST}`)
  // Within the present second it stays where it is: whole seconds are all that a caller sees.
  return to < from ? from : to
}

/**
 * Sends what is due. A daemon's own sweep may have taken up mails just before ours: the work has its end when those are settled, and
 * what was given up is sent after all. Returns what is still open after `othersMs`.
 */
async function sendRemindersToTheEnd(ctx: Context, appId: number, othersMs: number): Promise<OpenClaim[]> {
  const endMs = performance.now() + othersMs
  for (;;) {
    const before = await listOpen(ctx, appId)
    const { sendDueReminders } = await import('./send-due-reminders.ts')
    await sendDueReminders(ctx, { appId })
    let open = await listOpen(ctx, appId)
    // Who had one before and has none now may have given it up behind our look.
    if (before.length + open.length === 0) return []
    while (open.length > 0) {
      if (performance.now() >= endMs) return open
      await delay(POLL_MS)
      open = await listOpen(ctx, appId)
    }
  }
}

async function listOpen(ctx: Context, appId: number): Promise<OpenClaim[]> {
  return listOpenClaims(ctx.db, appId, staleBefore(await databaseNow(ctx, ctx.db)), MOST_PENDING)
}

function presentPending({ externalRef, stage, claimedAt }: OpenClaim): z.infer<typeof PendingReminder> {
  return { external_ref: externalRef, reminder_day: stage, claimed_at: formatTimestamp(claimedAt) }
}
