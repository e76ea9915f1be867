import { appNow } from '#apps/app-time.ts'
import { getApp, listApps, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { listCustomersByIds, type Customer } from '#customers/store.ts'
import { readPages } from '#db/read-pages.ts'
import { DAY_MS, addMs, formatTimestamp, type AppTime } from '#shared/time.ts'
import type { Subscription } from '#subscriptions/store.ts'
import { dailyLimit, findAppsAtLimit } from '#mails/daily-limit.ts'
import { GRACE_DAYS, STAGES, hasStage, stageWindow } from './stages.ts'
import type { DueReminder } from './compose-reminder.ts'
import { endOf, listEndingSubscriptions } from '#subscriptions/ends/store.ts'
import { listRemindersOfPeriods, reminderName, type Reminder } from './store.ts'

/** Why a mail will not go out, or not today. */
export type NoMailReason =
  | 'already_sent'
  | 'unconfirmed'
  | 'address_refused'
  | 'opted_out'
  | 'no_customer'
  | 'app_disabled'
  | 'period_too_short'
  /** It is due, and the app has reached its daily limit: sent when the next UTC day begins, if its stage still applies. */
  | 'daily_limit'

/** One mail that becomes due by the horizon if nobody pays before. */
export type PlannedReminder = ReturnType<typeof present>

const PAGE_SIZE = 500

/**
 * Who gets which mail when in the next `days` days, and who gets none and why (`reminders plan`), for one app or all of
 * them, each by its own clock. Lifetime subscriptions get no mails.
 */
export async function planReminders(ctx: Context, app: App | null, days: number): Promise<PlannedReminder[]> {
  const appsAtLimit = await findAppsAtLimit(ctx)
  const planned: PlannedReminder[] = []
  for (const each of app ? [app] : await listApps(ctx.db)) {
    planned.push(...(await planApp(ctx, each, days, appsAtLimit.has(each.id))))
  }
  return planned
}

/** How many due mails of each app wait because it has reached its daily limit. */
export async function countHeldBack(ctx: Context): Promise<{ app: App; mails: number; limit: number | null }[]> {
  const counts = []
  for (const appId of await findAppsAtLimit(ctx)) {
    const app = await getApp(ctx.db, appId)
    const mails = (await planApp(ctx, app, 0, true)).filter(({ reason }) => reason === 'daily_limit').length
    if (mails > 0) counts.push({ app, mails, limit: dailyLimit(ctx.config, app) })
  }
  return counts
}

async function planApp(ctx: Context, app: App, days: number, isAtLimit: boolean): Promise<PlannedReminder[]> {
  const now = appNow(app, ctx.clock.now())
  const horizon = addMs(now, days * DAY_MS)
  const planned: PlannedReminder[] = []
  const bounds = { from: addMs(now, -GRACE_DAYS * DAY_MS), until: addMs(horizon, Math.max(...STAGES) * DAY_MS) }
  const pages = readPages<Subscription>(PAGE_SIZE, (last, limit) =>
    listEndingSubscriptions(ctx.db, app.id, { ...bounds, after: last && endOf(last), limit }),
  )
  for await (const page of pages) planned.push(...(await planPage(ctx, app, page, { now, horizon, isAtLimit })))
  return planned.sort((a, b) => (a.due_at < b.due_at ? -1 : Number(a.due_at > b.due_at)))
}

async function planPage(
  ctx: Context,
  app: App,
  page: readonly Subscription[],
  { now, horizon, isAtLimit }: { readonly now: AppTime; readonly horizon: AppTime; readonly isAtLimit: boolean },
): Promise<PlannedReminder[]> {
  const customers = await listCustomersByIds(
    ctx.db,
    page.flatMap(({ customerId }) => customerId ?? []),
  )
  const tried = new Map((await listRemindersOfPeriods(ctx.db, page)).map((row) => [reminderName(row), row]))
  return page.flatMap((subscription) => {
    const { id: subscriptionId, currentPeriodEnd: periodEnd, customerId } = subscription
    if (!periodEnd) return []
    const customer = customerId === null ? null : (customers.get(customerId) ?? null)
    return STAGES.flatMap((stage) => {
      const { from, until } = stageWindow(stage, periodEnd)
      if (from > horizon || now >= until) return []
      const known = tried.get(reminderName({ subscriptionId, periodEnd, stage })) ?? null
      const mail = { app, subscription, periodEnd, stage, customer, known }
      return [present(mail, reasonAgainst(mail) ?? (isAtLimit && from <= now ? 'daily_limit' : null))]
    })
  })
}

/** A mail that becomes due, to the customer if there is one, and its row if it was tried. */
type Planned = Pick<DueReminder, 'app' | 'subscription' | 'periodEnd' | 'stage'> & {
  readonly customer: Customer | null
  readonly known: Reminder | null
}

/** `due_at` is when the window opens, or opened; times are the app's own. `last_error` is that of the last attempt, if it failed. */
function present({ app, subscription, periodEnd, stage, customer, known }: Planned, reason: NoMailReason | null) {
  return {
    app_id: app.id,
    is_test: app.isSandbox,
    external_ref: subscription.externalRef,
    reminder_day: stage,
    period_end: formatTimestamp(periodEnd),
    due_at: formatTimestamp(stageWindow(stage, periodEnd).from),
    to: customer?.email ?? null,
    locale: customer?.locale ?? null,
    will_send: reason === null,
    reason,
    last_error: known?.lastError ?? null,
  }
}

function reasonAgainst({ app, subscription, periodEnd, stage, customer, known }: Planned): NoMailReason | null {
  if (known?.status === 'sent') return 'already_sent'
  if (known?.handedOverAt) return 'unconfirmed'
  if (!hasStage(stage, subscription.periodStart, periodEnd)) return 'period_too_short'
  if (app.disabledAt) return 'app_disabled'
  if (subscription.remindersStoppedAt) return 'opted_out'
  if (!customer) return 'no_customer'
  return known?.status === 'refused' && known.refusedTo === customer.email ? 'address_refused' : null
}
