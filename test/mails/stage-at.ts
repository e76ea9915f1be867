import { STAGES, hasStage, stageWindow, type Stage } from '#mails/stages.ts'
import type { AppTime } from '#shared/time.ts'

/** The one stage whose window holds `now`, or null: before the first, after the last, or where the period skips it. */
export function stageAt(periodStart: AppTime, periodEnd: AppTime, now: AppTime): Stage | null {
  const open = STAGES.find((stage) => {
    const { from, until } = stageWindow(stage, periodEnd)
    return from <= now && now < until
  })
  return open !== undefined && hasStage(open, periodStart, periodEnd) ? open : null
}
