import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { apps } from '#apps/store.ts'
import { checkProviders } from '#doctor/check-providers.ts'
import { reconcilePayments } from '#providers/engine/reconcile-payments.ts'
import { providerSessions } from '#providers/store.ts'
import { providerEvents } from '#transactions/store.ts'
import { events } from '#webhooks/store.ts'
import { enableMethod } from '../support/operators.ts'
import { aCheckout, anApp, aPlan, MONTHLY, priceId, tokenOf, YEARLY, transferred } from '../support/factories.ts'
import { payosNotification } from '../support/payos-peer.ts'
import { triedAt } from '../support/tried-at.ts'
import { until } from '../support/until.ts'
import type { Context } from '#context.ts'
import { listPaymentsOf } from '#payments/store.ts'
import { addMs, DAY_MS, HOUR_MS } from '#shared/time.ts'
import { PAYOS_KEYS } from './payos-shop.ts'
import { startProviderShop, type ProviderShop } from './provider-shop.ts'

const NOTHING = { lookedUp: 0, paid: 0, closed: 0, stillOpen: 0, failed: 0, refundsNoted: 0, refundsEnded: 0 }

describe('payments that stay pending', () => {
  let shop: ProviderShop
  let { clock, stripe, stripeKeys, payos, service, app, client } = {} as ProviderShop

  beforeEach(async () => {
    shop = await startProviderShop()
    ;({ clock, stripe, stripeKeys, payos, service, app, client } = shop)
  })
  afterEach(() => shop.stop())

  const open = async (body: object = {}): Promise<{ id: number; token: string }> => {
    const purchase = { mode: 'payment', plan_ref: 'book', amount: 99_000, currency: 'VND' }
    const checkout = await aCheckout(service.ctx, app, 'price_id' in body ? body : { ...purchase, ...body })
    return { id: checkout.transaction_id!, token: tokenOf(checkout) }
  }
  const choose: ProviderShop['choose'] = (...chosen) => shop.choose(...chosen)
  const byCard = async (body: object = {}) => {
    const { id, token } = await open(body)
    await choose(token, 'card')
    return { id, token, session: stripe.sessions.at(-1)! }
  }
  const byPayos = async (body: object = {}) => {
    const { id, token } = await open(body)
    await choose(token, 'payos')
    return { id, token, link: payos.links.at(-1)! }
  }
  const run = (options: object = {}) => reconcilePayments(service.ctx, options)
  const transaction = async (id: number) => (await client.get(`/api/v1/transactions/${id}`)).body.data
  const paidAtOf = async (id: number): Promise<Date> => (await listPaymentsOf(service.ctx.db, id))[0]!.paidAt
  const statuses = async (): Promise<string[]> =>
    (await service.ctx.db.all(providerSessions, 'ORDER BY id')).map(({ status }) => status)
  const eventsTold = (): Promise<number> => service.ctx.db.count(events, '')

  describe('whose notification never came', () => {
    it('a card payment is found 10 minutes after opening and completes; a notification that comes later changes nothing', async () => {
      const { id, session } = await byCard()
      stripe.pay(session)
      clock.advance('9m')
      expect(await run()).to.deep.equal(NOTHING)
      clock.advance('1m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, paid: 1 })
      expect(await transaction(id)).to.include({
        status: 'completed',
        provider_code: 'stripe',
        amount_received: 99_000,
      })
      expect(await statuses()).to.deep.equal(['paid'])
      const answer = await shop.notifyStripe(session)
      expect(answer.body.data.status).to.equal('already_completed')
      expect((await transaction(id)).flagged).to.equal(false)
      expect(await eventsTold()).to.equal(1)
      clock.advance('30d')
      expect(await run()).to.deep.equal(NOTHING)
    })

    it('its period starts when the card was charged', async () => {
      const { id, session } = await byCard()
      clock.advance('2m')
      stripe.pay(session)
      clock.advance('20m')
      await run()
      expect(await paidAtOf(id)).to.deep.equal(new Date('2026-03-01T10:02:00Z'))
    })

    it('a PayOS transfer is found and completes; a notification that comes later changes nothing', async () => {
      const { id, link } = await byPayos()
      const transfer = payos.transfer(link, 99_000)
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, paid: 1 })
      expect(await transaction(id)).to.include({ status: 'completed', provider_code: 'payos' })
      const answer = await service.call('POST', '/api/v1/webhooks/bank-transfer-provider', {
        raw: JSON.stringify(payosNotification(PAYOS_KEYS.checksumKey, link, transfer)),
      })
      expect(answer.body.data.status).to.equal('already_completed')
      expect(await transaction(id)).to.include({ amount_received: 99_000, flagged: false })
      expect(await eventsTold()).to.equal(1)
    })

    it('a partial PayOS transfer is found, flagged underpaid, and counted once', async () => {
      const { id, link } = await byPayos()
      payos.transfer(link, 40_000)
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, stillOpen: 1 })
      clock.advance('10m')
      await run()
      expect(await transaction(id)).to.include({ amount_received: 40_000, flag_reason: 'underpaid' })
      payos.transfer(link, 59_000)
      clock.advance('20m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, paid: 1 })
      expect(await transaction(id)).to.include({ status: 'completed', amount_received: 99_000, flagged: false })
    })

    it('a debit that succeeds days later is still found, and counts from when it is found', async () => {
      const { id, session } = await byCard()
      stripe.pay(session, 'delayed')
      for (let hour = 0; hour < 48; hour += 1) {
        clock.advance('1h')
        await run()
      }
      expect((await transaction(id)).status).to.equal('pending')
      stripe.settle(session)
      clock.advance('6h')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, paid: 1 })
      expect((await transaction(id)).status).to.equal('completed')
      expect(await paidAtOf(id)).to.deep.equal(clock.now())
    })

    it('a month that is found after a year of another plan was bought leaves the year: superseded', async () => {
      const month = await aPlan(service.ctx, app, { code: 'basic', prices: [MONTHLY] })
      const year = await aPlan(service.ctx, app, { code: 'gold', prices: [YEARLY] })
      const lost = await byCard({ mode: 'subscription', price_id: priceId(month) })
      stripe.pay(lost.session)
      clock.advance('5m')
      const bought = await byCard({ mode: 'subscription', price_id: priceId(year) })
      stripe.pay(bought.session)
      await shop.notifyStripe(bought.session)
      clock.advance('10m')
      expect(await run()).to.include({ paid: 1 })
      expect(await transaction(lost.id)).to.include({ status: 'completed', flag_reason: 'superseded' })
      expect((await client.get('/api/v1/subscriptions/user-1')).body.data).to.include({
        price_id: priceId(year),
        current_period_end: '2027-03-01 10:05:00',
      })
    })

    it("a disabled app's payment is found too", async () => {
      const { session } = await byCard()
      stripe.pay(session)
      await service.ctx.db.update(apps, { disabledAt: null }, { disabledAt: clock.now() })
      clock.advance('10m')
      expect((await run()).paid).to.equal(1)
    })
  })

  describe('are not asked for without end', () => {
    it('an unpaid session is looked up with growing gaps and closed after its end', async () => {
      await byCard()
      const calls: number[] = []
      for (let minute = 1; minute <= 120; minute += 1) {
        clock.advance('1m')
        if ((await run()).lookedUp > 0) calls.push(minute)
      }
      expect(calls).to.deep.equal([10, 20, 40, 65])
      expect(await statuses()).to.deep.equal(['closed'])
    })

    it('an unpaid PayOS link is closed an hour after its end', async () => {
      const { link } = await byPayos()
      clock.advance('30h')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, closed: 1 })
      expect(link.status).to.equal('EXPIRED')
    })

    it('an opening that never got an answer is closed after its end', async () => {
      stripe.mode = 'down'
      payos.mode = 'down'
      const { token } = await open()
      await choose(token, 'card')
      await choose(token, 'payos')
      expect(await statuses()).to.deep.equal(['opening', 'opening'])
      stripe.mode = 'up'
      payos.mode = 'up'
      clock.advance('30h')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 2, closed: 2 })
    })

    it('a session that Stripe does not know is closed', async () => {
      await byCard()
      stripe.sessions.length = 0
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, closed: 1 })
    })

    it('a paid session that does not fit what was opened pays nothing, is closed, and operators see it', async () => {
      const { id, session } = await byCard()
      stripe.pay(session)
      session.amount_total = 1
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, closed: 1 })
      expect((await transaction(id)).status).to.equal('pending')
      const notes = await service.ctx.db.all(providerEvents, 'WHERE transaction_id = ?', [id])
      expect(notes.map(({ outcome }) => outcome)).to.deep.equal(['refused'])
    })
  })

  describe('while a provider does not answer', () => {
    it('the other provider is asked all the same, and the silent one again later', async () => {
      const one = await byCard()
      const two = await byPayos()
      stripe.pay(one.session)
      payos.transfer(two.link, 99_000)
      stripe.mode = 'down'
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 2, paid: 1, failed: 1 })
      stripe.mode = 'up'
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, paid: 1 })
      expect((await transaction(one.id)).status).to.equal('completed')
    })

    it('it is not asked for every session of the run', async () => {
      for (let number = 0; number < 12; number += 1) await byCard({ external_ref: `user-${number}` })
      stripe.mode = 'down'
      clock.advance('10m')
      const counts = await run()
      expect(counts.failed).to.be.at.most(4)
      stripe.mode = 'up'
      expect(await run(), 'the account is paused').to.deep.equal(NOTHING)
      clock.advance('1m')
      expect((await run()).stillOpen).to.equal(12 - counts.failed)
      clock.advance('1m')
      expect((await run()).stillOpen).to.equal(counts.failed)
    })

    it('a session is given up 14 days after its end', async () => {
      await byCard()
      stripe.mode = 'down'
      clock.advance('16d')
      expect((await run()).failed).to.equal(1)
      expect(await statuses()).to.deep.equal(['closed'])
    })
  })

  describe('of which one fails', () => {
    /** A session of which Stripe says what nobody understands, and whose transaction was completed by transfer. */
    const unreadable = async (number = 0) => {
      const opened = await byCard({ external_ref: `odd-${number}` })
      stripe.pay(opened.session, 'delayed')
      Object.assign(opened.session, { payment_status: null })
      await transferred(service.ctx, opened.id, 99_000, { reference: `FT${opened.id}` })
      return opened
    }

    it('the others are found all the same, however many fail', async () => {
      for (let number = 0; number < 8; number += 1) await unreadable(number)
      for (let number = 0; number < 8; number += 1) {
        const { session } = await byCard({ external_ref: `user-${number}` })
        stripe.pay(session)
      }
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 16, paid: 8, failed: 8 })
    })

    it('an answer of 500 about one session delays no other of its account', async () => {
      for (let number = 0; number < 12; number += 1) {
        const { session } = await byCard({ external_ref: `user-${number}` })
        if (number < 2) stripe.brokenSessions.add(session.id)
        else stripe.pay(session)
      }
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 12, paid: 10, failed: 2 })
    })

    it('it is tried again after pauses that grow to 6 hours', async () => {
      const { id, session } = await unreadable()
      // 66 is shortly after its end.
      const tries = [0, 2, 6, 14, 30, 62, 66, 194, 450, 810, 1170, 1530]
      expect(await triedAt(clock, tries, 2, async () => (await run()).failed > 0)).to.deep.equal(tries)
      expect((await run({ all: true })).failed, 'an operator need not wait').to.equal(1)
      stripe.settle(session)
      clock.advance('6h')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, paid: 1 })
      expect(await transaction(id)).to.include({ flag_reason: 'duplicate_payment', amount_received: 198_000 })
    })

    it('an answer ends its pause: a look-up that failed once is no reason to close it late', async () => {
      const { id, session } = await byCard()
      stripe.mode = 'busy'
      clock.advance('10m')
      expect((await run()).failed).to.equal(1)
      stripe.mode = 'up'
      clock.advance('2m')
      expect((await run()).stillOpen).to.equal(1)
      clock.advance('2m')
      await transferred(service.ctx, id, 99_000, { reference: 'FT1' })
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, closed: 1 })
      expect(session.status).to.equal('expired')
    })

    it('an answer that cannot be believed, or says that there are too many questions, delays its own session only', async () => {
      for (let number = 0; number < 6; number += 1) await byPayos({ external_ref: `user-${number}` })
      for (let number = 0; number < 6; number += 1) await byCard({ external_ref: `user-${number}` })
      payos.mode = 'missigned'
      stripe.mode = 'busy'
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 12, failed: 12 })
      payos.mode = 'up'
      stripe.mode = 'up'
      await byPayos()
      clock.advance('10m')
      expect((await run()).stillOpen).to.equal(13)
    })

    it('the accounts take turns: a backlog of one app does not hold back the payment of another', async () => {
      for (let number = 0; number < 40; number += 1) await byCard({ external_ref: `user-${number}` })
      const other = await anApp(service.ctx, { sandbox: false })
      await enableMethod(service.ctx, 'tester', other.app, 'card', { secretKey: 'sk_test_second', webhookSecret: 'w' })
      app = other
      await byCard()
      clock.advance('10m')
      stripe.calls.length = 0
      expect((await run()).stillOpen).to.equal(41)
      const position = stripe.calls.findIndex(({ headers }) => headers.authorization === 'Bearer sk_test_second')
      // Eight are asked at once, in whatever order they arrive.
      expect(position).to.be.within(0, 16)
    })
  })

  describe('of an account that is refused or not answered', () => {
    const secondApp = async () => {
      const other = await anApp(service.ctx, { sandbox: false })
      await enableMethod(service.ctx, 'tester', other.app, 'card', { secretKey: 'sk_test_second', webhookSecret: 'w' })
      return other
    }
    const pausesSeen = async () =>
      (await checkProviders(service.ctx)).filter(({ detail }) => detail.includes('polling is paused until'))

    it('refused credentials pause that account alone, which doctor shows, and which ends by itself', async () => {
      for (let number = 0; number < 12; number += 1) await byCard({ external_ref: `user-${number}` })
      const { link } = await byPayos()
      payos.transfer(link, 99_000)
      const first = app
      app = await secondApp()
      stripe.pay((await byCard()).session)
      stripeKeys.shift()
      clock.advance('10m')
      const counts = await run()
      expect(counts.failed).to.be.within(1, 4)
      expect(counts).to.deep.equal({ ...NOTHING, lookedUp: counts.failed + 2, failed: counts.failed, paid: 2 })
      const [pause, ...more] = await pausesSeen()
      expect(more).to.deep.equal([])
      expect(pause).to.deep.equal({
        check: 'providers',
        ok: true,
        detail: `app ${first.app.id}, stripe: polling is paused until 2026-03-01 10:11:00 UTC, after 1 failure in a row since 2026-03-01 10:10:00 UTC: answered 401`,
        fix: `the pause ends by itself; billing-cli reconcile --app ${first.app.id} polls at once`,
      })
      clock.advance('1m')
      expect(await pausesSeen()).to.deep.equal([])
      stripeKeys.push('sk_test_first')
      expect(await run()).to.deep.equal({
        ...NOTHING,
        lookedUp: 12 - counts.failed,
        stillOpen: 12 - counts.failed,
      })
    })

    it('an answer of 500 pauses it too, longer each time and 15 minutes at most, until it answers', async () => {
      for (let number = 0; number < 40; number += 1) await byPayos({ external_ref: `user-${number}` })
      payos.mode = 'error'
      clock.advance('10m')
      const begun = [0, 1, 3, 7, 15, 30, 45, 60]
      expect(await triedAt(clock, begun, 1, async () => (await run()).failed > 0)).to.deep.equal(begun)
      const [pause] = await pausesSeen()
      expect(pause?.detail).to.include('after 8 failures in a row since 2026-03-01 10:10:00 UTC: answered 500')
      payos.mode = 'up'
      expect(await run()).to.deep.equal(NOTHING)
      const all = await run({ all: true })
      expect(all, 'an operator need not wait').to.deep.equal({ ...NOTHING, lookedUp: 40, stillOpen: 40 })
      expect(await pausesSeen(), 'an answer ends it').to.deep.equal([])
    })

    it('a provider that is unreachable is not called for app after app', async () => {
      for (let number = 0; number < 16; number += 1) {
        if (number > 0) app = await secondApp()
        await byCard()
      }
      stripe.mode = 'down'
      clock.advance('10m')
      // Eight at once, and one more in the place of each of the first two that fail.
      expect((await run()).failed).to.be.within(3, 10)
    })

    it('sessions that fail for an hour are named by doctor', async () => {
      const { id } = await byCard()
      stripe.mode = 'busy'
      for (let minute = 0; minute < 70; minute += 1) {
        clock.advance('1m')
        await run()
      }
      const details = (await checkProviders(service.ctx)).map(({ detail }) => detail)
      expect(details.join('\n'))
        .to.include(`1 session that may still be paid`)
        .and.include(`the newest of transaction ${id}`)
    })
  })

  describe('whose transaction was completed in another way', () => {
    it('the open card session is expired at Stripe by the next run, if nobody did it at once', async () => {
      const { id, session } = await byCard()
      await transferred(service.ctx, id, 99_000, { reference: 'ACB 1' })
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, closed: 1 })
      expect(session.status).to.equal('expired')
      expect(await statuses()).to.deep.equal(['closed'])
    })

    it('the open card session is expired at Stripe as soon as PayOS reports the payment', async () => {
      const { token, session } = await byCard()
      await choose(token, 'payos')
      const [link] = payos.links
      await shop.notifyPayos(link!, 99_000)
      await until(async () => (await statuses()).join() === 'closed,paid')
      expect(session.status).to.equal('expired')
    })

    it('the PayOS link is cancelled as soon as Stripe reports the payment', async () => {
      const { token, link } = await byPayos()
      await choose(token, 'card')
      stripe.pay(stripe.sessions[0]!)
      await shop.notifyStripe(stripe.sessions[0]!)
      await until(async () => (await statuses()).join() === 'closed,paid')
      expect(link.status).to.equal('CANCELLED')
    })

    it('money that was paid there all the same is recorded and flagged duplicate_payment', async () => {
      const { id, token, session } = await byCard()
      await choose(token, 'payos')
      payos.transfer(payos.links[0]!, 99_000)
      stripe.pay(session)
      clock.advance('10m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 2, paid: 2 })
      expect(await transaction(id)).to.include({ flag_reason: 'duplicate_payment', amount_received: 198_000 })
    })

    it('a debit that is under way there is looked up with growing gaps, as nothing can be closed', async () => {
      const { id, session } = await byCard()
      stripe.pay(session, 'delayed')
      await shop.notifyStripe(session)
      await transferred(service.ctx, id, 99_000, { reference: 'ACB 1' })
      const tries = [10, 20, 40, 65, 145]
      expect(await triedAt(clock, tries, 1, async () => (await run()).lookedUp > 0)).to.deep.equal(tries)
    })

    it('closing it is tried again when Stripe did not answer', async () => {
      const { token, session } = await byCard()
      await choose(token, 'payos')
      payos.transfer(payos.links[0]!, 99_000)
      stripe.mode = 'down'
      await run({ all: true })
      stripe.mode = 'up'
      clock.advance('1m')
      expect((await run()).lookedUp).to.equal(0)
      clock.advance('1m')
      expect(await run()).to.deep.equal({ ...NOTHING, lookedUp: 1, closed: 1 })
      expect(session.status).to.equal('expired')
    })
  })

  it('an operator has everything looked up now, or that of one app', async () => {
    const { session } = await byCard()
    stripe.pay(session)
    const other = await anApp(service.ctx, { sandbox: false })
    expect(await run({ all: true, appId: other.app.id })).to.deep.equal(NOTHING)
    expect(await run({ all: true, appId: app.app.id })).to.deep.equal({ ...NOTHING, lookedUp: 1, paid: 1 })
  })

  it("refunds made in Stripe's dashboard are listed if the job says so, and whenever an operator asks", async () => {
    const { session } = await byCard()
    stripe.pay(session)
    expect((await run({ all: true })).paid).to.equal(1)
    stripe.refund(session, 1000)
    expect((await run()).refundsNoted).to.equal(0)
    expect((await run({ withRefundLists: true })).refundsNoted).to.equal(1)
    stripe.refund(session, 1000)
    expect((await run({ all: true })).refundsNoted).to.equal(1)
    expect((await run({ all: true })).refundsNoted).to.equal(0)
  })

  it('several daemons at once ask for each session once', async () => {
    for (let number = 0; number < 6; number += 1) await byCard({ external_ref: `user-${number}` })
    clock.advance('10m')
    const runs = await Promise.all([run(), run(), run()])
    expect(runs.reduce((sum, { lookedUp }) => sum + lookedUp, 0)).to.equal(6)
    const lookUps = stripe.calls.filter(({ method, path }) => method === 'GET' && path !== '/v1/refunds')
    expect(lookUps).to.have.length(6)
  })

  describe('of daemons whose clocks are wrong', () => {
    /** A daemon on a machine whose clock is off by so much; the test's clock is the database's. */
    const daemon = (offsetMs: number): Context => ({
      ...service.ctx,
      clock: { now: () => addMs(clock.now(), offsetMs), database: clock },
    })

    it('each session is asked for once, ten minutes after it was opened, and after ten more', async () => {
      for (let number = 0; number < 6; number += 1) await byCard({ external_ref: `user-${number}` })
      const runAll = async (): Promise<number> => {
        const daemons = [daemon(5 * HOUR_MS), daemon(-5 * HOUR_MS)]
        const counts = await Promise.all(daemons.map((each) => reconcilePayments(each)))
        return counts.reduce((sum, { lookedUp }) => sum + lookedUp, 0)
      }
      const askedAfter: number[] = []
      for (let minute = 0; minute <= 31; minute += 1) {
        const asked = await runAll()
        if (asked > 0) askedAfter.push(minute, asked)
        clock.advance('1m')
      }
      expect(askedAfter).to.deep.equal([10, 6, 20, 6])
    })

    it('no session is given up early', async () => {
      await byCard()
      clock.advance('10m')
      expect(await reconcilePayments(daemon(30 * DAY_MS))).to.include({ lookedUp: 1, stillOpen: 1, closed: 0 })
    })

    it('a pause of an account ends after its time', async () => {
      await byPayos()
      payos.mode = 'error'
      clock.advance('10m')
      expect(await reconcilePayments(daemon(5 * HOUR_MS))).to.include({ failed: 1 })
      payos.mode = 'up'
      clock.advance('2m')
      expect(await reconcilePayments(daemon(-5 * HOUR_MS))).to.include({ lookedUp: 1, stillOpen: 1 })
    })
  })

  it('a daemon that stops leaves the rest to the next run', async () => {
    for (let number = 0; number < 3; number += 1) await byCard({ external_ref: `user-${number}` })
    clock.advance('10m')
    expect(await run({ signal: AbortSignal.abort() })).to.deep.equal(NOTHING)
    expect((await run()).lookedUp).to.equal(3)
  })
})
