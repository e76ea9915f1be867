import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { webhooksFailed } from '#alerts/conditions/review.ts'
import { updateAppRow } from '#apps/store.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { auditLog } from '#commands/store.ts'
import { databasePresent } from '#db/database-now.ts'
import { inTransaction } from '#commands/transaction.ts'
import { checkWebhooks } from '#doctor/check-work.ts'
import { readReview } from '#review/read-review.ts'
import { formatId, parseId } from '#shared/ids.ts'
import { claimDueEvents } from '#webhooks/claim-due-events.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { listAttempts } from '#webhooks/attempts/store.ts'
import { listDeliveries } from '#webhooks/list-deliveries.ts'
import { retryEvent, retryFailed } from '#webhooks/retry-event.ts'
import { sendTestEvent } from '#webhooks/send-test-event.ts'
import { envelopeOf } from '#webhooks/envelope.ts'
import { listDue, type ClaimedEvent } from '#webhooks/claims/store.ts'
import { events, getEvent, type Event } from '#webhooks/store.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { refusalOf } from '../support/expect-error.ts'
import { aCompletion, anApp, type TestApp } from '../support/factories.ts'
import { rowsLike } from '../support/many-rows.ts'
import { Receiver } from '../support/receiver.ts'

const ANN = operator('ann')

describe('commands of operators for deliveries', () => {
  let ctx: TestContext
  let receiver: Receiver
  let app: TestApp

  beforeEach(async () => {
    ctx = testContext({ BILLING_WEBHOOK_TIMEOUT_MS: '1000' })
    receiver = await Receiver.start()
    app = await anApp(ctx, { webhookUrl: receiver.url })
    receiver.secret = app.webhookSecret
  })
  afterEach(() => receiver.stop())

  async function emit(of: TestApp = app): Promise<number> {
    const data = aCompletion('user-1')
    await inTransaction(ctx, (tx) => emitEvent(tx, { app: of.app, type: 'transaction.completed', data }))
    return parseId('evt', (await listDeliveries(ctx, of.app)).rows[0]!.id)!
  }

  const retry = (eventId: number): Promise<Event> =>
    perform(ctx, ANN, retryEvent, { event_id: formatId('evt', eventId) }, {})

  /** Claims due events, like a sender that crashes right afterwards. */
  async function claimAll(): Promise<ClaimedEvent[]> {
    return claimDueEvents(ctx, await listDue(ctx.db, [app.app.id], 10, databasePresent(ctx)))
  }

  /** Lets an event use up its whole schedule. */
  async function emitFailed(): Promise<number> {
    receiver.answer = 500
    const id = await emit()
    for (const gap of ['0s', '1m', '5m', '15m', '60m', '240m']) {
      ctx.clock.advance(gap)
      await deliverDue(ctx)
    }
    receiver.answer = 200
    receiver.received.length = 0
    return id
  }

  it('list deliveries newest first, with their status', async () => {
    const failed = await emitFailed()
    const waiting = await emit()
    expect((await listDeliveries(ctx, app.app)).rows).to.deep.equal([
      {
        id: formatId('evt', waiting),
        event_type: 'transaction.completed',
        external_ref: 'user-1',
        created_at: '2026-03-01 15:21:00',
        delivery_status: 'pending',
        attempts: 0,
        next_attempt_at: '2026-03-01 15:21:00',
        delivered_at: null,
        last_error: null,
      },
      {
        id: formatId('evt', failed),
        event_type: 'transaction.completed',
        external_ref: 'user-1',
        created_at: '2026-03-01 10:00:00',
        delivery_status: 'failed',
        attempts: 6,
        next_attempt_at: null,
        delivered_at: null,
        last_error: 'http_500',
      },
    ])
    const { rows: byStatus } = await listDeliveries(ctx, app.app, 'failed')
    expect(byStatus.map(({ id }) => id)).to.deep.equal([formatId('evt', failed)])
    expect(await listAttempts(ctx.db, failed)).to.have.length(6)
  })

  it('replay a failed event with the same id and bytes; attempts continue to count', async () => {
    const id = await emitFailed()
    expect(await retry(id)).to.include({ deliveryStatus: 'pending', attempts: 6 })
    await deliverDue(ctx)
    expect(receiver.received.map(({ eventId, attempt, verified }) => ({ eventId, attempt, verified }))).to.deep.equal([
      { eventId: formatId('evt', id), attempt: 7, verified: true },
    ])
    expect(receiver.received[0]!.raw.equals(envelopeOf(await getEvent(ctx.db, id)))).to.equal(true)
    expect((await getEvent(ctx.db, id)).deliveryStatus).to.equal('delivered')
  })

  it('restart the whole schedule for a replay that fails again', async () => {
    const id = await emitFailed()
    receiver.answer = 500
    await retry(id)
    await deliverDue(ctx)
    const event = await getEvent(ctx.db, id)
    expect(event).to.include({ deliveryStatus: 'pending', attempts: 7, retriesLeft: 4 })
    expect(event.nextAttemptAt!.getTime() - ctx.clock.now().getTime()).to.equal(60_000)
  })

  it('send an event that waits for its retry now', async () => {
    receiver.nextAnswers.push(500)
    const id = await emit()
    await deliverDue(ctx)
    await retry(id)
    expect(await deliverDue(ctx)).to.include({ delivered: 1 })
  })

  it('send a delivered event again', async () => {
    const id = await emit()
    await deliverDue(ctx)
    await retry(id)
    await deliverDue(ctx)
    expect(receiver.received.map(({ attempt }) => attempt)).to.deep.equal([1, 2])
  })

  it('send an event from before the webhook was set up', async () => {
    const unconfigured = await anApp(ctx)
    const id = await emit(unconfigured)
    expect((await refusalOf(retry(id))).message).to.include('has no webhook address')
    await inTransaction(ctx, (tx) =>
      updateAppRow(tx, unconfigured.app.id, {
        webhookUrl: receiver.url,
        webhookSecret: ctx.keyring.seal(app.webhookSecret!, `apps.webhook_secret:${unconfigured.apiKey}`),
      }),
    )
    await retry(id)
    await deliverDue(ctx)
    expect(receiver.received.map(({ verified }) => verified)).to.deep.equal([true])
  })

  it('refuse an event that is being sent', async () => {
    const id = await emit()
    await claimAll()
    expect((await refusalOf(retry(id))).message).to.include('is being delivered')
    ctx.clock.advance('5s')
    expect((await retry(id)).lease).to.equal(0)
  })

  it('answer not_found for an unknown event', async () => {
    expect(await refusalOf(retry(999_999))).to.include({ code: 'not_found' })
  })

  it('replay all failed events of an app together', async () => {
    const failed = await getEvent(ctx.db, await emitFailed())
    await ctx.db.insertAll(events, rowsLike(failed, 119))
    await emit()
    expect(await retryFailed(ctx, ANN, app.app)).to.deep.equal({ retried: 120 })
    // Other work beside the test may delay an answer by more than the second of the other tests.
    const patient = { ...ctx, config: { ...ctx.config, webhook: { ...ctx.config.webhook, timeoutMs: 10_000 } } }
    expect(await deliverDue(patient)).to.include({ delivered: 121 })
    expect(receiver.received.filter(({ attempt }) => attempt === 7)).to.have.length(120)
  })

  it('replay each failed event once, although all of them fail again meanwhile', async () => {
    const failed = await getEvent(ctx.db, await emitFailed())
    await ctx.db.insertAll(events, rowsLike(failed, 119))
    receiver.answer = 500
    const webhook = { ...ctx.config.webhook, retryMinutes: [], timeoutMs: 10_000 }
    // Awaited: the sender is done before the next batch is read.
    const sendAndFail: () => unknown = () => deliverDue(impatient)
    const impatient: TestContext = { ...ctx, config: { ...ctx.config, webhook }, wakeSender: sendAndFail }
    expect(await retryFailed(impatient, ANN, app.app)).to.deep.equal({ retried: 120 })
    expect(receiver.received).to.have.length(120)
  })

  it('write every replay to the audit log', async () => {
    const id = await emitFailed()
    await retry(id)
    await emitFailed()
    await retryFailed(ctx, ANN, app.app)
    const rows = await ctx.db.all(auditLog, "WHERE action LIKE 'webhook.%' ORDER BY id")
    expect(rows.map(({ actor, action }) => `${actor} ${action}`)).to.deep.equal([
      'ann webhook.retry',
      'ann webhook.retry-failed',
    ])
  })

  describe('a test delivery', () => {
    it('is sent at once, signed, and reports the receiver’s answer', async () => {
      const result = await sendTestEvent(ctx, ANN, app.app)
      expect(result).to.include({ delivered: true, http_status: 200, error: null })
      expect(result.duration_ms).to.be.within(0, 10_000)
      expect(receiver.received).to.have.length(1)
      const [webhook] = receiver.received
      expect(webhook).to.include({ eventType: 'webhook.test', attempt: 1, verified: true, eventId: result.event_id })
      expect(webhook!.body).to.deep.equal({
        id: result.event_id,
        event_type: 'webhook.test',
        app_id: app.app.id,
        data: {},
        created_at: '2026-03-01T10:00:00+00:00',
      })
      await deliverDue(ctx)
      expect(receiver.received).to.have.length(1)
    })

    it('that fails is reported and not retried, and is nothing for an operator to do', async () => {
      receiver.answer = (response) => response.writeHead(503).end('down for repairs')
      const result = await sendTestEvent(ctx, ANN, app.app)
      expect(result).to.include({
        delivered: false,
        http_status: 503,
        error: 'http_503',
        response_head: 'down for repairs',
      })
      ctx.clock.advance('30d')
      await deliverDue(ctx)
      expect(receiver.received).to.have.length(1)
      expect((await listDeliveries(ctx, app.app)).rows[0]).to.include({ delivery_status: 'failed', attempts: 1 })
      expect(await readReview(ctx, null)).to.deep.equal([])
      expect(await webhooksFailed(ctx)).to.deep.equal([])
      expect((await checkWebhooks(ctx)).filter(({ ok }) => !ok)).to.deep.equal([])
    })

    it('needs an address and a secret', async () => {
      const unconfigured = await anApp(ctx)
      expect(await refusalOf(sendTestEvent(ctx, ANN, unconfigured.app))).to.include({ code: 'invalid_request' })
    })
  })
})
