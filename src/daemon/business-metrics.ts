import type { Context } from '#context.ts'
import { methodNamed } from '#reports/months.ts'
import { countActiveByPlan, sumReceived, type ActiveOfPlan, type ReceivedSum } from '#reports/store.ts'
import { within } from '#shared/budget.ts'
import { messageOf } from '#shared/errors.ts'
import { SECOND_MS } from '#shared/time.ts'
import type { Metrics, Sample } from './metrics.ts'
import { shareReading } from './share-reading.ts'

const FRESH_MS = 5 * SECOND_MS
const DEADLINE_MS = 2 * SECOND_MS
/** These read whole tables: at most a hundredth of the time is spent on that. */
const REST = 100

interface Business {
  readonly active: readonly ActiveOfPlan[]
  readonly received: readonly ReceivedSum[]
}

/** Adds gauges about sales to `/metrics`. Without the database they have no samples. */
export function addBusinessMetrics(ctx: Context, metrics: Metrics): void {
  const read = shareReading(FRESH_MS, () => readInTime(ctx), REST)
  const gauge = (name: string, help: string, labelNames: readonly string[], of: (found: Business) => Sample[]) =>
    metrics.gauge(name, { help, labelNames }, async () => of(await read()))
  gauge(
    'subscriptions_active',
    'Active subscriptions, trials and lifetime ones too, by app and plan',
    ['app', 'plan', 'mode'],
    ({ active }) =>
      active.map(({ appId, plan, isSandbox, subscriptions }) => ({
        value: subscriptions,
        labels: { app: String(appId), plan, mode: modeOf(isSandbox) },
      })),
  )
  gauge(
    'money_received',
    'All money received whose payer is known, refunded or not, in the smallest unit of the currency',
    ['method', 'currency', 'mode'],
    ({ received }) =>
      received.map(({ provider, currency, isSandbox, amount }) => ({
        value: Number(amount),
        labels: { method: methodNamed(provider), currency, mode: modeOf(isSandbox) },
      })),
  )
}

async function readInTime(ctx: Context): Promise<Business> {
  try {
    return await within(readBusiness(ctx), DEADLINE_MS, new Error(`no answer in ${DEADLINE_MS} ms`))
  } catch (error) {
    ctx.log.warn({ metric: 'business', error: messageOf(error) }, 'a database metric cannot be read')
    throw error
  }
}

async function readBusiness({ db, clock }: Context): Promise<Business> {
  return { active: await countActiveByPlan(db, clock.now()), received: await sumReceived(db) }
}

function modeOf(isSandbox: boolean): string {
  return isSandbox ? 'test' : 'live'
}
