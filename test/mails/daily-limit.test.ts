import { once } from 'node:events'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { loadConfig } from '#config/config.ts'
import { checkReminders } from '#doctor/check-work.ts'
import { readHealthMetrics } from '#doctor/health-metrics.ts'
import { dailyLimit } from '#mails/daily-limit.ts'
import { planReminders } from '#mails/reminders/plan-reminders.ts'
import { reserveMails } from '#mails/limits/store.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { formatId } from '#shared/ids.ts'
import { isSomebodyWaiting } from '../support/database.ts'
import { MONTHLY, aCustomer, aPlan, aSubscription, anApp } from '../support/factories.ts'
import { until } from '../support/until.ts'
import { aScene, type Scene } from '../renewals/scene.ts'
import { startMailScenario } from './mail-scenario.ts'
import { startSweep } from './start-sweep.ts'

/** The first instant of stage 3 of a month that begins on 2026-03-01 10:00:00. */
const DUE = '2026-03-29 10:00:00'

describe('the daily limit of reminder mails', () => {
  let scene: Scene
  afterEach(() => scene.stop())

  const allowing = (limit: number) => ({ BILLING_MAILS_PER_APP_PER_DAY: String(limit) })
  const openScene = async (limit: number, subscribers: number): Promise<void> => {
    scene = await aScene({ settings: allowing(limit) })
    await scene.subscribeMany(subscribers)
    scene.ctx.clock.set(DUE)
  }
  const mails = () => scene.inbox.mails.length
  const planned = async () => (await planReminders(scene.ctx, await scene.app(), 0)).map(({ reason }) => reason)

  it('holds back what goes beyond it until the next UTC day: reminders plan says who waits, and each gets one mail', async () => {
    await openScene(2, 5)
    await sendDueReminders(scene.ctx)
    await sendDueReminders(scene.ctx)
    expect(mails()).to.equal(2)
    const plan = await planReminders(scene.ctx, await scene.app(), 0)
    const held = plan.filter(({ reason }) => reason === 'daily_limit')
    expect(held).to.have.lengthOf(3)
    for (const row of held) expect(row).to.include({ will_send: false, to: 'an@example.com', last_error: null })
    expect((await planned()).filter((reason) => reason === 'already_sent')).to.have.lengthOf(2)

    scene.ctx.clock.set('2026-03-29 23:59:59')
    await sendDueReminders(scene.ctx)
    expect(mails()).to.equal(2)
    scene.ctx.clock.set('2026-03-30 00:00:00')
    await sendDueReminders(scene.ctx)
    expect(mails()).to.equal(4)
    scene.ctx.clock.set('2026-03-31 00:00:00')
    await sendDueReminders(scene.ctx)
    expect(mails()).to.equal(5)
    expect(new Set(scene.inbox.messageIds).size).to.equal(5)
    expect(await planned()).to.deep.equal(Array.from({ length: 5 }, () => 'already_sent'))
    expect(await scene.counted()).to.deep.equal([
      ['2026-03-29', 2],
      ['2026-03-30', 2],
      ['2026-03-31', 1],
    ])
  })

  it('is an app’s own: another app’s mails go out', async () => {
    await openScene(1, 2)
    scene.ctx.clock.set('2026-03-01 10:00:00')
    const other = await anApp(scene.ctx, { name: 'Other' })
    const customer = await aCustomer(scene.ctx, other, { email: 'binh@example.com' })
    await aSubscription(scene.ctx, other, await aPlan(scene.ctx, other), {
      customer_id: formatId('cus', customer.id),
    })
    scene.ctx.clock.set(DUE)
    await sendDueReminders(scene.ctx)
    const recipients = scene.inbox.mails.flatMap((mail) => mail.recipients)
    expect(recipients.sort()).to.deep.equal(['an@example.com', 'binh@example.com'])
  })

  it('is kept exactly by daemons that send at once', async () => {
    await openScene(7, 24)
    const daemons = [1, 2].map(() => once(startSweep(scene, 'reminder', allowing(7)), 'exit'))
    expect((await Promise.all(daemons)).map(([code]) => code as number)).to.deep.equal([0, 0])
    expect(mails()).to.equal(7)
    expect(await scene.counted()).to.deep.equal([['2026-03-29', 7]])
    expect((await planned()).filter((reason) => reason === 'daily_limit')).to.have.lengthOf(17)
  })

  it('is counted by one daemon at a time: the next one waits, and is given what is left', async () => {
    await openScene(7, 1)
    const { ctx } = scene
    const { id } = await scene.app()
    const reserve = (tx: Tx, requested: number) => reserveMails(tx, id, '2026-03-29', requested, 7)
    expect(await inTransaction(ctx, (tx) => reserve(tx, 1))).to.equal(1)
    let second = Promise.resolve(0)
    const first = await inTransaction(ctx, async (tx) => {
      const allowed = await reserve(tx, 4)
      second = inTransaction(ctx, (other) => reserve(other, 4))
      await Promise.race([second, until(isSomebodyWaiting)])
      return allowed
    })
    expect([first, await second]).to.deep.equal([4, 2])
    expect(await scene.counted()).to.deep.equal([['2026-03-29', 7]])
  })

  it('counts a mail on the day it is sent, even if it was claimed before midnight', async () => {
    await openScene(1, 2)
    scene.ctx.clock.set('2026-03-29 23:59:59')
    scene.inbox.beforeGoAhead = () => {
      scene.ctx.clock.set('2026-03-30 00:00:01')
      return Promise.resolve()
    }
    await sendDueReminders(scene.ctx)
    expect(mails()).to.equal(0)
    scene.inbox.beforeGoAhead = null
    await sendDueReminders(scene.ctx)
    await sendDueReminders(scene.ctx)
    expect(mails()).to.equal(1)
    expect(await scene.counted()).to.deep.equal([['2026-03-30', 1]])
  })

  it('is shown by doctor, and what it holds back is not late', async () => {
    await openScene(1, 3)
    scene.ctx.clock.advance('2h')
    expect((await readHealthMetrics(scene.ctx)).metrics.reminderLagSeconds).to.equal(7200)
    await sendDueReminders(scene.ctx)
    const [result] = await checkReminders(scene.ctx)
    expect(result).to.include({ ok: true })
    expect(result?.detail).to.equal(
      `app ${scene.seller.app.id}: 2 mails held back until tomorrow (UTC): daily limit of 1 reached`,
    )
    expect(result?.fix).to.include(`reminders plan ${scene.seller.app.id}`)
    expect((await readHealthMetrics(scene.ctx)).metrics.reminderLagSeconds).to.equal(0)
    expect(scene.ctx.logged.join('')).to.include('has reached its daily limit of reminder mails')
  })

  const limits: [setting: string | undefined, live: number | null, sandbox: number][] = [
    [undefined, 10_000, 200],
    ['50', 50, 50],
    ['100000', 100_000, 200],
    ['0', null, 200],
  ]
  for (const [setting, live, sandbox] of limits) {
    it(`BILLING_MAILS_PER_APP_PER_DAY=${setting ?? ''} allows live apps ${live ?? 'any number'} and sandbox apps ${sandbox}`, () => {
      const config = loadConfig(setting === undefined ? {} : { BILLING_MAILS_PER_APP_PER_DAY: setting })
      expect(dailyLimit(config, { isSandbox: false })).to.equal(live)
      expect(dailyLimit(config, { isSandbox: true })).to.equal(sandbox)
    })
  }
})

describe('the daily limit and the test clock', () => {
  it('POST /test-clock answers while mails are held back, and counts them by the real day', async () => {
    const scenario = await startMailScenario({ BILLING_MAILS_PER_APP_PER_DAY: '2' })
    const { inbox } = scenario
    try {
      const plan = await scenario.plan('premium', MONTHLY)
      const id = await scenario.customer()
      for (const ref of ['user-1', 'user-2', 'user-3']) {
        await scenario.pay(await scenario.checkout({ external_ref: ref, price_id: plan.prices[0], customer_id: id }))
      }
      const advance = async (days: number) =>
        (await scenario.seller.post('/api/v1/test-clock', { advance_seconds: days * 86_400 })).status
      expect(await advance(28)).to.equal(200)
      expect(inbox.mails).to.have.lengthOf(2)
      // A jump of the app's own time begins no new day for the mail server.
      expect(await advance(1)).to.equal(200)
      expect(inbox.mails).to.have.lengthOf(2)
      scenario.service.ctx.clock.advance('14h')
      expect(await advance(0)).to.equal(200)
      expect(inbox.mails).to.have.lengthOf(3)
    } finally {
      await scenario.stop()
    }
  })
})
