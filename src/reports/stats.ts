import { appNow } from '#apps/app-time.ts'
import { listApps, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { readPages } from '#db/read-pages.ts'
import { sumUnallocated } from '#payments/lists/store.ts'
import { GRACE_DAYS } from '#mails/reminders/stages.ts'
import type { RealTime } from '#shared/time.ts'
import {
  countEndedPeriods,
  countEventsByStatus,
  countSubscriptions,
  listUnservedPeriods,
  sumFlagged,
  sumSurplus,
  type AppScope,
  type AppMode,
  type PaidPeriod,
  type SubscriptionCounts,
} from './store.ts'
import { sumExpected } from './expected.ts'
import { fraction } from './movements/renewal-rates.ts'
import { monthOf } from './month.ts'
import { gatherMonths, type Months } from './months.ts'
import { sumBy, type Amounts } from './sales/figures.ts'
import { listCashMonths, type CashMonth } from './sales/store.ts'
import { unearnedOf } from './unearned.ts'

/** A sum of money in the smallest unit of its currency. */
export interface Sum {
  readonly currency: string
  readonly amount: bigint
}

/**
 * The statistics of a seller of prepaid periods. Amounts in the smallest unit. `cash` is by months in UTC; `month` and what is compared
 * with it by those of the app's time zone, and in UTC where they are of several apps.
 */
export interface Stats extends Months {
  readonly mode: AppMode
  readonly app_ids: readonly number[]
  readonly subscriptions: SubscriptionCounts
  readonly revenue: readonly {
    readonly currency: string
    readonly payments: number
    readonly received: bigint
    readonly refunded: bigint
    readonly net: bigint
  }[]
  readonly cash: readonly CashMonth[]
  /** Paid and not yet served: what would be owed if the service ended now. Lifetime purchases count as served. */
  readonly unearned: readonly Sum[]
  /** Received and neither applied, refunded nor closed: flagged or unallocated, it waits for an operator. */
  readonly unapplied: readonly Sum[]
  /** Payments of an unknown amount: they wait too, and are in no sum. */
  readonly unknown_payments: number
  /** Received beyond the amount of a completed transaction; not flagged. */
  readonly surplus: readonly Sum[]
  /** Of the periods that ended in the last 30 days, those that a payment followed. `rate` from 0 to 1, null if none ended. */
  readonly renewals: {
    readonly days: number
    readonly ended: number
    readonly renewed: number
    readonly rate: number | null
  }
  readonly deliveries: {
    readonly pending: number
    readonly delivered: number
    readonly failed: number
    readonly not_configured: number
  }
  /** What comes in the next 30 days if everybody renews who gets a reminder in them, by currency. */
  readonly expected_30_days: Amounts
}

export interface StatsOptions {
  /** One app; null for all of a kind. */
  readonly app: App | null
  /** Sandbox apps rather than live ones. By default live ones, or sandbox ones if there are no others. */
  readonly isTest?: boolean
  /** The month to report, `2026-10`; the present one if it is left out. */
  readonly month?: string
}

const RENEWAL_DAYS = 30
const PAGE = 1000

/** The statistics of one app, or of all live apps together. Reads only. */
export async function gatherStats(ctx: Context, options: StatsOptions): Promise<Stats> {
  const { mode, appIds } = await scopeOf(ctx, options)
  // A list in SQL cannot be empty; no app has this id.
  const scope: AppScope = { appIds: appIds.length === 0 ? [0] : appIds }
  const now = ctx.clock.now()
  const cash = await listCashMonths(ctx.db, { ...scope, mode })
  return {
    mode,
    app_ids: appIds,
    subscriptions: await countSubscriptions(ctx.db, scope, now, GRACE_DAYS),
    revenue: revenueOf(cash),
    cash,
    unearned: await sumUnearned(ctx, scope, now),
    ...(await waitingMoney(ctx, options.app, mode)),
    renewals: await renewalsOf(ctx, scope, now),
    deliveries: await deliveriesOf(ctx, scope),
    ...(await monthsOf(ctx, options, scope, mode)),
    expected_30_days: await sumExpected(ctx, options.app, appIds),
  }
}

async function monthsOf(ctx: Context, { app, month }: StatsOptions, scope: AppScope, mode: AppMode): Promise<Months> {
  const now = ctx.clock.now()
  const zone = app?.pageSettings?.time_zone ?? 'UTC'
  // A test clock moves the present month, too.
  const present = monthOf(app ? appNow(app, now) : now, zone)
  return gatherMonths(ctx.db, { ...scope, mode }, { month: month ?? present, zone, now })
}

async function scopeOf(ctx: Context, { app, isTest }: StatsOptions): Promise<{ mode: AppMode; appIds: number[] }> {
  if (app) return { mode: app.isSandbox ? 'test' : 'live', appIds: [app.id] }
  const apps = await listApps(ctx.db)
  const wantsTest = isTest ?? (apps.length > 0 && apps.every(({ isSandbox }) => isSandbox))
  const appIds = apps.filter(({ isSandbox }) => isSandbox === wantsTest).map(({ id }) => id)
  return { mode: wantsTest ? 'test' : 'live', appIds }
}

function revenueOf(cash: readonly CashMonth[]): Stats['revenue'] {
  return [...Map.groupBy(cash, ({ currency }) => currency)].map(([currency, months]) => {
    const payments = months.reduce((sum, month) => sum + month.payments, 0)
    const received = months.reduce((sum, month) => sum + month.received, 0n)
    const refunded = months.reduce((sum, month) => sum + month.refunded, 0n)
    return { currency, payments, received, refunded, net: received - refunded }
  })
}

async function sumUnearned(ctx: Context, scope: AppScope, now: RealTime): Promise<Sum[]> {
  let sums: Sum[] = []
  const pages = readPages<PaidPeriod>(PAGE, (last, limit) =>
    listUnservedPeriods(ctx.db, scope, now, last?.id ?? 0, limit),
  )
  for await (const page of pages) {
    const parts = page.map((period) => ({ currency: period.currency, amount: BigInt(unearnedOf(period)) }))
    sums = sumsOf([...sums, ...parts])
  }
  return sums
}

async function waitingMoney(
  ctx: Context,
  app: App | null,
  mode: AppMode,
): Promise<Pick<Stats, 'unapplied' | 'unknown_payments' | 'surplus'>> {
  const appId = app?.id ?? null
  const ofMode = <T extends { readonly isSandbox: boolean }>(sums: readonly T[]): T[] =>
    sums.filter(({ isSandbox }) => isSandbox === (mode === 'test'))
  const flagged = ofMode(await sumFlagged(ctx.db, appId))
  const unallocated = ofMode(await sumUnallocated(ctx.db, appId))
  const surplus = ofMode(await sumSurplus(ctx.db, appId))
  return {
    unapplied: sumsOf([
      ...flagged.map(({ currency, unapplied }) => ({ currency, amount: unapplied })),
      ...unallocated.filter(({ amount }) => amount > 0),
    ]),
    unknown_payments: unallocated.reduce((sum, { unknown }) => sum + unknown, 0),
    surplus: sumsOf(surplus.map(({ currency, surplus: amount }) => ({ currency, amount }))),
  }
}

function sumsOf(parts: readonly Sum[]): Sum[] {
  return Object.entries(sumBy(parts, ({ amount }) => amount)).map(([currency, amount]) => ({ currency, amount }))
}

async function renewalsOf(ctx: Context, scope: AppScope, now: RealTime): Promise<Stats['renewals']> {
  const { renewed, lapsed } = await countEndedPeriods(ctx.db, scope, now, RENEWAL_DAYS)
  const ended = renewed + lapsed
  return {
    days: RENEWAL_DAYS,
    ended,
    renewed,
    rate: ended === 0 ? null : fraction(renewed, ended),
  }
}

async function deliveriesOf(ctx: Context, scope: AppScope): Promise<Stats['deliveries']> {
  const counts = new Map((await countEventsByStatus(ctx.db, scope)).map(({ status, events }) => [status, events]))
  const count = (status: string): number => counts.get(status) ?? 0
  return {
    pending: count('pending'),
    delivered: count('delivered'),
    failed: count('failed'),
    not_configured: count('not_configured'),
  }
}
