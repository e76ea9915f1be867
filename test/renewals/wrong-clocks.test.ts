import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Context } from '#context.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { planReminders } from '#mails/reminders/plan-reminders.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { addMs, DAY_MS, HOUR_MS } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { SERVER } from '../support/factories.ts'
import { aScene, type Scene } from './scene.ts'

/** The period of `user-1` ends on 1 April, 10:00. */
describe('reminders where clocks are wrong', () => {
  let scene: Scene

  beforeEach(async () => {
    scene = await aScene()
  })
  afterEach(() => scene.stop())

  /** A daemon on a machine whose clock is wrong by so much; the test's clock is the database's. */
  function daemon(offsetMs: number): Context {
    const { clock } = scene.ctx
    return { ...scene.ctx, clock: { now: () => addMs(clock.now(), offsetMs), database: clock } }
  }

  const storedStatus = async (): Promise<string> => (await scene.subscription()).status

  it('a period that was stored as expired too early has all its mails', async () => {
    await scene.subscribe()
    scene.ctx.clock.set('2036-01-01 00:00:00')
    expect(await expireDue(scene.ctx)).to.equal(1)
    scene.ctx.clock.set('2026-03-20 12:00:00')
    const planned = await planReminders(scene.ctx, await scene.app(), 14)
    expect(planned.map(({ reminder_day: day, will_send: isSent }) => [day, isSent])).to.deep.equal([
      [3, true],
      [1, true],
      [0, true],
    ])
    for (const now of ['2026-03-29 12:00:00', '2026-03-31 12:00:00', '2026-04-01 10:00:00']) {
      scene.ctx.clock.set(now)
      expect(await sendDueReminders(scene.ctx), now).to.include({ sent: 1 })
    }
    expect(await storedStatus()).to.equal('expired')
    expect(await scene.stages()).to.deep.equal(['3', '1', '0'])
  })

  it('a sweep of one app sends them, too', async () => {
    await scene.subscribe()
    await scene.ctx.db.update(subscriptions, { status: 'active' }, { status: 'expired' })
    scene.ctx.clock.set('2026-03-29 12:00:00')
    expect(await sendDueReminders(scene.ctx, { appId: scene.seller.app.id })).to.include({ sent: 1 })
  })

  for (const [side, offsetMs] of [
    ['ahead', 200],
    ['behind', -200],
  ] as const) {
    it(`a daemon whose clock is ${side} completes the work of the time to which it moves a test clock`, async () => {
      await scene.subscribe()
      const now = '2026-04-01 10:00:00'
      await advanceTestClock(daemon(offsetMs), SERVER, await scene.app(), { now })
      expect(await storedStatus()).to.equal('expired')
      expect(await scene.stages()).to.deep.equal(['0'])
    })
  }

  it('a daemon whose clock is ten years ahead stores nothing as expired, and sends no notice', async () => {
    await scene.subscribe()
    expect(await expireDue(daemon(3650 * DAY_MS))).to.equal(0)
    expect(await storedStatus()).to.equal('active')
    scene.ctx.clock.set('2026-03-29 12:00:00')
    expect(await sendDueReminders(daemon(4 * DAY_MS))).to.include({ sent: 1 })
    expect(await scene.stages()).to.deep.equal(['3'])
  })

  it('two daemons whose clocks are ten hours apart send each mail once', async () => {
    await scene.subscribeMany(20)
    scene.ctx.clock.set('2026-03-29 10:00:00')
    const daemons = [daemon(5 * HOUR_MS), daemon(-5 * HOUR_MS)]
    const summaries = await Promise.all(daemons.map((each) => sendDueReminders(each)))
    expect(summaries.reduce((sum, { sent }) => sum + sent, 0)).to.equal(20)
    expect(new Set(scene.inbox.messageIds).size).to.equal(20)
    expect(scene.inbox.mails).to.have.lengthOf(20)
  })

  for (const [owner, other] of [
    [-5, 5],
    [5, -5],
  ] as const) {
    it(`a mail that a daemon ${owner} hours off is sending is not taken by one ${other} hours off, until a minute has passed`, async () => {
      await scene.subscribe()
      scene.ctx.clock.set('2026-03-29 10:00:00')
      const others: number[] = []
      // At this moment the owner has claimed the mail and not handed it over, as a daemon that dies here leaves it.
      scene.inbox.beforeGoAhead = async () => {
        scene.inbox.beforeGoAhead = null
        for (const seconds of [0, 59, 2]) {
          scene.ctx.clock.advance(`${seconds}s`)
          others.push((await sendDueReminders(daemon(other * HOUR_MS))).sent)
        }
      }
      expect(await sendDueReminders(daemon(owner * HOUR_MS))).to.include({ sent: 0 })
      expect(others).to.deep.equal([0, 0, 1])
      expect(scene.inbox.mails).to.have.lengthOf(1)
    })
  }
})
