import { claimAsRead } from '#mails/claims/store.ts'
import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { getApp } from '#apps/store.ts'
import { auditLog } from '#commands/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { claimNew, reminders } from '#mails/reminders/store.ts'
import { payments } from '#payments/store.ts'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { getSubscription, subscriptions } from '#subscriptions/store.ts'
import { startMailScenario, type MailScenario } from '../mails/mail-scenario.ts'
import { expectFieldError, expectError } from '../support/expect-error.ts'
import { MONTHLY, anApp, SERVER } from '../support/factories.ts'
import { newEventTypes } from '../support/scenario.ts'
import { until } from '../support/until.ts'

const DAY = 86_400
const PATH = '/api/v1/test-clock'

describe('test clock', () => {
  let scenario: MailScenario

  beforeEach(async () => {
    scenario = await startMailScenario()
  })
  afterEach(() => scenario.stop())

  const subscribe = async (externalRef = 'user-1') => {
    const plan = await scenario.plan(`plan-${externalRef}`, MONTHLY)
    const buyer = { external_ref: externalRef, customer_id: await scenario.customer() }
    await scenario.pay(await scenario.checkout({ ...buyer, price_id: plan.prices[0] }))
    await scenario.newEvents()
  }
  const advance = (body: unknown) => scenario.seller.post(PATH, body)
  const subjects = () => scenario.inbox.mails.map(({ parsed }) => parsed.subject)

  it('returns the app’s own time, and moves it by seconds or to a time', async () => {
    expect((await scenario.seller.get(PATH)).body).to.deep.equal({
      success: true,
      data: { now: '2026-03-01 10:00:00' },
    })
    expect((await advance({ advance_seconds: DAY })).body.data).to.deep.equal({ now: '2026-03-02 10:00:00' })
    expect((await advance({ now: '2026-04-01 00:00:00' })).body.data).to.deep.equal({ now: '2026-04-01 00:00:00' })
    scenario.service.ctx.clock.advance('1h')
    expect((await scenario.seller.get(PATH)).body.data).to.deep.equal({ now: '2026-04-01 01:00:00' })
  })

  it('has sent the mails and emitted their events when it responds', async () => {
    await subscribe()
    await advance({ advance_seconds: 28 * DAY })
    expect(subjects()).to.deep.equal(['[TEST] Your Premium subscription ends on 1 April 2026'])
    expect(await newEventTypes(scenario)).to.deep.equal(['subscription.renewal_reminder_sent'])
    await advance({ advance_seconds: 2 * DAY })
    await advance({ advance_seconds: 2 * DAY })
    expect(subjects().slice(1)).to.deep.equal([
      '[TEST] Your Premium subscription ends within 24 hours',
      '[TEST] Your Premium subscription has ended',
    ])
    expect((await scenario.subscription()).status).to.equal('expired')
    expect((await scenario.service.ctx.db.one(subscriptions, ''))?.status).to.equal('expired')
  })

  it('jumps once: as for a daemon that was down, only the stage that holds then is sent', async () => {
    await subscribe()
    await advance({ advance_seconds: 31 * DAY + 60 })
    expect(subjects()).to.deep.equal(['[TEST] Your Premium subscription has ended'])
  })

  it('moves periods and checkout links with it, and event times too', async () => {
    await advance({ now: '2027-01-31 10:00:00' })
    await subscribe()
    expect((await scenario.subscription()).current_period_end).to.equal('2027-02-28 10:00:00')
    const payment = await scenario.service.ctx.db.one(payments, '')
    expect(payment?.paidAt, 'money keeps real time').to.deep.equal(scenario.service.ctx.clock.now())
    await advance({ now: '2027-02-25 10:00:00' })
    const [event] = await scenario.newEvents()
    expect(event?.data['sent_at']).to.equal('2027-02-25T10:00:00+00:00')
    const plan = await scenario.plan('late', MONTHLY)
    const checkout = await scenario.checkout({ external_ref: 'user-2', price_id: plan.prices[0] })
    expect(checkout.expires_at).to.equal('2027-02-25 11:00:00')
    await advance({ advance_seconds: 3600 })
    expect((await scenario.service.call('GET', checkout.checkout_url)).status).to.equal(410)
  })

  it('never moves backwards, nor out of the calendar', async () => {
    await advance({ now: '2026-05-01 00:00:00' })
    expectFieldError(await advance({ now: '2026-04-30 23:59:59' }), 'now')
    expectFieldError(await advance({ now: '2026-02-30 00:00:00' }), 'now')
    expectFieldError(await advance({ now: '9500-01-01 00:00:00' }), 'now')
    expectFieldError(await advance({ advance_seconds: -1 }), 'advance_seconds')
    expectFieldError(await advance({ advance_seconds: 1.5 }), 'advance_seconds')
    expectFieldError(await advance({ advance_seconds: '60' }), 'advance_seconds')
    expect((await advance({ now: '2026-05-01 00:00:00' })).status).to.equal(200)
    expect((await scenario.seller.get(PATH)).body.data.now).to.equal('2026-05-01 00:00:00')
  })

  it('takes one of its two fields, and no others', async () => {
    expectFieldError(await advance({}), null)
    expectFieldError(await advance({ advance_seconds: 1, now: '2026-05-01 00:00:00' }), null)
    expectFieldError(await advance({ seconds: 1 }), 'seconds')
  })

  it('is forbidden for live apps, and leaves other apps where they are', async () => {
    const live = await anApp(scenario.service.ctx, { sandbox: false })
    expectError(await scenario.service.seller(live).post(PATH, { advance_seconds: 60 }), 403, 'forbidden')
    expectError(await scenario.service.seller(live).get(PATH), 403, 'forbidden')
    const other = await anApp(scenario.service.ctx)
    await advance({ advance_seconds: DAY })
    expect((await scenario.service.seller(other).get(PATH)).body.data.now).to.equal('2026-03-01 10:00:00')
  })

  it('by operators is for any sandbox app, and is in the audit log', async () => {
    const { ctx } = scenario.service
    const identity = await anApp(ctx, { auth: 'identity', methods: [] })
    expect(await advanceTestClock(ctx, operator('tester'), identity.app, { advance_seconds: DAY })).to.deep.equal({
      now: '2026-03-02 10:00:00',
    })
    expect((await getApp(ctx.db, identity.app.id)).clockOffsetMs).to.equal(DAY * 1000)
    const rows = await ctx.db.all(auditLog, "WHERE action = 'app.clock'")
    expect(rows.map(({ actor }) => actor)).to.deep.equal(['tester'])
  })

  describe('while another daemon is sending a reminder', () => {
    beforeEach(async () => {
      await subscribe()
      await subscribe('user-2')
      const { ctx } = scenario.service
      const { id, appId, currentPeriodEnd } = await getSubscription(ctx.db, scenario.app.app.id, 'user-1')
      const mail = { appId, subscriptionId: id, periodEnd: currentPeriodEnd!, stage: 3, countedOn: null } as const
      await inTransaction(ctx, (tx) => claimNew(tx, [mail], ctx.clock.now()))
    })
    const advanceFor = async (othersMs?: number) => {
      const { ctx } = scenario.service
      const app = await getApp(ctx.db, scenario.app.app.id)
      return advanceTestClock(ctx, SERVER, app, { advance_seconds: 28 * DAY }, othersMs)
    }

    it('waits for a limited time, then lists what is pending; a call after that daemon died sends it', async () => {
      expect(await advanceFor(100)).to.deep.equal({
        now: '2026-03-29 10:00:00',
        pending: [{ external_ref: 'user-1', reminder_day: 3, claimed_at: '2026-03-01 10:00:00' }],
      })
      expect(subjects(), 'that of user-2').to.have.lengthOf(1)
      scenario.service.ctx.clock.advance('61s')
      expect((await advance({ advance_seconds: 0 })).body.data).to.deep.equal({ now: '2026-03-29 10:01:01' })
      expect(subjects()).to.have.lengthOf(2)
    })

    it('lists what that daemon is trying again, too', async () => {
      const { ctx } = scenario.service
      await ctx.db.update(reminders, { status: 'claimed' }, { status: 'failed', failures: 1, lastError: 'busy' })
      const reminder = (await ctx.db.one(reminders, ''))!
      await inTransaction(ctx, (tx) => claimAsRead(tx, reminders, reminder, ctx.clock.now()))
      const { pending } = await advanceFor(100)
      expect(pending?.map(({ external_ref: ref }) => ref)).to.deep.equal(['user-1'])
    })

    it('sends what that daemon released before it responds', async () => {
      const answer = advanceFor()
      await until(() => scenario.inbox.mails.length === 1)
      const { db } = scenario.service.ctx
      await db.update(reminders, { sentAt: null, handedOverAt: null }, { status: 'failed' })
      expect(await answer).to.deep.equal({ now: '2026-03-29 10:00:00' })
      expect(subjects()).to.have.lengthOf(2)
    })
  })

  it('calls at the same moment all move it', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, () => advance({ advance_seconds: 60 })))
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 200])
    expect((await scenario.seller.get(PATH)).body.data.now).to.equal('2026-03-01 10:05:00')
  })

  it('a seller watches a year go by in seconds', async () => {
    await subscribe()
    for (let month = 0; month < 12; month += 1) {
      const { current_period_end } = await scenario.subscription()
      const end = Date.parse(`${current_period_end!.replace(' ', 'T')}Z`)
      for (const daysBefore of [3, 1]) {
        const time = new Date(end - daysBefore * DAY * 1000).toISOString().slice(0, 19).replace('T', ' ')
        await advance({ now: time })
      }
      const plan = (await scenario.subscription()).price_id
      await scenario.pay(await scenario.checkout({ price_id: plan }))
    }
    expect(scenario.inbox.mails).to.have.lengthOf(24)
    expect((await scenario.subscription()).current_period_end).to.equal('2027-04-01 10:00:00')
  })
})
