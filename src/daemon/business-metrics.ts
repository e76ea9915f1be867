import type { Context } from '#context.ts'
import { methodNamed } from '#reports/months.ts'
import { countActiveByPlan, sumReceived, type ActiveOfPlan, type ReceivedSum } from '#reports/store.ts'
import { FRESH_MS, inTime, modeOf, warnUnread } from './database-reading.ts'
import type { Metrics, Sample } from './metrics.ts'
import { CachedReading } from './cached-reading.ts'

/** These gauges read whole tables, which may take at most a hundredth of the time. */
const REST = 100

interface Business {
  readonly active: readonly ActiveOfPlan[]
  readonly received: readonly ReceivedSum[]
}

/** Adds gauges about sales to `/metrics`. They have no samples while the database is unreachable. */
export function addBusinessMetrics(ctx: Context, metrics: Metrics): void {
  const reading = new CachedReading(FRESH_MS, () => readInTime(ctx), REST)
  const gauge = (name: string, help: string, labelNames: readonly string[], of: (found: Business) => Sample[]) =>
    metrics.gauge(name, { help, labelNames }, async () => of(await reading.get()))
  gauge(
    'subscriptions_active',
    'Active subscriptions, trials and lifetime ones too, by app and plan',
    ['app', 'plan', 'mode'],
    ({ active }) =>
      active.map(({ appId, plan, subscriptions, ...app }) => ({
        value: subscriptions,
        labels: { app: String(appId), plan, mode: modeOf(app) },
      })),
  )
  gauge(
    'money_received',
    'All money received whose payer is known, refunded or not, in the smallest unit of the currency',
    ['method', 'currency', 'mode'],
    ({ received }) =>
      received.map(({ provider, currency, amount, ...app }) => ({
        value: Number(amount),
        labels: { method: methodNamed(provider), currency, mode: modeOf(app) },
      })),
  )
}

async function readInTime(ctx: Context): Promise<Business> {
  try {
    return await inTime(readBusiness(ctx))
  } catch (error) {
    warnUnread(ctx, 'business', error)
    throw error
  }
}

async function readBusiness({ db, clock }: Context): Promise<Business> {
  return { active: await countActiveByPlan(db, clock.now()), received: await sumReceived(db) }
}
