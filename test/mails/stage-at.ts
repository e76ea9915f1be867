import type { Stage } from '#mails/reminders/stages.ts'
import { DAY_MS, addMs, type AppTime } from '#shared/time.ts'

/** The stage of a period at `now`, written a second time, by the days that are left; null where none holds or the period skips it. */
export function stageAt(periodStart: AppTime, periodEnd: AppTime, now: AppTime): Stage | null {
  const stage = stageOf((periodEnd.getTime() - now.getTime()) / DAY_MS)
  return stage === null || addMs(periodEnd, -stage * DAY_MS) < periodStart ? null : stage
}

function stageOf(daysLeft: number): Stage | null {
  if (daysLeft > 3) return null
  if (daysLeft > 1) return 3
  if (daysLeft > 0) return 1
  return daysLeft > -7 ? 0 : null
}
