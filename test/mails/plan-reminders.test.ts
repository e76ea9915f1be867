import { perform } from '#commands/perform.ts'
import { payer } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { optOut } from '#renewals/opt-out.ts'
import { planReminders } from '#mails/reminders/plan-reminders.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { sendTestMail } from '#mails/send-test-mail.ts'
import { reminders } from '#mails/reminders/store.ts'
import { addMs, DAY_MS } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { DAILY, LIFETIME, aPlan } from '../support/factories.ts'
import { insertMany, rowsLike } from '../support/many-rows.ts'
import { rowsReadBy } from '../support/rows-read.ts'
import { setDisabled } from '../support/operators.ts'
import { aScene, type Scene } from '../renewals/scene.ts'

describe('reminders plan', () => {
  let scene: Scene
  beforeEach(async () => {
    // A monthly period from 2026-03-01 10:00:00 to 2026-04-01 10:00:00.
    scene = await aScene()
  })
  afterEach(() => scene.stop())

  const plan = async (days: number) => {
    const rows = await planReminders(scene.ctx, await scene.app(), days)
    return rows.map(({ external_ref, reminder_day, due_at, reason }) => [external_ref, reminder_day, due_at, reason])
  }

  it('lists who gets which mail when, in the order of time, up to the horizon', async () => {
    await scene.subscribe()
    scene.ctx.clock.set('2026-03-20 10:00:00')
    expect(await plan(8)).to.deep.equal([])
    expect(await plan(10)).to.deep.equal([['user-1', 3, '2026-03-29 10:00:00', null]])
    expect(await plan(14)).to.deep.equal([
      ['user-1', 3, '2026-03-29 10:00:00', null],
      ['user-1', 1, '2026-03-31 10:00:00', null],
      ['user-1', 0, '2026-04-01 10:00:00', null],
    ])
    const [first] = await planReminders(scene.ctx, null, 14)
    expect(first).to.include({
      app_id: scene.seller.app.id,
      is_test: true,
      to: 'an@example.com',
      locale: 'en',
      period_end: '2026-04-01 10:00:00',
      will_send: true,
      last_error: null,
    })
  })

  it('costs what is due in the asked window, however long the history of its subscriptions and of others is', async () => {
    const subscribers = 30
    await scene.subscribeMany(subscribers)
    scene.ctx.clock.set('2026-03-29 10:00:00')
    await sendDueReminders(scene.ctx)
    const app = await scene.app()
    const planNow = () => rowsReadBy(scene.ctx, (ctx) => planReminders(ctx, app, 0))
    const [planned, read] = await planNow()
    expect(planned.map(({ reason }) => reason)).to.deep.equal(Array(subscribers).fill('already_sent'))
    expect(read).to.be.lessThan(subscribers * 10)
    // Five years of mails.
    const { db } = scene.ctx
    const history = (await db.all(reminders, '')).flatMap((sent) =>
      ([0, 1, 3] as const).flatMap((stage) =>
        rowsLike(sent, 60, (months) => ({ stage, periodEnd: addMs(sent.periodEnd, -months * 30 * DAY_MS) })),
      ),
    )
    await insertMany(db, reminders, history)
    // 3,000 others, half of which ended before the window and half of which end after it.
    const one = await scene.subscription()
    const others = rowsLike(one, 3000, (n) => ({
      ...{ endUserId: 1_000_000 + n, externalRef: `other-${n}`, renewalToken: `other-${n}` },
      currentPeriodEnd: addMs(one.currentPeriodEnd!, (n % 2 === 0 ? -30 : 30) * DAY_MS),
    }))
    await insertMany(db, subscriptions, others)
    const [again, readAgain] = await planNow()
    expect(again).to.deep.equal(planned)
    expect(readAgain).to.be.at.most(read)
  })

  it('lists who gets none and why', async () => {
    const short = await aPlan(scene.ctx, scene.seller, { prices: [DAILY] })
    const lifetime = await aPlan(scene.ctx, scene.seller, { prices: [LIFETIME] })
    await scene.subscribe({ externalRef: 'nobody', customer: null })
    const { renewalToken } = await scene.subscribe({ externalRef: 'opted-out' })
    await perform(scene.ctx, payer, optOut, undefined, { renewalToken })
    await scene.subscribe({ externalRef: 'life', plan: lifetime })
    scene.ctx.clock.set('2026-03-31 12:00:00')
    await scene.subscribe({ externalRef: 'short', plan: short })
    const rows = await plan(0)
    expect(rows).to.have.deep.members([
      ['nobody', 1, '2026-03-31 10:00:00', 'no_customer'],
      ['opted-out', 1, '2026-03-31 10:00:00', 'opted_out'],
      ['short', 1, '2026-03-31 12:00:00', null],
    ])
    expect(await plan(1)).to.deep.include(['short', 0, '2026-04-01 12:00:00', null])
    scene.ctx.clock.set('2026-03-31 12:00:01')
    expect((await plan(0)).filter(([ref]) => ref === 'short')).to.have.lengthOf(1)
    await setDisabled(scene.ctx, 'tester', await scene.app(), true)
    expect((await plan(0)).map(([, , , reason]) => reason)).to.deep.equal(Array(3).fill('app_disabled'))
  })

  it('shows what was sent, what failed and what is unconfirmed', async () => {
    await scene.subscribe()
    scene.ctx.clock.set('2026-03-29 10:00:00')
    scene.inbox.behaviour = 'refuse-data'
    await sendDueReminders(scene.ctx)
    const [failed] = await planReminders(scene.ctx, await scene.app(), 0)
    expect(failed).to.include({ will_send: true, reason: null })
    expect(failed?.last_error).to.contain('try again later')
    scene.inbox.behaviour = 'accept'
    scene.ctx.clock.advance('1m')
    await sendDueReminders(scene.ctx)
    expect(await plan(0)).to.deep.equal([['user-1', 3, '2026-03-29 10:00:00', 'already_sent']])
    scene.ctx.clock.set('2026-03-31 10:00:00')
    scene.inbox.behaviour = 'lose-answer'
    await sendDueReminders(scene.ctx)
    expect(await plan(0)).to.deep.equal([['user-1', 1, '2026-03-31 10:00:00', 'unconfirmed']])
  })
})

describe('mail test', () => {
  it('sends an operator a reminder with the TEST mark by the configured mail server', async () => {
    const scene = await aScene()
    await sendTestMail(scene.ctx, 'operator@example.com', 'vi')
    await scene.stop()
    expect(scene.inbox.mails[0]?.recipients).to.deep.equal(['operator@example.com'])
    expect(scene.inbox.mails[0]?.parsed.subject).to.contain('[TEST]')
  })
})
