import { appNow } from '#apps/app-time.ts'
import type { ClockGroup } from '#apps/clock-groups.ts'
import { listAppsByIds } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { listCustomersByIds } from '#customers/store.ts'
import { databaseNow } from '#db/database-now.ts'
import { readPages } from '#db/read-pages.ts'
import { listPlansByIds, listPricesByIds } from '#plans/store.ts'
import { promotionKeyOf, listPromotionsOf } from '#promotions/store.ts'
import { shuffled } from '#shared/shuffled.ts'
import { endOf } from '#subscriptions/ends/store.ts'
import type { Subscription } from '#subscriptions/store.ts'
import type { DueReminder } from './compose-reminder.ts'
import { STAGES, type Stage } from './stages.ts'
import { listDueSubscriptions } from './due/store.ts'

/** Small, so that what a page holds is fresh when it is sent, and memory stays flat. */
const PAGE_SIZE = 100

/** `new`: mails that have not failed. `with retries`: also those that have, in random order. */
export type Tries = 'new' | 'with retries'

/**
 * Yields every mail that is due now in a group of apps, page by page, without claiming it. Skips `appsAtLimit`, which may grow while the
 * generator runs.
 */
export async function* findDue(
  ctx: Context,
  group: ClockGroup,
  appsAtLimit: ReadonlySet<number>,
  tries: Tries = 'with retries',
): AsyncGenerator<DueReminder> {
  for (const stage of STAGES) {
    const pages = readPages<Subscription>(PAGE_SIZE, async (last, limit) => {
      const realNow = await databaseNow(ctx, ctx.db)
      return listDueSubscriptions(ctx.db, {
        scope: group.scope,
        stage,
        now: appNow(group, realNow),
        realNow,
        exceptApps: appsAtLimit,
        withFailed: tries === 'with retries',
        after: last && endOf(last),
        limit,
      })
    })
    for await (const page of pages) yield* await withContent(ctx, stage, tries === 'new' ? page : shuffled(page))
  }
}

async function withContent(ctx: Context, stage: Stage, page: readonly Subscription[]): Promise<DueReminder[]> {
  const [apps, plans, prices, customers, promotions] = await Promise.all([
    listAppsByIds(ctx.db, idsOf(page, 'appId')),
    listPlansByIds(ctx.db, idsOf(page, 'planId')),
    listPricesByIds(ctx.db, idsOf(page, 'priceId')),
    listCustomersByIds(ctx.db, idsOf(page, 'customerId')),
    listPromotionsOf(ctx.db, page),
  ])
  const due: DueReminder[] = []
  for (const subscription of page) {
    const { planId, priceId, customerId, currentPeriodEnd: periodEnd, appId } = subscription
    const [app, plan, price] = [apps.get(appId), plans.get(planId), prices.get(priceId)]
    const customer = customerId === null ? undefined : customers.get(customerId)
    const promotion = promotions.get(promotionKeyOf(subscription)) ?? null
    // A row may be gone since the page was read.
    if (app && plan && price && customer && periodEnd)
      due.push({ app, subscription, periodEnd, stage, plan, price, promotion, customer })
  }
  return due
}

function idsOf(page: readonly Subscription[], column: 'appId' | 'planId' | 'priceId' | 'customerId'): number[] {
  return page.flatMap((subscription) => subscription[column] ?? [])
}
