import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { LIFETIME, MONTHLY, type ReportedPayment, transferred } from '../support/factories.ts'
import { startScenario, newEventTypes, type Scenario, type PayableCheckout } from '../support/scenario.ts'
import { payments } from '#payments/store.ts'
import { asRealTime } from '#shared/time.ts'
import { providerEvents } from '#transactions/store.ts'
import { expectError } from '../support/expect-error.ts'
import { setDisabled } from '../support/operators.ts'

describe('money that arrives', () => {
  let scenario: Scenario
  let checkout: PayableCheckout
  beforeEach(async () => {
    scenario = await startScenario()
    const plan = await scenario.plan('pro', MONTHLY)
    checkout = await scenario.checkout({ price_id: plan.prices[0] })
  })
  afterEach(() => stopWithCleanLedger(scenario.service))

  const arrives = (amount: number, changes: Partial<ReportedPayment> = {}) =>
    transferred(scenario.service.ctx, checkout.transaction_id, amount, changes)
  const transaction = () => scenario.transaction(checkout.transaction_id)
  const timesFlagged = () =>
    scenario.service.ctx.counted.filter(({ metric }) => metric === 'payments_flagged_total').length

  it('underpaid: less than the amount keeps it pending and flags it; the rest completes it and the flag goes', async () => {
    expect((await arrives(60_000)).kind).to.equal('underpaid')
    expect(await transaction()).to.include({
      status: 'pending',
      flagged: true,
      flag_reason: 'underpaid',
      amount_received: 60_000,
      provider_code: 'bank_transfer',
    })
    expectError(await scenario.seller.get('/api/v1/subscriptions/user-1'), 404, 'not_found')
    expect((await arrives(39_000)).kind).to.equal('processed')
    expect(await transaction()).to.include({
      status: 'completed',
      flagged: false,
      flag_reason: null,
      amount_received: 99_000,
    })
    expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
  })

  it('underpaid again: the rest of a part does not complete it where some of the part was refunded meanwhile', async () => {
    await arrives(60_000)
    const back = { amount: 20_000, reference: 'FT-BACK', note: 'asked by phone' }
    const order = { transactionId: checkout.transaction_id, action: 'refund', ...back } as const
    await resolveTransaction(scenario.service.ctx, operator('mai'), order)
    expect((await arrives(39_000)).kind).to.equal('underpaid')
    expect((await arrives(20_000)).kind).to.equal('processed')
  })

  it('more than asked still completes, and what was received is shown', async () => {
    expect((await arrives(150_000)).kind).to.equal('processed')
    expect(await transaction()).to.include({
      status: 'completed',
      flagged: false,
      amount: 99_000,
      amount_received: 150_000,
    })
  })

  it('the same partial transfer reported twice counts once', async () => {
    await arrives(60_000, { reference: 'FT-same' })
    expect((await arrives(60_000, { reference: 'FT-same' })).kind).to.equal('duplicate')
    expect(await transaction()).to.include({ status: 'pending', amount_received: 60_000 })
  })

  it('other money for a completed transaction is recorded and flagged duplicate_payment; the period stays', async () => {
    await arrives(99_000)
    const { current_period_end } = await scenario.subscription()
    expect((await arrives(99_000)).kind).to.equal('already_completed')
    expect(await transaction()).to.include({
      status: 'completed',
      flag_reason: 'duplicate_payment',
      amount_received: 198_000,
    })
    expect((await scenario.subscription()).current_period_end).to.equal(current_period_end)
  })

  it('other money for a transaction that is flagged leaves its flag', async () => {
    const lifetime = await scenario.plan('for-life', LIFETIME)
    await scenario.pay(await scenario.checkout({ price_id: lifetime.prices[0] }))
    for (const amount_received of [99_000, 198_000]) {
      await arrives(99_000)
      expect(await transaction()).to.include({ flag_reason: 'already_lifetime', amount_received })
    }
  })

  it('the same payment reported under another event id changes nothing', async () => {
    const same = { provider: 'stripe', reference: 'cs_1' } as const
    await arrives(99_000, { ...same, eventId: 'evt_1' })
    expect((await arrives(99_000, { ...same, eventId: 'evt_2' })).kind).to.equal('known_money')
    expect(await transaction()).to.include({ flagged: false, amount_received: 99_000, provider_code: 'stripe' })
    expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
  })

  it('another currency is refused and nothing is recorded', async () => {
    const { db } = scenario.service.ctx
    const event = { eventId: 'evt_1', reference: 'cs_1' } as const
    expect((await arrives(99_000, { ...event, currency: 'USD' })).kind).to.equal('wrong_currency')
    expect(await transaction()).to.include({ status: 'pending', amount_received: 0 })
    expect([await db.count(payments, ''), await db.count(providerEvents, '')]).to.deep.equal([0, 0])
    expect((await arrives(99_000, event)).kind, 'the same event with the right currency').to.equal('processed')
  })

  it('money for an unknown transaction is unknown_transaction', async () => {
    expect((await arrives(99_000, { transactionId: 999_999 })).kind).to.equal('unknown_transaction')
  })

  it('a payment that was made in time counts from when it was made, never from before the checkout or from the future', async () => {
    const early = asRealTime(new Date('2020-01-01T00:00:00Z'))
    scenario.at('2026-03-02 00:00:00')
    await arrives(99_000, { paidAt: early })
    expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
    const plan = await scenario.plan('max', MONTHLY)
    checkout = await scenario.checkout({ price_id: plan.prices[0], external_ref: 'user-2' })
    await arrives(99_000, { paidAt: asRealTime(new Date('2030-01-01T00:00:00Z')) })
    expect((await scenario.subscription('user-2')).current_period_end).to.equal('2026-04-02 00:00:00')
  })

  it('a payment of a disabled app completes', async () => {
    await setDisabled(scenario.service.ctx, 'tester', scenario.app.app, true)
    expect((await arrives(99_000)).kind).to.equal('processed')
    expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
  })

  it('an operator cannot complete a payment that nothing came for and that cannot be applied', async () => {
    const lifetime = await scenario.plan('for-life', LIFETIME)
    await scenario.pay(await scenario.checkout({ price_id: lifetime.prices[0] }))
    const input = { transactionId: checkout.transaction_id, action: 'complete', note: 'a gift' } as const
    const refused = await resolveTransaction(scenario.service.ctx, operator('mai'), input).catch(
      (error: unknown) => error,
    )
    expect(refused).to.include({ code: 'invalid_request' })
    expect((refused as Error).message).to.include('already_lifetime')
    expect(await transaction()).to.include({ status: 'pending', flagged: false })
  })

  it('what needs an operator is logged as such, without the payer', async () => {
    await arrives(60_000)
    const lines = scenario.service.ctx.logged.join('\n')
    expect(lines).to.include('needs an operator').and.not.include('user-1')
    expect(timesFlagged()).to.equal(1)
  })

  it('what is reported again, under another event, is not counted again as what needs an operator', async () => {
    await arrives(99_000)
    await arrives(99_000, { eventId: 'evt_1', reference: 'FT-twice' })
    expect(timesFlagged()).to.equal(1)
    expect((await arrives(99_000, { eventId: 'evt_2', reference: 'FT-twice' })).kind).to.equal('known_money')
    expect(timesFlagged()).to.equal(1)
  })
})
