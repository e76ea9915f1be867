import { appNow } from '#apps/app-time.ts'
import { getApp, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { listCustomersByIds } from '#customers/store.ts'
import { databaseNow } from '#db/database-now.ts'
import { readPages } from '#db/read-pages.ts'
import { listPlansByIds, listPricesByIds } from '#plans/store.ts'
import { keyOf, listPromotionsOf } from '#promotions/store.ts'
import { shuffled } from '#shared/shuffled.ts'
import type { Subscription } from '#subscriptions/store.ts'
import type { DueReminder } from '#mails/compose-reminder.ts'
import { STAGES, type Stage } from './stages.ts'
import { endOf, listDueSubscriptions, listMovedApps, type SweepScope } from './due/store.ts'

/** Small, so that what a page holds is fresh when it is sent, and memory stays flat. */
const PAGE_SIZE = 100

/** Apps that share one present: all apps in real time, or one app with its own clock. */
export interface Sweep {
  readonly scope: SweepScope
  readonly clockOffsetMs: number
}

/** Sweeps that together cover every app once, or the one sweep of `appId`. */
export async function listSweeps(ctx: Context, appId?: number): Promise<Sweep[]> {
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

/** `new`: mails that have not failed. `with retries`: also those that have, in random order. */
export type Tries = 'new' | 'with retries'

/**
 * Yields every mail that is due now in one sweep, page by page, without claiming it. Skips `appsAtLimit`, which may grow while the
 * generator runs.
 */
export async function* findDue(
  ctx: Context,
  sweep: Sweep,
  appsAtLimit: ReadonlySet<number>,
  tries: Tries = 'with retries',
): AsyncGenerator<DueReminder> {
  const apps = new Map<number, App>()
  for (const stage of STAGES) yield* findInWindow(ctx, sweep, tries, stage, appsAtLimit, apps)
}

async function* findInWindow(
  ctx: Context,
  sweep: Sweep,
  tries: Tries,
  stage: Stage,
  exceptApps: ReadonlySet<number>,
  apps: Map<number, App>,
): AsyncGenerator<DueReminder> {
  const pages = readPages<Subscription>(PAGE_SIZE, async (last, limit) => {
    const realNow = await databaseNow(ctx, ctx.db)
    return listDueSubscriptions(ctx.db, {
      scope: sweep.scope,
      stage,
      now: appNow(sweep, realNow),
      realNow,
      exceptApps,
      withFailed: tries === 'with retries',
      after: last && endOf(last),
      limit,
    })
  })
  for await (const page of pages) yield* await withContent(ctx, stage, tries === 'new' ? page : shuffled(page), apps)
}

async function withContent(
  ctx: Context,
  stage: Stage,
  page: readonly Subscription[],
  apps: Map<number, App>,
): Promise<DueReminder[]> {
  const [plans, prices, customers, promotions] = await Promise.all([
    listPlansByIds(ctx.db, idsOf(page, 'planId')),
    listPricesByIds(ctx.db, idsOf(page, 'priceId')),
    listCustomersByIds(ctx.db, idsOf(page, 'customerId')),
    listPromotionsOf(ctx.db, page),
  ])
  const due: DueReminder[] = []
  for (const subscription of page) {
    const { planId, priceId, customerId, currentPeriodEnd: periodEnd, appId } = subscription
    const app = apps.get(appId) ?? (await getApp(ctx.db, appId))
    apps.set(appId, app)
    const [plan, price] = [plans.get(planId), prices.get(priceId)]
    const customer = customerId === null ? undefined : customers.get(customerId)
    const promotion = promotions.get(keyOf(subscription)) ?? null
    // A row may be gone since the page was read.
    if (plan && price && customer && periodEnd)
      due.push({ app, subscription, periodEnd, stage, plan, price, promotion, customer })
  }
  return due
}

function idsOf(page: readonly Subscription[], column: 'planId' | 'priceId' | 'customerId'): number[] {
  return page.flatMap((subscription) => subscription[column] ?? [])
}
