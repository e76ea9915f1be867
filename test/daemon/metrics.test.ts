import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { useFakeTimers } from 'sinon'
import { apps } from '#apps/store.ts'
import { addProcessMetrics, openMetrics } from '#daemon/metrics.ts'
import { CachedReading } from '#daemon/cached-reading.ts'
import { addBusinessMetrics } from '#daemon/business-metrics.ts'
import { addDatabaseMetrics } from '#daemon/database-metrics.ts'
import { addThreadMetrics } from '#daemon/thread-metrics.ts'
import { openDatabase } from '#db/connect.ts'
import type { PoolUse } from '#http/entry-queue.ts'
import { insertJobRun, type JobRun } from '#upkeep/job-runs/store.ts'
import { addMs, DAY_MS, HOUR_MS, type RealTime } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { testDatabase } from '../support/database.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { aCustomer, anApp, aPlan, aSubscription, LIFETIME, partlyPaid, priceId } from '../support/factories.ts'

const DASHBOARD = 'docs/grafana.json'
const ALERTS = 'templates/prometheus/alerts.yml'
/** The labels that Prometheus adds, and the buckets of a histogram. */
const OF_PROMETHEUS = ['instance', 'job', 'le']
const NO_THREADS = { heartbeats: new Map<string, RealTime>(), pools: new Map<string, PoolUse>() }

async function scrape(ctx: TestContext, threads: Partial<typeof NO_THREADS> = {}): Promise<string> {
  const metrics = openMetrics()
  addProcessMetrics(metrics)
  addDatabaseMetrics(ctx, metrics)
  addThreadMetrics(ctx, metrics, { ...NO_THREADS, ...threads })
  addBusinessMetrics(ctx, metrics)
  return metrics.registry.metrics()
}

function aRun(ctx: TestContext): Omit<JobRun, 'id'> {
  const at = ctx.clock.now()
  return { job: '', daemon: 'host:1', startedAt: at, finishedAt: at, outcome: 'done', summary: null }
}

/** Each target of each panel, as its query with its legend. */
function panelsOf(dashboard: string): string[] {
  const { panels } = JSON.parse(readFileSync(dashboard, 'utf8')) as {
    readonly panels: readonly {
      readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[]
    }[]
  }
  return panels.flatMap(({ targets }) => targets.map(({ expr, legendFormat }) => `${expr} ${legendFormat}`))
}

/** The value of a sample, by its full name with labels; null if there is none. */
function sample(text: string, name: string): number | null {
  const line = text.split('\n').find((one) => one.startsWith(`${name} `))
  return line === undefined ? null : Number(line.slice(name.length + 1))
}

describe('metrics', () => {
  it('show unapplied money, separately for live and test apps', async () => {
    const ctx = testContext()
    const app = await anApp(ctx)
    await partlyPaid(ctx, app, { price_id: priceId(await aPlan(ctx, app)) })
    const text = await scrape(ctx)
    expect(sample(text, 'paygate_money_unapplied{currency="VND",mode="test"}')).to.equal(90_000)
    expect(sample(text, 'paygate_transactions_flagged{reason="underpaid",mode="test"}')).to.equal(1)
    await ctx.db.update(apps, { isSandbox: true }, { isSandbox: false })
    expect(sample(await scrape(ctx), 'paygate_money_unapplied{currency="VND",mode="live"}')).to.equal(90_000)
  })

  it('show active subscriptions by plan, and what came by method and currency', async () => {
    const ctx = testContext()
    const app = await anApp(ctx)
    const [monthly, life] = [
      await aPlan(ctx, app, { code: 'pro' }),
      await aPlan(ctx, app, { code: 'life', prices: [LIFETIME] }),
    ]
    await aSubscription(ctx, app, monthly)
    await aSubscription(ctx, app, monthly, { external_ref: 'user-2' })
    await aSubscription(ctx, app, life, { external_ref: 'user-3' })
    await partlyPaid(ctx, app, { price_id: priceId(monthly), external_ref: 'user-4' })
    const active = (plan: string) => `paygate_subscriptions_active{app="${app.app.id}",plan="${plan}",mode="test"}`
    const received = (method: string) => `paygate_money_received{method="${method}",currency="VND",mode="test"}`
    const now = await scrape(ctx)
    expect([sample(now, active('pro')), sample(now, active('life'))]).to.deep.equal([2, 1])
    expect([sample(now, received('test')), sample(now, received('bank_transfer'))]).to.deep.equal([3_098_000, 90_000])
    ctx.clock.advance('40d')
    const later = await scrape(ctx)
    expect([sample(later, active('pro')), sample(later, active('life'))]).to.deep.equal([null, 1])
    await ctx.db.update(apps, { isSandbox: true }, { isSandbox: false })
    expect(sample(await scrape(ctx), received('test').replace('"test"}', '"live"}'))).to.equal(3_098_000)
  })

  it('a reading that takes long is repeated seldom', async () => {
    const clock = useFakeTimers({ toFake: ['performance', 'setTimeout'] })
    try {
      let readings = 0
      const shared = new CachedReading(
        5,
        async () => {
          readings += 1
          await new Promise((resolve) => setTimeout(resolve, 10))
        },
        100,
      )
      for (const [wait, expected] of [
        [0, 1],
        [900, 1],
        [100, 2],
      ] as const) {
        await clock.tickAsync(wait)
        const reading = shared.get()
        await clock.tickAsync(10)
        await reading
        expect(readings).to.equal(expected)
      }
    } finally {
      clock.restore()
    }
  })

  it('show how many events are pending and how late the oldest is', async () => {
    const ctx = testContext()
    const app = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hooks' })
    await aSubscription(ctx, app, await aPlan(ctx, app))
    ctx.clock.advance('90s')
    const text = await scrape(ctx)
    expect(sample(text, 'paygate_outbox_events')).to.equal(1)
    expect(sample(text, 'paygate_outbox_lag_seconds')).to.equal(90)
  })

  it('show how late the oldest due reminder is', async () => {
    const ctx = testContext()
    const app = await anApp(ctx)
    const customer = await aCustomer(ctx, app)
    await aSubscription(ctx, app, await aPlan(ctx, app), { customer_id: `cus_${customer.id}` })
    expect(sample(await scrape(ctx), 'paygate_reminder_lag_seconds')).to.equal(0)
    const { currentPeriodEnd: ends } = (await ctx.db.one(subscriptions, ''))!
    ctx.clock.set(
      addMs(ends!, -3 * DAY_MS + 2 * HOUR_MS)
        .toISOString()
        .slice(0, 19)
        .replace('T', ' '),
    )
    expect(sample(await scrape(ctx), 'paygate_reminder_lag_seconds')).to.equal(7200)
  })

  it('show the last heartbeat of each job of this daemon, and the pool use of each thread', async () => {
    const ctx = testContext()
    const heartbeats = new Map([['expire', addMs(ctx.clock.now(), -5000)]])
    const pools = new Map([['expire', { used: 4, free: 2, waiting: 7 }]])
    const text = await scrape(ctx, { heartbeats, pools })
    expect(sample(text, 'paygate_job_heartbeat_seconds{job="expire"}')).to.equal(5)
    expect(sample(text, 'paygate_database_connections{thread="daemon",state="used"}')).to.be.a('number')
    expect(sample(text, 'paygate_database_connections{thread="daemon",state="waiting"}')).to.equal(0)
    expect(sample(text, 'paygate_expected_wait_seconds')).to.equal(0)
    expect(sample(text, 'paygate_database_connections{thread="expire",state="used"}')).to.equal(4)
    expect(sample(text, 'paygate_database_connections{thread="expire",state="waiting"}')).to.equal(7)
  })

  it('count from the start of the daemon for a job that never ran and never sent a heartbeat', async () => {
    const ctx = testContext()
    const metrics = openMetrics()
    addDatabaseMetrics(ctx, metrics)
    addThreadMetrics(ctx, metrics, NO_THREADS)
    ctx.clock.advance('20m')
    await insertJobRun(ctx.db, { ...aRun(ctx), job: 'expire', finishedAt: addMs(ctx.clock.now(), -7000) })
    await insertJobRun(ctx.db, { ...aRun(ctx), job: 'a-job-of-an-old-version' })
    const text = await metrics.registry.metrics()
    expect(sample(text, 'paygate_job_heartbeat_seconds{job="reconcile"}')).to.equal(1200)
    expect(sample(text, 'paygate_job_last_run_seconds{job="reconcile"}')).to.equal(1200)
    expect(sample(text, 'paygate_job_last_run_seconds{job="expire"}')).to.equal(7)
    expect(text).to.not.include('a-job-of-an-old-version')
  })

  it('show how far the clock of the database is ahead', async () => {
    const ctx = testContext()
    const [{ now }]: [{ now: Date }] = await ctx.db.query('SELECT UTC_TIMESTAMP(3) AS now')
    ctx.clock.set(addMs(now, -3_600_000).toISOString().slice(0, 19).replace('T', ' '))
    const skew = sample(await scrape(ctx), 'paygate_database_clock_skew_seconds')
    expect(skew).to.be.within(3600, 3660)
  })

  it('work without the database, report that it is down, and omit the samples that need it', async () => {
    const unreachable = await openDatabase({ databaseUrl: testDatabase().url, home: '' })
    await unreachable.close()
    const ctx = { ...testContext(), db: { ...testDatabase().db, ...unreachable.db } }
    const text = await scrape(ctx)
    expect(sample(text, 'paygate_database_up')).to.equal(0)
    expect(sample(text, 'paygate_outbox_events')).to.equal(null)
    expect(text).to.include('# TYPE paygate_outbox_events gauge')
    expect(sample(text, 'paygate_process_resident_memory_bytes')).to.be.greaterThan(0)
    expect(ctx.logged.join('')).to.include('the database metrics cannot be read')
  })

  it('read the database once for scrapes in quick succession', async () => {
    const ctx = testContext()
    const metrics = openMetrics()
    addDatabaseMetrics(ctx, metrics)
    await metrics.registry.metrics()
    const app = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hooks' })
    await aSubscription(ctx, app, await aPlan(ctx, app))
    expect(sample(await metrics.registry.metrics(), 'paygate_outbox_events')).to.equal(0)
  })

  for (const file of [DASHBOARD, ALERTS]) {
    it(`${file} names only metrics that exist`, async () => {
      const text = await scrape(testContext())
      const known = new Set([...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]))
      const named = new Set(readFileSync(file, 'utf8').match(/\bpaygate_[a-z0-9_]+/g))
      const unknown = [...named].filter(
        (name) => !known.has(name) && !known.has(name.replace(/_(bucket|count|sum)$/, '')),
      )
      expect(named.size).to.be.greaterThan(10)
      expect(unknown).to.deep.equal([])
    })
  }

  it('the dashboard and the alert rules use only labels that the metrics have', () => {
    const metrics = openMetrics()
    addProcessMetrics(metrics)
    addDatabaseMetrics(testContext(), metrics)
    addThreadMetrics(testContext(), metrics, NO_THREADS)
    addBusinessMetrics(testContext(), metrics)
    const labels = new Map(
      metrics.registry.getMetricsAsArray().map((metric) => {
        const { name, labelNames } = metric as unknown as { name: string; labelNames: readonly string[] }
        return [name, new Set([...labelNames, ...OF_PROMETHEUS])]
      }),
    )
    for (const text of [...panelsOf(DASHBOARD), readFileSync(ALERTS, 'utf8')].flatMap((panel) =>
      panel.split('- alert:'),
    )) {
      const named = (text.match(/\bpaygate_[a-z0-9_]+/g) ?? []).map((name) => name.replace(/_(bucket|count|sum)$/, ''))
      const used = [
        ...[...text.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/, */)),
        ...[...text.matchAll(/\b(\w+)(?:=~|!=|=)\\?"/g)].map(([, label = '']) => label),
        ...[...text.matchAll(/\{\{ *(?:\$labels\.)?(\w+) *\}\}/g)].map(([, label = '']) => label),
      ]
      for (const label of used)
        expect(
          named.length === 0 || named.some((name) => labels.get(name)?.has(label)),
          `${label} of ${named.join(', ')}`,
        ).to.equal(true)
    }
  })

  it('the dashboard and the alert rules use every metric of the project', async () => {
    const text = await scrape(testContext())
    const shown = [DASHBOARD, ALERTS].map((file) => readFileSync(file, 'utf8')).join('')
    const ours = [...text.matchAll(/^# TYPE (paygate_(?!nodejs_|process_)\S+)/gm)].map((match) => match[1]!)
    expect(ours.filter((name) => !shown.includes(name))).to.deep.equal([])
  })
})
