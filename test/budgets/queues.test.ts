import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import { sendDueReminders, type SweepSummary } from '#mails/reminders/send-due-reminders.ts'
import { randomHex } from '#shared/crypto.ts'
import { DAY_MS, addMs, asAppTime, systemClock, wholeSeconds } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { emitEvent } from '#webhooks/emit-event.ts'
import { aScene, type Scene } from '../renewals/scene.ts'
import { realTimeContext, type RealTimeContext } from '../support/context.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { aCompletion, anApp } from '../support/factories.ts'
import { Receiver } from '../support/receiver.ts'
import { countStatements, type Counted } from './counted.ts'

const BATCH = 50
/** Each app's receiver is sent so many at once before it has answered. */
const AT_ONCE = 4

describe('statement budgets of webhooks', () => {
  let ctx: RealTimeContext
  let receiver: Receiver
  let counted: Counted

  beforeEach(async () => {
    ctx = realTimeContext()
    receiver = await Receiver.start()
  })
  afterEach(async () => {
    await counted.close()
    await receiver.stop()
  })

  /** Writes due webhooks of several apps. */
  async function emit(count: number): Promise<void> {
    for (let left = count; left > 0; left -= AT_ONCE) {
      const { app } = await anApp(ctx, { webhookUrl: receiver.url })
      const data = aCompletion('u')
      await inTransaction(ctx, async (tx) => {
        for (let number = 0; number < Math.min(left, AT_ONCE); number += 1)
          await emitEvent(tx, { app, type: 'transaction.completed', data })
      })
    }
  }

  it('a batch of 50 webhooks takes 8, beside the looks for what is due: they are claimed, counted, signed and recorded', async () => {
    const answers: (() => void)[] = []
    // Answers when all have come: how fast the machine is does not count.
    receiver.answer = (response) => {
      answers.push(() => response.writeHead(200).end())
      if (answers.length === BATCH) for (const answer of answers) answer()
    }
    await emit(BATCH)
    // While answers are on their way, it looks again now and then.
    counted = await countStatements(ctx, /FORCE INDEX \(events_app_due\)/)
    expect(await counted.atMost(8, () => deliverDue(ctx))).to.include({ delivered: BATCH })
  })
})

describe('statement budgets of reminder mails', () => {
  let scene: Scene
  let counted: Counted

  beforeEach(async () => {
    scene = await aScene()
    // The database's clock is asked, as it is by daemons.
    Object.assign(scene.ctx, { clock: systemClock })
    counted = await countStatements(scene.ctx)
  })
  afterEach(async () => {
    await counted.close()
    await scene.stop()
  })

  /** Makes so many mails of the first stage due. */
  async function makeDue(count: number): Promise<void> {
    const now = asAppTime(wholeSeconds(systemClock.now()))
    for (let number = 0; number < count; number += 1) {
      const { id } = await scene.subscribe({ externalRef: `due-${randomHex(8)}` })
      const period = { periodStart: addMs(now, -20 * DAY_MS), currentPeriodEnd: addMs(now, 2 * DAY_MS) }
      await scene.ctx.db.update(subscriptions, { id }, period)
    }
  }

  const sweep = (): Promise<SweepSummary> => sendDueReminders(scene.ctx)

  it('one takes 6, beside the looks for what is due: it is claimed, marked when it leaves, and recorded', async () => {
    await makeDue(1)
    expect(await counted.atMost(40, sweep)).to.include({ sent: 1 })
    const ofOne = counted.seen.length
    await makeDue(30)
    expect(await counted.atMost(ofOne + 29 * 6, sweep)).to.include({ sent: 30 })
  })
})
