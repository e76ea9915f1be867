import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { databasePresent } from '#db/database-now.ts'
import type { ServerResponse } from 'node:http'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { rotateWebhookSecret } from '#apps/rotate-secret.ts'
import { updateAppRow } from '#apps/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { parseId } from '#shared/ids.ts'
import { AppError } from '#shared/errors.ts'
import { MINUTE_MS } from '#shared/time.ts'
import type { MadeAttempt } from '#webhooks/attempt-delivery.ts'
import { AttemptCounter } from '#webhooks/attempt-counter.ts'
import { claimDueEvents, newLease } from '#webhooks/claim-due-events.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { envelopeOf } from '#webhooks/envelope.ts'
import { Recorder } from '#webhooks/recorder.ts'
import { sendTestEvent } from '#webhooks/send-test-event.ts'
import { finishAttempts } from '#webhooks/finish-attempts.ts'
import { listAttempts, type DeliveryAttempt, deliveryAttempts } from '#webhooks/attempts/store.ts'
import { countBegunAttempts, claimDue, listDue, type ClaimedEvent } from '#webhooks/claims/store.ts'
import { getEvent, type Event, events } from '#webhooks/store.ts'
import { openLossyDatabase, strikeFirstCommit } from '../db/lossy-server.ts'
import { whileRefusing } from '../support/broken-tables.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { aCompletion, anApp, type TestApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { standStill } from '../support/stand-still.ts'
import { until } from '../support/until.ts'

describe('webhook delivery', () => {
  let ctx: TestContext
  let receiver: Receiver
  let app: TestApp
  const receivers: Receiver[] = []

  async function aReceiver(): Promise<Receiver> {
    const started = await Receiver.start()
    receivers.push(started)
    return started
  }

  beforeEach(async () => {
    ctx = testContext({ BILLING_WEBHOOK_TIMEOUT_MS: '1000' })
    receiver = await aReceiver()
    app = await anApp(ctx, { webhookUrl: receiver.url })
    receiver.secret = app.webhookSecret
  })
  afterEach(async () => {
    for (const started of receivers.splice(0)) await started.stop()
  })

  function delivered(event: ClaimedEvent): MadeAttempt {
    return {
      kind: 'made',
      event,
      startedAt: ctx.clock.now(),
      durationMs: 1,
      httpStatus: 200,
      error: null,
      responseHead: '',
    }
  }

  /** Writes events of the app; returns their ids. */
  async function emit(count = 1, of: TestApp = app): Promise<number[]> {
    const before = await lastEventId()
    await inTransaction(ctx, async (tx) => {
      for (let i = 0; i < count; i += 1) {
        const data = aCompletion(`user-${i}`)
        await emitEvent(tx, { app: of.app, type: 'transaction.completed', data })
      }
    })
    return (await ctx.db.all(events, 'WHERE id > ? ORDER BY id', [before])).map(({ id }) => id)
  }

  async function lastEventId(): Promise<number> {
    return (await ctx.db.one(events, 'ORDER BY id DESC LIMIT 1'))?.id ?? 0
  }

  async function event(id: number): Promise<Event> {
    return getEvent(ctx.db, id)
  }

  function attempts(id: number): Promise<DeliveryAttempt[]> {
    return listAttempts(ctx.db, id)
  }

  /** Claims due events, like a sender that crashes right afterwards. */
  async function claimAll(): Promise<ClaimedEvent[]> {
    return claimDueEvents(ctx, await listDue(ctx.db, [app.app.id], 10, databasePresent(ctx)))
  }

  /** Claims due events and begins their requests, like a sender that crashes during them. */
  async function beginAll(): Promise<ClaimedEvent[]> {
    const claimed = await claimAll()
    const counter = new AttemptCounter(ctx)
    expect(await Promise.all(claimed.map((event) => counter.count(event)))).to.deep.equal(claimed.map(() => true))
    return claimed
  }

  it('sends the frozen bytes with both signatures and acknowledges on 2xx', async () => {
    const [id] = await emit()
    expect(await deliverDue(ctx)).to.include({ delivered: 1, retried: 0, failed: 0 })
    expect(receiver.received).to.have.length(1)
    const webhook = receiver.received[0]!
    expect(webhook).to.include({
      eventId: `evt_${id!}`,
      eventType: 'transaction.completed',
      attempt: 1,
      verified: true,
    })
    expect(webhook.timestamp * 1000).to.equal(ctx.clock.now().getTime())
    expect(webhook.raw.equals(envelopeOf(await event(id!)))).to.equal(true)
    expect(webhook.body).to.deep.equal({
      id: `evt_${id!}`,
      event_type: 'transaction.completed',
      app_id: app.app.id,
      data: aCompletion('user-0'),
      created_at: '2026-03-01T10:00:00+00:00',
    })
    expect(await event(id!)).to.deep.include({
      deliveryStatus: 'delivered',
      attempts: 1,
      nextAttemptAt: null,
      lease: 0,
      leaseUntil: null,
      lastError: null,
      deliveredAt: ctx.clock.now(),
    })
    expect(
      (await attempts(id!)).map(({ attempt, httpStatus, error }) => ({ attempt, httpStatus, error })),
    ).to.deep.equal([{ attempt: 1, httpStatus: 200, error: null }])
    expect(ctx.counted).to.deep.include({ metric: 'webhook_deliveries_total', labels: { outcome: 'delivered' } })
  })

  it('sends the envelope with its id, which both signatures cover, at every attempt and as a test event', async () => {
    receiver.nextAnswers.push(500)
    const [id] = await emit()
    await deliverDue(ctx)
    ctx.clock.advance('1m')
    await deliverDue(ctx)
    const { event_id } = await sendTestEvent(ctx, operator('ann'), app.app)
    expect(receiver.received.map(({ body }) => body.id)).to.deep.equal([`evt_${id!}`, `evt_${id!}`, event_id])
    for (const { body, eventId, headers, verified } of receiver.received)
      expect([eventId, headers['webhook-id'], verified]).to.deep.equal([body.id, body.id, true])
  })

  it('sends the bytes of an event that an earlier version wrote as they are', async () => {
    const [id] = await emit()
    await ctx.db.update(events, { id: id! }, { carriesId: false })
    await deliverDue(ctx)
    const [webhook] = receiver.received
    expect(webhook!.raw.equals((await event(id!)).body)).to.equal(true)
    expect(webhook!.body).to.not.have.property('id')
    expect(webhook).to.include({ eventId: `evt_${id!}`, verified: true })
  })

  it('sends nothing twice', async () => {
    await emit(3)
    await deliverDue(ctx)
    expect(await deliverDue(ctx)).to.include({ delivered: 0 })
    expect(receiver.received).to.have.length(3)
  })

  for (const status of [201, 202, 204, 299]) {
    it(`accepts ${status} as an acknowledgement`, async () => {
      receiver.answer = status
      const [id] = await emit()
      await deliverDue(ctx)
      expect((await event(id!)).deliveryStatus).to.equal('delivered')
    })
  }

  for (const status of [301, 304, 400, 404, 410, 429, 500, 503]) {
    it(`treats ${status} as a failure`, async () => {
      receiver.answer = status
      const [id] = await emit()
      expect(await deliverDue(ctx)).to.include({ delivered: 0, retried: 1 })
      expect(await event(id!)).to.include({ deliveryStatus: 'pending', lastError: `http_${status}`, attempts: 1 })
    })
  }

  it('tries at once and then 1, 5, 15, 60 and 240 minutes after each failure, with the same bytes and id, then fails', async () => {
    receiver.answer = 500
    const [id] = await emit()
    expect(await deliverDue(ctx)).to.include({ retried: 1 })
    for (const minutes of [1, 5, 15, 60, 240]) {
      const due = await event(id!)
      expect(due.nextAttemptAt!.getTime() - ctx.clock.now().getTime()).to.equal(minutes * MINUTE_MS)
      ctx.clock.advance(`${minutes * 60 - 1}s`)
      expect(await deliverDue(ctx)).to.include({ retried: 0, failed: 0 })
      ctx.clock.advance('1s')
      await deliverDue(ctx)
    }
    expect(await event(id!)).to.include({
      deliveryStatus: 'failed',
      attempts: 6,
      retriesLeft: 0,
      lastError: 'http_500',
    })
    expect((await event(id!)).nextAttemptAt).to.equal(null)
    ctx.clock.advance('30d')
    await deliverDue(ctx)
    expect(receiver.received.map(({ attempt }) => attempt)).to.deep.equal([1, 2, 3, 4, 5, 6])
    expect(receiver.received.every(({ verified }) => verified)).to.equal(true)
    expect(new Set(receiver.received.map(({ eventId }) => eventId)).size).to.equal(1)
    expect(new Set(receiver.received.map(({ raw }) => raw.toString())).size).to.equal(1)
    expect(new Set(receiver.received.map(({ timestamp }) => timestamp)).size).to.equal(6)
    expect((await attempts(id!)).map(({ attempt, error }) => `${attempt} ${error!}`)).to.deep.equal(
      [1, 2, 3, 4, 5, 6].map((n) => `${n} http_500`),
    )
  })

  it('stops trying at the first acknowledgement', async () => {
    receiver.nextAnswers.push(500, 503)
    const [id] = await emit()
    await deliverDue(ctx)
    ctx.clock.advance('1m')
    await deliverDue(ctx)
    ctx.clock.advance('5m')
    await deliverDue(ctx)
    expect(await event(id!)).to.include({ deliveryStatus: 'delivered', attempts: 3, lastError: null })
    ctx.clock.advance('10d')
    await deliverDue(ctx)
    expect(receiver.received).to.have.length(3)
  })

  it('counts the gap from the end of the attempt, not from its beginning', async () => {
    receiver.answer = (response) => {
      ctx.clock.advance('4s')
      response.writeHead(500).end()
    }
    const [id] = await emit()
    const startedAt = ctx.clock.now()
    await deliverDue(ctx)
    const { nextAttemptAt } = await event(id!)
    expect(nextAttemptAt!.getTime() - startedAt.getTime()).to.equal(4000 + MINUTE_MS)
  })

  it('fails the attempt if the last byte of a 2xx does not arrive in time', async () => {
    receiver.answer = (response) => void response.writeHead(200, { 'Content-Length': 2 }).write('o')
    const [id] = await emit()
    await deliverDue(ctx)
    expect(await event(id!)).to.include({ deliveryStatus: 'pending', attempts: 1, lastError: 'timeout' })
    expect((await attempts(id!))[0]).to.include({ httpStatus: 200, error: 'timeout' })
  })

  it('uses real time, whatever the app’s test clock says', async () => {
    await inTransaction(ctx, (tx) => updateAppRow(tx, app.app.id, { clockOffsetMs: 86_400_000 * 400 }))
    receiver.answer = 500
    const [id] = await emit()
    await deliverDue(ctx)
    expect((await event(id!)).nextAttemptAt!.getTime() - ctx.clock.now().getTime()).to.equal(MINUTE_MS)
    expect(receiver.received[0]!.timestamp * 1000).to.equal(ctx.clock.now().getTime())
  })

  it('signs pending retries with the new secret after a rotation', async () => {
    receiver.answer = 500
    await emit(60)
    await deliverDue(ctx)
    expect(receiver.received).to.have.length(60)
    receiver.received.length = 0
    receiver.secret = (
      await perform(ctx, operator('tester'), rotateWebhookSecret, undefined, { app: app.app })
    ).webhook_secret
    receiver.answer = 200
    ctx.clock.advance('1m')
    expect(await deliverDue(ctx)).to.include({ delivered: 60 })
    expect(receiver.received.filter(({ verified }) => verified)).to.have.length(60)
  })

  it('stores an event without sending it if the app has no webhook', async () => {
    const unconfigured = await anApp(ctx)
    const [id] = await emit(1, unconfigured)
    await deliverDue(ctx)
    expect(await event(id!)).to.include({ deliveryStatus: 'not_configured', attempts: 0 })
  })

  it('marks a pending event as not configured once the address is removed', async () => {
    receiver.answer = 500
    const [id] = await emit()
    await deliverDue(ctx)
    await inTransaction(ctx, (tx) => updateAppRow(tx, app.app.id, { webhookUrl: null }))
    ctx.clock.advance('1m')
    expect(await deliverDue(ctx)).to.include({ notConfigured: 1 })
    expect(await event(id!)).to.include({ deliveryStatus: 'not_configured', attempts: 1, lease: 0 })
    expect(receiver.received).to.have.length(1)
  })

  it('continues for an app that has been disabled', async () => {
    const [id] = await emit()
    await inTransaction(ctx, (tx) => updateAppRow(tx, app.app.id, { disabledAt: tx.now }))
    await deliverDue(ctx)
    expect((await event(id!)).deliveryStatus).to.equal('delivered')
  })

  it('sends pending retries to the current address', async () => {
    receiver.answer = 500
    await emit()
    await deliverDue(ctx)
    const other = await aReceiver()
    await inTransaction(ctx, (tx) => updateAppRow(tx, app.app.id, { webhookUrl: other.url }))
    ctx.clock.advance('1m')
    await deliverDue(ctx)
    expect(receiver.received).to.have.length(1)
    expect(other.received).to.have.length(1)
  })

  it('records a private receiver as blocked_address and never connects, if insecure receivers are not allowed', async () => {
    const strict = { ...ctx, config: { ...ctx.config, webhook: { ...ctx.config.webhook, allowInsecure: false } } }
    await inTransaction(ctx, (tx) =>
      updateAppRow(tx, app.app.id, { webhookUrl: receiver.url.replace('http:', 'https:') }),
    )
    const [id] = await emit()
    await deliverDue(strict)
    expect((await event(id!)).lastError).to.equal('blocked_address')
    expect((await attempts(id!))[0]).to.include({ httpStatus: null, error: 'blocked_address' })
    expect(receiver.received).to.have.length(0)
  })

  describe('if the secret cannot be decrypted', () => {
    const setSecret = (webhookSecret: string): Promise<unknown> =>
      inTransaction(ctx, (tx) => updateAppRow(tx, app.app.id, { webhookSecret }))
    let right: string

    beforeEach(async () => {
      right = app.app.webhookSecret!
      await setSecret('v1.lost.AA.AA.AA')
    })

    it('keeps events pending indefinitely, without using up attempts', async () => {
      const [id] = await emit()
      for (let minute = 0; minute < 30; minute += 1) {
        await deliverDue(ctx)
        expect(await event(id!)).to.include({ deliveryStatus: 'pending', attempts: 0, retriesLeft: 5 })
        ctx.clock.advance('1m')
      }
      expect(await event(id!)).to.include({ lastError: 'secret_unreadable', lease: 0 })
      expect(await attempts(id!)).to.deep.equal([])
      await setSecret(right)
      expect(await deliverDue(ctx)).to.include({ delivered: 1 })
      expect(await event(id!)).to.include({ deliveryStatus: 'delivered', attempts: 1, lastError: null })
      expect(receiver.received.map(({ attempt, verified }) => [attempt, verified])).to.deep.equal([[1, true]])
    })

    it('since it was moved from another app’s row, signs nothing, also where that app’s events were signed with it', async () => {
      await setSecret(right)
      const stranger = await aReceiver()
      const thief = await anApp(ctx, { webhookUrl: stranger.url })
      await inTransaction(ctx, (tx) => updateAppRow(tx, thief.app.id, { webhookSecret: right }))
      const [signed] = await emit()
      const [unsigned] = await emit(1, thief)
      expect(await deliverDue(ctx)).to.include({ delivered: 1 })
      expect(await event(signed!)).to.include({ deliveryStatus: 'delivered' })
      expect(await event(unsigned!)).to.include({ deliveryStatus: 'pending', lastError: 'secret_unreadable' })
      expect(stranger.received).to.deep.equal([])
    })

    it('tries only a few events of the app, and sends those of others', async () => {
      const other = await anApp(ctx, { webhookUrl: receiver.url })
      receiver.secret = other.webhookSecret
      await emit(300)
      await emit(20, other)
      expect(await deliverDue(ctx)).to.include({ delivered: 20 })
      expect(await ctx.db.count(events, 'WHERE last_error IS NOT NULL')).to.be.within(1, 16)
    })

    it('refuses a test event', async () => {
      const refused = await sendTestEvent(ctx, operator('ann'), app.app).catch((error: unknown) => error as Error)
      expect(refused).to.be.instanceOf(AppError).and.have.property('code', 'invalid_request')
      expect(await lastEventId()).to.equal(0)
    })
  })

  it('records the other attempts if one cannot be recorded, repeats that one when its lease expires, and logs no secret or body', async () => {
    ctx = testContext({ BILLING_WEBHOOK_TIMEOUT_MS: '10000' })
    const ids = await emit(30)
    receiver.answer = (response, { eventId }) =>
      response.writeHead(eventId === `evt_${ids[10]!}` ? 299 : 200).end('a secret answer')
    await whileRefusing(ctx.db, deliveryAttempts, 'INSERT', 'NEW.http_status = 299', async () => {
      const delivering = deliverDue(ctx)
      try {
        await until(async () => (await ctx.db.count(events, "WHERE delivery_status = 'delivered'")) === 29)
        await delivering
      } finally {
        ctx.clock.advance('41s')
        await delivering
      }
    })
    expect(await deliverDue(ctx)).to.include({ delivered: 1 })
    expect(await event(ids[10]!)).to.include({ deliveryStatus: 'delivered', attempts: 2 })
    const log = ctx.logged.join('')
    expect(log).to.include('delivery attempts cannot be recorded')
    for (const secret of [app.webhookSecret!, 'external_ref', 'a secret answer']) expect(log).to.not.include(secret)
  })

  it('sends nothing whose attempt cannot be counted, and costs it no attempt', async () => {
    const [id] = await emit()
    await whileRefusing(ctx.db, events, 'UPDATE', 'NEW.begun > OLD.begun', () => deliverDue(ctx))
    expect(receiver.received).to.deep.equal([])
    expect(ctx.logged.join('')).to.include('delivery attempts cannot be counted')
    ctx.clock.advance('5s')
    expect(await deliverDue(ctx)).to.include({ delivered: 1 })
    expect(await event(id!)).to.include({ attempts: 1, retriesLeft: 5 })
  })

  it('claims the same events, as one attempt, if a claim is repeated because its answer was lost', async () => {
    const ids = await emit(3)
    const now = databasePresent(ctx)
    const candidates = await listDue(ctx.db, [app.app.id], 10, now)
    const lease = newLease(ctx)
    const claim = () => claimDue(ctx.db, candidates, lease, now)
    const first = await claim()
    expect(first.map(({ id, attempt }) => [id, attempt])).to.deep.equal(ids.map((id) => [id, 1]))
    expect(await claim()).to.deep.equal(first)
  })

  describe('after a crash', () => {
    it('offers an event that is leased to nobody, and leaves the time when it was due', async () => {
      const [id] = await emit()
      const { nextAttemptAt } = await event(id!)
      const offered = () => listDue(ctx.db, [app.app.id], 10, databasePresent(ctx))
      expect(await offered()).to.have.length(1)
      await claimAll()
      expect(await offered()).to.deep.equal([])
      expect((await event(id!)).nextAttemptAt).to.deep.equal(nextAttemptAt)
      ctx.clock.advance('5s')
      expect(await offered()).to.deep.equal([{ id, appId: app.app.id }])
    })

    it('takes over an event whose request had begun when its lease expires, as the next attempt', async () => {
      const [id] = await emit()
      const begun = await beginAll()
      expect(begun.map((event) => event.id)).to.deep.equal([id])
      await deliverDue(ctx)
      expect(receiver.received).to.have.length(0)
      ctx.clock.advance('5s')
      expect(await deliverDue(ctx)).to.include({ delivered: 1 })
      expect(receiver.received.map(({ attempt, eventId }) => [attempt, eventId])).to.deep.equal([[2, `evt_${id!}`]])
      expect(await event(id!)).to.include({ deliveryStatus: 'delivered', attempts: 2, retriesLeft: 4 })
    })

    it('costs an event that was only leased ahead no attempt, however often its senders crash', async () => {
      const [id] = await emit()
      for (let crash = 1; crash <= 7; crash += 1) {
        expect(await claimAll()).to.have.length(1)
        ctx.clock.advance('5s')
      }
      expect(await event(id!)).to.include({ deliveryStatus: 'pending', attempts: 0, retriesLeft: 5 })
      expect(await deliverDue(ctx)).to.include({ delivered: 1 })
      expect(receiver.received.map(({ attempt }) => attempt)).to.deep.equal([1])
      expect(await event(id!)).to.include({ deliveryStatus: 'delivered', attempts: 1, retriesLeft: 5 })
    })

    it('fails an event after six automatic attempts if senders crash again and again', async () => {
      const [id] = await emit()
      for (let crash = 1; crash <= 6; crash += 1) {
        expect(await beginAll()).to.have.length(1)
        ctx.clock.advance('5s')
      }
      expect(await claimAll()).to.have.length(0)
      expect(await event(id!)).to.include({
        deliveryStatus: 'failed',
        attempts: 6,
        lastError: 'interrupted',
        lease: 0,
      })
    })

    it('does not begin the request of an event that another sender has taken over', async () => {
      const [id] = await emit()
      const [stale] = await claimAll()
      ctx.clock.advance('5s')
      const [taken] = await claimAll()
      const counter = new AttemptCounter(ctx)
      expect(await Promise.all([counter.count(stale!), counter.count(taken!)])).to.deep.equal([false, true])
      expect(await event(id!)).to.include({ attempts: 1, retriesLeft: 5 })
    })

    it('counts an attempt once if the statement is repeated because its answer was lost', async () => {
      const [id] = await emit()
      const [claimed] = await claimAll()
      const count = () => countBegunAttempts(ctx.db, claimed!.lease, [id!])
      expect([await count(), await count()]).to.deep.equal([[id], [id]])
      expect(await event(id!)).to.include({ attempts: 1, retriesLeft: 5 })
    })

    it('records an attempt once if its recording was committed and seemed to fail', async () => {
      const [id] = await emit()
      const [claimed] = await claimAll()
      const result = delivered(claimed!)
      expect(await finishAttempts(ctx, [result])).to.include({ delivered: 1, lost: 0 })
      expect(await finishAttempts(ctx, [], [result])).to.include({ delivered: 0, lost: 0 })
      expect(await attempts(id!)).to.have.length(1)
    })

    it('records an attempt whose COMMIT is lost, beside one of which it is not known whether it was recorded', async () => {
      const [doubtful, id] = await emit(2)
      const [first, second] = (await claimAll()).map(delivered)
      await finishAttempts(ctx, [first!])
      const lossy = await openLossyDatabase()
      try {
        const commits = strikeFirstCommit(lossy.line, 'lost')
        const tally = await finishAttempts({ ...ctx, db: lossy.db }, [second!], [first!])
        expect(tally).to.include({ delivered: 1, lost: 0 })
        expect(commits()).to.equal(2)
      } finally {
        await lossy.close()
      }
      expect([await attempts(doubtful!), await attempts(id!)].map(({ length }) => length)).to.deep.equal([1, 1])
      expect(await event(id!)).to.include({ deliveryStatus: 'delivered' })
    })

    it('records an attempt that the database took too long to record at first', async () => {
      const [id] = await emit()
      const [begun] = await beginAll()
      const lossy = await openLossyDatabase()
      try {
        let inserts = 0
        lossy.line.fateOf = (statement) =>
          statement.includes(` INTO ${deliveryAttempts.name} `) && (inserts += 1) === 1 ? 1969 : 'pass'
        const recorder = new Recorder({ ...ctx, db: lossy.db }, () => undefined)
        recorder.record(delivered(begun!), performance.now() + MINUTE_MS)
        await recorder.drain()
        expect(recorder.tally).to.include({ delivered: 1 })
      } finally {
        await lossy.close()
      }
      expect(await attempts(id!)).to.have.length(1)
      expect(await event(id!)).to.include({ deliveryStatus: 'delivered', attempts: 1 })
    })

    it('takes over nothing of its own after it stood still for longer than a lease: first it records what was answered', async () => {
      const ids = await emit(2)
      await ctx.db.update(events, { id: ids[0]! }, { retriesLeft: 0 })
      const responses: ServerResponse[] = []
      receiver.answer = (response) => void responses.push(response)
      const sending = deliverDue(ctx)
      await receiver.waitFor(2)
      ctx.clock.advance('6s')
      await standStill(2000)
      // The receivers stood still, too.
      setTimeout(() => responses.forEach((response) => response.writeHead(200).end()), 300)
      expect(await sending).to.include({ delivered: 2, lost: 0 })
      for (const id of ids) expect(await event(id)).to.include({ deliveryStatus: 'delivered', attempts: 1 })
      expect(receiver.received).to.have.length(2)
    })

    it('ignores the outcome of a sender that lost its lease', async () => {
      const [id] = await emit()
      const [stale] = await claimAll()
      ctx.clock.advance('5s')
      await claimAll()
      expect(await finishAttempts(ctx, [delivered(stale!)])).to.include({ delivered: 0, lost: 1 })
      expect((await event(id!)).deliveryStatus).to.equal('pending')
      expect(await attempts(id!)).to.have.length(1)
    })
  })

  describe('among several daemons', () => {
    it('sends each due event once, whoever claims it', async () => {
      ctx = testContext()
      const ids = await emit(300)
      const tallies = await Promise.all([deliverDue(ctx), deliverDue(ctx), deliverDue(ctx)])
      expect(tallies.reduce((sum, { delivered }) => sum + delivered, 0)).to.equal(300)
      const sent = receiver.received.map(({ eventId }) => parseId('evt', eventId))
      expect(sent).to.have.length(300)
      expect(new Set(sent)).to.deep.equal(new Set(ids))
    })
  })

  describe('a receiver that hangs', () => {
    it('does not delay the others', async () => {
      ctx = testContext()
      const hanging = await aReceiver()
      hanging.answer = () => undefined
      const slowApps: TestApp[] = []
      for (let i = 0; i < 10; i += 1) slowApps.push(await anApp(ctx, { webhookUrl: hanging.url }))
      for (const slow of slowApps) await emit(20, slow)
      await emit(100)
      const controller = new AbortController()
      const delivering = deliverDue(ctx, { signal: controller.signal })
      await receiver.waitFor(100)
      // None of the hanging attempts has timed out yet.
      const failed = await ctx.db.all(deliveryAttempts, 'WHERE http_status IS NULL')
      expect(failed).to.deep.equal([])
      controller.abort()
      await hanging.stop()
      await delivering
    })

    it('gets one attempt at a time after it has not answered', async () => {
      ctx = testContext({ BILLING_WEBHOOK_TIMEOUT_MS: '150' })
      const hanging = await aReceiver()
      let open = 0
      const openAtOnce: number[] = []
      hanging.answer = (response) => {
        open += 1
        openAtOnce.push(open)
        response.on('close', () => (open -= 1))
      }
      await emit(12, await anApp(ctx, { webhookUrl: hanging.url }))
      expect(await deliverDue(ctx)).to.include({ retried: 12 })
      expect(openAtOnce).to.have.length(12)
      expect(Math.max(...openAtOnce)).to.be.at.most(4)
      expect(Math.max(...openAtOnce.slice(6))).to.equal(1)
    })
  })

  describe('a sender that is stopped', () => {
    it('finishes its attempts and releases unsent events', async () => {
      const answers: (() => void)[] = []
      receiver.answer = (response) => void answers.push(() => response.writeHead(200).end())
      const ids = await emit(30)
      const controller = new AbortController()
      const delivering = deliverDue(ctx, { signal: controller.signal })
      await receiver.waitFor(4)
      controller.abort()
      for (const answer of answers) answer()
      const { delivered } = await delivering
      expect(delivered).to.equal(receiver.received.length)
      const rows = await Promise.all(ids.map(event))
      expect(rows.every(({ lease }) => lease === 0)).to.equal(true)
      const unsent = rows.filter(({ deliveryStatus }) => deliveryStatus === 'pending')
      expect(unsent).to.have.length(30 - delivered)
      expect(
        unsent.every(({ attempts: made, nextAttemptAt }) => made === 0 && nextAttemptAt! <= ctx.clock.now()),
      ).to.equal(true)
    })
  })
})
