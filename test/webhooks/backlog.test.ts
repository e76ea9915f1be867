import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { databasePresent } from '#db/database-now.ts'
import { addMs, asAppTime, DAY_MS } from '#shared/time.ts'
import { runSender } from '#webhooks/sender.ts'
import { listAppsWithPending, listDue } from '#webhooks/claims/store.ts'
import { listFailedIds } from '#webhooks/outcomes/store.ts'
import { events, listEventIdsSince, type DeliveryStatus } from '#webhooks/store.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { anApp, type TestApp } from '../support/factories.ts'
import { insertMany } from '../support/many-rows.ts'
import { plansOf, refreshStatistics } from '../support/query-plans.ts'
import { Receiver, type ReceivedWebhook } from '../support/receiver.ts'
import { rowsReadBy } from '../support/rows-read.ts'
import { until } from '../support/until.ts'

describe('a backlog of webhooks', () => {
  let ctx: TestContext
  let receiver: Receiver

  beforeEach(async () => {
    ctx = testContext()
    receiver = await Receiver.start()
  })
  afterEach(() => receiver.stop())

  const anotherApp = (): Promise<TestApp> => anApp(ctx, { webhookUrl: receiver.url })

  /** Writes events of an app that have been due for a day. */
  async function insertDue(appId: number, count: number, deliveryStatus: DeliveryStatus = 'pending'): Promise<void> {
    const since = addMs(ctx.clock.now(), -DAY_MS)
    const row = {
      ...{ appId, eventType: 'transaction.completed', externalRef: null, transactionId: null, carriesId: false },
      ...{ body: Buffer.from(JSON.stringify({ app_id: appId })), deliveryStatus, attempts: 0, retriesLeft: 5 },
      ...{ nextAttemptAt: since, lease: 0, leaseUntil: null, begun: false, deliveredAt: null, lastError: null },
      ...{ createdAt: asAppTime(since), writtenAt: since },
    }
    await insertMany(ctx.db, events, Array<typeof row>(count).fill(row))
  }

  it('is found by the index, however many events have been delivered', async () => {
    const apps = [await anotherApp(), await anotherApp(), await anotherApp()]
    for (const { app } of apps) {
      await insertDue(app.id, 3000, 'delivered')
      await insertDue(app.id, 1000)
    }
    await refreshStatistics(ctx.db, events)
    const ids = apps.map(({ app }) => app.id)
    const parts = await plansOf(ctx.db, (db) => listDue(db, ids, 64, databasePresent(ctx)))
    const keys = parts.flatMap(({ key }) => key ?? [])
    expect(keys).to.deep.equal(['events_app_due', 'events_app_due', 'events_app_due'])
    expect(parts.map(({ Extra }) => Extra).join()).to.not.include('filesort')
  })

  it('is found with one lookup per app, however many events have been delivered, whatever the table’s statistics say', async () => {
    const { app } = await anotherApp()
    const idle = await anotherApp()
    await insertDue(app.id, 5000, 'delivered')
    await insertDue(app.id, 10)
    await insertDue(idle.app.id, 1000, 'delivered')
    const [pending, read] = await rowsReadBy(ctx, ({ db }) => listAppsWithPending(db, databasePresent(ctx)))
    expect(pending.map(({ appId, isDue }) => [appId, isDue])).to.deep.equal([[app.id, true]])
    expect(read).to.be.lessThan(200)
  })

  it('of failed events, or of events since a time, is found without reading all other events of the app', async () => {
    const { app } = await anotherApp()
    await insertDue(app.id, 3000, 'delivered')
    await insertDue(app.id, 3000, 'failed')
    await ctx.db.update(events, { deliveryStatus: 'failed' }, { nextAttemptAt: null })
    await refreshStatistics(ctx.db, events)
    const [failed] = await plansOf(ctx.db, (db) => listFailedIds(db, app.id, 0, 50))
    expect(failed).to.include({ key: 'events_app_due' })
    expect(failed!.Extra).not.to.include('filesort')
    const [since] = await plansOf(ctx.db, (db) => listEventIdsSince(db, app.id, ctx.clock.now(), 1e9))
    expect(since).to.include({ key: 'events_app_created' })
  })

  it('of one app does not delay the others', async () => {
    const [busy, quiet] = [await anotherApp(), await anotherApp()]
    await insertDue(busy.app.id, 1000)
    await insertDue(quiet.app.id, 5)
    const rows = await ctx.db.all(events, 'WHERE app_id = ?', [quiet.app.id])
    const quietIds = new Set(rows.map(({ id }) => `evt_${id}`))
    await deliverDue(ctx)
    expect(receiver.received).to.have.length(1005)
    const position = receiver.received.findLastIndex(({ eventId }) => quietIds.has(eventId))
    expect(position).to.be.lessThan(200)
  })

  it('is sent oldest first: an app’s earliest events are long delivered when the last one is sent', async () => {
    const { app } = await anotherApp()
    await insertDue(app.id, 300)
    await deliverDue(ctx)
    // Many attempts run at once and single ones may be slow: only the average order is fixed.
    const positions = new Map(receiver.received.map(({ eventId }, position) => [Number(eventId.slice(4)), position]))
    const ids = [...positions.keys()].sort((a, b) => a - b)
    const meanPosition = (part: readonly number[]) =>
      part.reduce((sum, id) => sum + (positions.get(id) ?? 0), 0) / part.length
    expect(ids).to.have.length(300)
    expect(meanPosition(ids.slice(0, 100))).to.be.lessThan(meanPosition(ids.slice(-100)) - 100)
  })

  describe('of twenty apps whose receivers are slow', () => {
    const APPS = 20
    let stop: AbortController
    let sending: Promise<unknown>
    let wake: () => void

    afterEach(async () => {
      stop.abort()
      // Attempts under way end at once.
      await receiver.stop()
      await sending
    })

    /** Starts a sender with 1,000 due events of each app; returns when all places are taken. */
    async function begin(answerMs: number): Promise<void> {
      receiver.answer = (response) => void setTimeout(() => response.writeHead(200).end(), answerMs)
      for (let count = 0; count < APPS; count += 1) await insertDue((await anotherApp()).app.id, 1000)
      stop = new AbortController()
      sending = runSender(ctx, { signal: stop.signal, onWake: (given) => (wake = given) })
      await until(() => receiver.received.length >= 300)
    }

    function countsByApp(webhooks: readonly ReceivedWebhook[]): Map<number, number> {
      const counts = new Map<number, number>()
      for (const { body } of webhooks) counts.set(body.app_id, (counts.get(body.app_id) ?? 0) + 1)
      return counts
    }
    const most = (webhooks: readonly ReceivedWebhook[]): number => Math.max(0, ...countsByApp(webhooks).values())

    it('does not delay an event of an app whose receiver answers promptly', async () => {
      await begin(900)
      const prompt = await Receiver.start()
      try {
        const { app } = await anApp(ctx, { webhookUrl: prompt.url })
        const before = receiver.received.length
        await insertDue(app.id, 1)
        wake()
        const meanwhile = () => receiver.received.slice(before)
        await until(() => prompt.received.length === 1 || most(meanwhile()) > 100)
        expect(most(meanwhile()), 'of a slow app, while the prompt one waited').to.be.at.most(30)
        expect(prompt.received).to.have.length(1)
      } finally {
        await prompt.stop()
      }
    })

    it('is sent in equal shares', async () => {
      await begin(300)
      await until(() => receiver.received.length >= 1500)
      const counts = [...countsByApp(receiver.received).values()]
      expect(counts).to.have.length(APPS)
      expect(Math.max(...counts)).to.be.at.most(2 * Math.min(...counts))
    })
  })
})
