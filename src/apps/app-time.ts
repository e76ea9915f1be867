import type { App } from './store.ts'
import { addMs, asAppTime, asRealTime, type AppTime, type RealTime } from '#shared/time.ts'

/**
 * The app's own time: the real one, or for a sandbox app the one that its test clock was moved to. Everything about subscriptions,
 * checkouts, renewals and reminders counts in it; request signatures and webhook retries never do (contract 3, Test clock).
 */
export function appNow(app: Pick<App, 'clockOffsetMs'>, now: RealTime): AppTime {
  return asAppTime(addMs(now, app.clockOffsetMs))
}

/** The real instant of an instant of the app's own time. */
export function realTime(app: Pick<App, 'clockOffsetMs'>, instant: AppTime): RealTime {
  return asRealTime(addMs(instant, -app.clockOffsetMs))
}
