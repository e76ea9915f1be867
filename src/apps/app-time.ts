import type { App } from './store.ts'
import { addMs, asAppTime, asRealTime, type AppTime, type RealTime } from '#shared/time.ts'

/**
 * The app's own time: real time, plus the offset of a sandbox app's test clock. Subscriptions, checkouts, renewals and reminders use it;
 * request signatures, webhook retries and the ledger of money use real time (R251).
 */
export function appNow(app: Pick<App, 'clockOffsetMs'>, now: RealTime): AppTime {
  return asAppTime(addMs(now, app.clockOffsetMs))
}

/** The real time of an instant of the app's own time. */
export function toRealTime(app: Pick<App, 'clockOffsetMs'>, instant: AppTime): RealTime {
  return asRealTime(addMs(instant, -app.clockOffsetMs))
}
