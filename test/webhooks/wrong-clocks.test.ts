import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { databaseNow, databasePresent } from '#db/database-now.ts'
import { parseId } from '#shared/ids.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '#shared/time.ts'
import { claimDueEvents, type LeasedEvent } from '#webhooks/claim-due-events.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { finishAttempts } from '#webhooks/finish-attempts.ts'
import { retryEvent } from '#webhooks/retry-event.ts'
import { listDue } from '#webhooks/claims/store.ts'
import { events, getEvent } from '#webhooks/store.ts'
import { testContext, wrongClock } from '../support/context.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { aCompletion, anApp, type TestApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'

describe('webhooks of two daemons whose clocks are ten hours apart', () => {
  let ahead: Context
  let behind: Context
  let receiver: Receiver
  let app: TestApp

  beforeEach(async () => {
    const settings = { BILLING_WEBHOOK_TIMEOUT_MS: '10000' }
    ahead = { ...testContext(settings), clock: wrongClock(5 * HOUR_MS) }
    behind = { ...testContext(settings), clock: wrongClock(-5 * HOUR_MS) }
    receiver = await Receiver.start()
    app = await anApp(ahead, { webhookUrl: receiver.url })
  })
  afterEach(() => receiver.stop())

  async function emit(ctx: Context, count: number): Promise<void> {
    await inTransaction(ctx, async (tx) => {
      for (let number = 0; number < count; number += 1) {
        const data = aCompletion(`user-${number}`)
        await emitEvent(tx, { app: app.app, type: 'transaction.completed', data })
      }
    })
  }

  /** Claims due events, like a daemon that dies right afterwards. */
  async function claimAll(ctx: Context): Promise<LeasedEvent[]> {
    return claimDueEvents(ctx, await listDue(ctx.db, [app.app.id], 100, databasePresent(ctx)))
  }

  /** The milliseconds until the event is due, or its lease ends, by the database's clock. */
  async function untilMs(time: 'nextAttemptAt' | 'leaseUntil', eventId: number): Promise<number> {
    const event = await getEvent(ahead.db, eventId)
    return event[time]!.getTime() - (await databaseNow(ahead, ahead.db)).getTime()
  }

  it('are each sent once, whoever wrote them', async () => {
    await emit(ahead, 50)
    await emit(behind, 50)
    const tallies = await Promise.all([deliverDue(behind), deliverDue(ahead), deliverDue(behind)])
    expect(tallies.reduce((sum, { delivered }) => sum + delivered, 0)).to.equal(100)
    expect(new Set(receiver.received.map(({ eventId }) => parseId('evt', eventId))).size).to.equal(100)
    expect(receiver.received).to.have.length(100)
  })

  it('are not taken from the daemon that is sending them', async () => {
    for (const [owner, other] of [
      [behind, ahead],
      [ahead, behind],
    ] as const) {
      await emit(owner, 1)
      expect(await claimAll(owner)).to.have.length(1)
      expect(await claimAll(other)).to.deep.equal([])
    }
  })

  it('are not marked as failed by the other daemon during the last attempt', async () => {
    for (const [owner, other] of [
      [behind, ahead],
      [ahead, behind],
    ] as const) {
      await emit(owner, 1)
      await owner.db.update(events, { deliveryStatus: 'pending' }, { retriesLeft: 0 })
      const [event] = await claimAll(owner)
      expect(await claimAll(other)).to.deep.equal([])
      const now = await databaseNow(owner, owner.db)
      const answered = { startedAt: now, durationMs: 50, httpStatus: 200, error: null, responseHead: '' }
      await finishAttempts(owner, [{ kind: 'made', event: event!, ...answered }])
      expect((await getEvent(owner.db, event!.id)).deliveryStatus).to.equal('delivered')
    }
  })

  it('are taken over when the lease of a dead daemon expires', async () => {
    await emit(ahead, 1)
    const [event] = await claimAll(ahead)
    expect(await untilMs('leaseUntil', event!.id)).to.be.within(0, 41 * SECOND_MS)
  })

  it('are retried after the gap of the schedule', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    for (const ctx of [ahead, behind]) {
      await emit(ctx, 1)
      await deliverDue(ctx)
      const eventId = parseId('evt', receiver.received.at(-1)!.eventId)!
      expect(await untilMs('nextAttemptAt', eventId)).to.be.within(MINUTE_MS - 10 * SECOND_MS, MINUTE_MS)
    }
  })

  it('are sent again at once by a command of an operator', async () => {
    await emit(ahead, 1)
    await deliverDue(behind)
    await perform(ahead, operator('ann'), retryEvent, { event_id: receiver.received[0]!.eventId }, {})
    await deliverDue(behind)
    expect(receiver.received.map(({ attempt }) => attempt)).to.deep.equal([1, 2])
  })
})
