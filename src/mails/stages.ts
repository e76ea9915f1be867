import { DAY_MS, addMs, type AppTime } from '#shared/time.ts'

/** Days before the period end at which a mail is due; 0 is the notice that the period has ended (R170). */
export type Stage = 3 | 1 | 0

/** In chronological order. */
export const STAGES: readonly Stage[] = [3, 1, 0]

/** A customer may pay for 7 days after the end; no mail goes out later (R110). */
export const GRACE_DAYS = 7

export interface Window {
  /** The first instant inside. */
  readonly from: AppTime
  /** The first instant after. */
  readonly until: AppTime
}

/** When a stage may be sent: 3 = [end−3d, end−1d), 1 = [end−1d, end), 0 = [end, end+7d) (R170). */
export function stageWindow(stage: Stage, periodEnd: AppTime): Window {
  const days = (count: number): AppTime => addMs(periodEnd, count * DAY_MS)
  switch (stage) {
    case 3:
      return { from: days(-3), until: days(-1) }
    case 1:
      return { from: days(-1), until: periodEnd }
    case 0:
      return { from: periodEnd, until: days(GRACE_DAYS) }
  }
}

/** Whether the period has this stage: not where the stage's window began before the period did. */
export function hasStage(stage: Stage, periodStart: AppTime, periodEnd: AppTime): boolean {
  return stageWindow(stage, periodEnd).from >= periodStart
}

/** The period ends whose window of `stage` holds `now`: later than `after`, and at the latest `upTo`. */
export function endsInWindow(stage: Stage, now: AppTime): { readonly after: AppTime; readonly upTo: AppTime } {
  const days = (count: number): AppTime => addMs(now, count * DAY_MS)
  switch (stage) {
    case 3:
      return { after: days(1), upTo: days(3) }
    case 1:
      return { after: now, upTo: days(1) }
    case 0:
      return { after: days(-GRACE_DAYS), upTo: now }
  }
}
