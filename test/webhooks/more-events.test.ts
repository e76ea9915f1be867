import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { expireDue } from '#renewals/expire-due.ts'
import { presentApp } from '#apps/present.ts'
import { getApp } from '#apps/store.ts'
import { endSubscription } from '#subscriptions/end-subscription.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { refusalOf } from '../support/expect-error.ts'
import { FREE_TRIAL, LIFETIME, MONTHLY, transferred } from '../support/factories.ts'
import { changeApp } from '../support/operators.ts'
import { newEventTypes, startScenario, type Scenario } from '../support/scenario.ts'

describe('events that an app asks for', () => {
  let scenario: Scenario

  beforeEach(async () => {
    scenario = await startScenario()
  })
  afterEach(async () => {
    expect((await verifyLedger(scenario.service.ctx, null)).faults).to.deep.equal([])
    await scenario.service.stop()
  })

  const ask = async (...more_events: string[]) =>
    changeApp(scenario.service.ctx, 'linh', await getApp(scenario.service.ctx.db, scenario.app.app.id), { more_events })
  const refund = (transactionId: number, amount: number, reference: string) =>
    resolveTransaction(scenario.service.ctx, operator('mai'), {
      transactionId,
      action: 'refund',
      note: 'asked',
      amount,
      reference,
    })
  const bought = async () => {
    const checkout = await scenario.checkout({ mode: 'payment', plan_ref: 'book', amount: 5000, currency: 'VND' })
    await scenario.reportTransfer(checkout)
    await scenario.newEvents()
    return checkout.transaction_id
  }
  /** Two lifetime payments, of which the second cannot be applied. */
  const flagged = async () => {
    const { prices } = await scenario.plan('pro', LIFETIME)
    const open = [await scenario.checkout({ price_id: prices[0] }), await scenario.checkout({ price_id: prices[0] })]
    for (const checkout of open) await scenario.pay(checkout)
    return open[1]!.transaction_id
  }
  const end = async (externalRef: string) =>
    perform(
      scenario.service.ctx,
      operator('mai'),
      endSubscription,
      { note: 'asked' },
      {
        app: await getApp(scenario.service.ctx.db, scenario.app.app.id),
        externalRef,
      },
    )

  it('are none unless it asks, and app show lists them', async () => {
    expect(presentApp(await getApp(scenario.service.ctx.db, scenario.app.app.id)).more_events).to.deep.equal([])
    await refund(await bought(), 1000, 'r1')
    await flagged()
    await end('user-1')
    const types = ['transaction.refunded', 'transaction.flagged', 'subscription.expired']
    const written = await newEventTypes(scenario)
    expect(written).to.include('subscription.updated')
    expect(written.filter((type) => types.includes(type))).to.deep.equal([])
    const asked = await ask('subscription.expired', 'transaction.refunded', 'subscription.expired')
    expect(presentApp(asked).more_events).to.deep.equal(['transaction.refunded', 'subscription.expired'])
    expect(await newEventTypes(scenario), 'nothing of what happened before').to.deep.equal([])
    expect((await refusalOf(ask('transaction.paid'))).message).to.match(/^more_events\.0: must be/)
    expect(presentApp(await ask()).more_events).to.deep.equal([])
  })

  it('transaction.refunded reports each refund that succeeded, with the total', async () => {
    await ask('transaction.refunded')
    const transaction_id = await bought()
    await refund(transaction_id, 1000, 'r1')
    await refund(transaction_id, 4000, 'r2')
    const common = { transaction_id, external_ref: 'user-1', plan_ref: 'book', currency: 'VND' }
    const refunded_at = '2026-03-01 10:00:00'
    expect(await scenario.newEvents()).to.deep.equal([
      {
        type: 'transaction.refunded',
        data: { ...common, amount_refunded: 1000, amount_refunded_total: 1000, status: 'completed', refunded_at },
      },
      {
        type: 'transaction.refunded',
        data: { ...common, amount_refunded: 4000, amount_refunded_total: 5000, status: 'refunded', refunded_at },
      },
    ])
    expect((await scenario.transaction(transaction_id)).amount_refunded).to.equal(5000)
  })

  it('transaction.flagged reports a flag once', async () => {
    await ask('transaction.flagged')
    const transaction_id = await flagged()
    const events = (await scenario.newEvents()).filter(({ type }) => type === 'transaction.flagged')
    const { amount, currency } = LIFETIME
    expect(events.map(({ data }) => data)).to.deep.equal([
      {
        transaction_id,
        external_ref: 'user-1',
        plan_ref: 'pro',
        amount,
        amount_received: amount,
        currency,
        flag_reason: 'already_lifetime',
      },
    ])
  })

  describe('subscription.expired', () => {
    const expired = async () => {
      await expireDue(scenario.service.ctx)
      return (await scenario.newEvents()).filter(({ type }) => type === 'subscription.expired').map(({ data }) => data)
    }

    it('reports the end of a period before a late payment or a trial starts the next one, if the job did not', async () => {
      await ask('subscription.expired')
      const { id, prices } = await scenario.plan('pro', MONTHLY)
      const gold = await scenario.plan('gold', { ...MONTHLY, trial: FREE_TRIAL })
      for (const external_ref of ['user-1', 'user-2'])
        await scenario.pay(await scenario.checkout({ price_id: prices[0], external_ref }))
      await scenario.newEvents()
      // A payment in the second of the end is late, too.
      scenario.at('2026-04-01 10:00:00')
      await scenario.pay(await scenario.checkout({ price_id: prices[0] }))
      scenario.at('2026-04-01 10:00:20')
      await scenario.checkout({ price_id: gold.prices[0], external_ref: 'user-2' })
      const events = await scenario.newEvents()
      expect(events.map(({ type }) => type)).to.deep.equal([
        ...['subscription.expired', 'subscription.renewed', 'subscription.updated'],
        ...['subscription.expired', 'subscription.updated'],
      ])
      const names = { paygate_customer_id: null, merchant_customer_id: null, plan_id: id, plan_ref: 'pro' }
      const data = { ...names, price_id: prices[0], period_end: '2026-04-01 10:00:00', was_trial: false }
      expect([events[0]!.data, events[3]!.data]).to.deep.equal([
        { external_ref: 'user-1', ...data },
        { external_ref: 'user-2', ...data },
      ])
      expect(await expired()).to.deep.equal([])
    })

    it('reports the end of each period once, and none of a period that was extended', async () => {
      await ask('subscription.expired')
      const { id, prices } = await scenario.plan('pro', MONTHLY, { ...MONTHLY, trial: FREE_TRIAL })
      await scenario.pay(await scenario.checkout({ price_id: prices[0] }))
      await scenario.checkout({ price_id: prices[1], external_ref: 'user-2' })
      scenario.at('2026-03-08 09:59:59')
      expect(await expired()).to.deep.equal([])
      scenario.at('2026-03-08 10:00:00')
      const names = { paygate_customer_id: null, merchant_customer_id: null, plan_id: id, plan_ref: 'pro' }
      expect(await expired()).to.deep.equal([
        {
          external_ref: 'user-2',
          ...names,
          price_id: prices[1],
          period_end: '2026-03-08 10:00:00',
          was_trial: true,
        },
      ])
      expect(await expired()).to.deep.equal([])
      await scenario.pay(await scenario.checkout({ price_id: prices[0] }))
      scenario.at('2026-04-01 10:00:01')
      expect(await expired(), 'extended meanwhile').to.deep.equal([])
      scenario.at('2026-05-01 10:00:01')
      expect((await expired()).map(({ period_end }) => period_end)).to.deep.equal(['2026-05-01 10:00:00'])
    })

    it('reports the end of a period that is over before its payment is known, after subscription.updated and once', async () => {
      await ask('subscription.expired')
      const { prices } = await scenario.plan('pro', MONTHLY)
      const { transaction_id } = await scenario.checkout({ price_id: prices[0] })
      const another = await scenario.checkout({ price_id: prices[0], external_ref: 'user-2' })
      const paidAt = scenario.service.ctx.clock.now()
      const known = (id: number) => transferred(scenario.service.ctx, id, MONTHLY.amount, { paidAt })
      scenario.at('2026-04-02 10:00:00')
      await known(transaction_id)
      expect(await scenario.subscription()).to.include({ status: 'expired', current_period_end: '2026-04-01 10:00:00' })
      const [updated, ...others] = await scenario.newEvents()
      expect(updated!.data).to.include({ external_ref: 'user-1', status: 'expired' })
      expect(others).to.deep.equal([])
      const [event, ...more] = await expired()
      expect(event).to.include({ external_ref: 'user-1', period_end: '2026-04-01 10:00:00' })
      expect(more).to.deep.equal([])
      await ask()
      await known(another.transaction_id)
      expect(await expired(), 'it does not ask any more').to.deep.equal([])
    })

    it('is sent when an operator ends a subscription, and not again by the job', async () => {
      await ask('subscription.expired')
      await flagged()
      await scenario.newEvents()
      await end('user-1')
      const [event, ...others] = await expired()
      expect(event).to.include({ external_ref: 'user-1', period_end: '2026-03-01 10:00:00', was_trial: false })
      expect(others).to.deep.equal([])
      expect(await expired()).to.deep.equal([])
    })
  })
})
