import { DAY_MS, addMs, type AppTime } from '#shared/time.ts'

/** Days before the period end at which a mail is due; 0 is the notice that the period has ended (R170). */
export type Stage = 3 | 1 | 0

/** In chronological order. */
export const STAGES: readonly Stage[] = [3, 1, 0]

/** The notice of the end goes out in these days, or never. A customer may pay at any time (R110). */
export const GRACE_DAYS = 7

export interface Window {
  /** The first instant inside. */
  readonly from: AppTime
  /** The first instant after. */
  readonly until: AppTime
}

/** The days after the period end at which a stage begins and ends: 3 = [end−3d, end−1d), 1 = [end−1d, end), 0 = [end, end+7d) (R170). */
const DAYS: Readonly<Record<Stage, { readonly from: number; readonly until: number }>> = {
  3: { from: -3, until: -1 },
  1: { from: -1, until: 0 },
  0: { from: 0, until: GRACE_DAYS },
}

/** When a stage may be sent. */
export function stageWindow(stage: Stage, periodEnd: AppTime): Window {
  const { from, until } = DAYS[stage]
  return { from: addMs(periodEnd, from * DAY_MS), until: addMs(periodEnd, until * DAY_MS) }
}

/** Whether the period has this stage: it has none whose window began before the period did. */
export function hasStage(stage: Stage, periodStart: AppTime, periodEnd: AppTime): boolean {
  return stageWindow(stage, periodEnd).from >= periodStart
}

/** When the first mail about the end of a period is due. */
export function firstMailAt(periodStart: AppTime, periodEnd: AppTime): AppTime {
  const first = STAGES.find((stage) => hasStage(stage, periodStart, periodEnd)) ?? 0
  return stageWindow(first, periodEnd).from
}

/** The period ends whose window of `stage` holds `now`: later than `after`, and at the latest `upTo`. */
export function endsInWindow(stage: Stage, now: AppTime): { readonly after: AppTime; readonly upTo: AppTime } {
  const { from, until } = DAYS[stage]
  return { after: addMs(now, -until * DAY_MS), upTo: addMs(now, -from * DAY_MS) }
}
