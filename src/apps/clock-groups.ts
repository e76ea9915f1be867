import type { Context } from '#context.ts'
import { getApp, listMovedApps } from './store.ts'

/** Which apps share one present: all apps in real time, or one app whose test clock was moved. */
export type ClockScope = { readonly appId: number } | 'apps in real time'

/** Apps that share one present. */
export interface ClockGroup {
  readonly scope: ClockScope
  readonly clockOffsetMs: number
}

/** The groups that together hold every app once, or the one of `appId` alone. */
export async function listClockGroups(ctx: Context, appId?: number): Promise<ClockGroup[]> {
  if (appId !== undefined) {
    const { clockOffsetMs } = await getApp(ctx.db, appId)
    return [{ scope: { appId }, clockOffsetMs }]
  }
  const moved = await listMovedApps(ctx.db)
  return [
    { scope: 'apps in real time', clockOffsetMs: 0 },
    ...moved.map(({ id, clockOffsetMs }) => ({ scope: { appId: id }, clockOffsetMs })),
  ]
}
