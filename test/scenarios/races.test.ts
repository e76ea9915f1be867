import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { chooseMethod } from '#checkout/choose-method.ts'
import { viewCheckout } from '#checkout/view-checkout.ts'
import { inTransaction } from '#commands/transaction.ts'
import { recordUnallocatedMoney } from '#bank-mail/book-money.ts'
import { payments } from '#payments/store.ts'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { testDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'
import { FREE_TRIAL, LIFETIME, MONTHLY, PAID_TRIAL, reportPayment, tokenOf, transferred } from '../support/factories.ts'
import { startScenario, newEventTypes, type Scenario } from '../support/scenario.ts'

describe('races for the one entry point of money', () => {
  let scenario: Scenario
  beforeEach(async () => {
    scenario = await startScenario()
  })
  afterEach(() => stopWithCleanLedger(scenario.service))

  const count = (values: readonly (string | null)[], value: string) => values.filter((each) => each === value).length

  it('20 free-trial checkouts of one end user at once: exactly one activates', async () => {
    const plan = await scenario.plan('pro', { ...MONTHLY, trial: FREE_TRIAL })
    const answers = await Promise.all(Array.from({ length: 20 }, () => scenario.checkout({ price_id: plan.prices[0] })))
    expect(answers.filter(({ activated }) => activated)).to.have.length(1)
    expect(answers.filter(({ trial }) => trial !== null)).to.have.length(1)
    expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
  })

  it('10 confirmations of one payment at once: applied once', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const checkout = await scenario.checkout({ price_id: plan.prices[0] })
    const payment = {
      provider: 'stripe',
      reference: 'cs_1',
      transactionId: checkout.transaction_id,
      amount: 99_000,
      currency: 'VND',
      paidAt: scenario.service.ctx.clock.now(),
    } as const
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, n) => reportPayment(scenario.service.ctx, { ...payment, eventId: `evt_${n}` })),
    )
    const kinds = outcomes.map(({ kind }) => kind)
    expect(count(kinds, 'processed')).to.equal(1)
    expect(count(kinds, 'known_money')).to.equal(9)
    expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
    expect(await scenario.transaction(checkout.transaction_id)).to.include({ amount_received: 99_000, flagged: false })
  })

  it('10 copies of one provider event at once: one runs, nine are duplicates', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const checkout = await scenario.checkout({ price_id: plan.prices[0] })
    const payment = {
      provider: 'stripe',
      eventId: 'evt_1',
      reference: 'cs_1',
      transactionId: checkout.transaction_id,
      amount: 99_000,
      currency: 'VND',
      paidAt: scenario.service.ctx.clock.now(),
    } as const
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => reportPayment(scenario.service.ctx, payment)))
    expect(outcomes.map(({ kind }) => kind).sort()).to.deep.equal([
      ...Array.from({ length: 9 }, () => 'duplicate'),
      'processed',
    ])
  })

  it('card, bank transfer and test method at once on one transaction: one completes it, the others are flagged, no money is lost', async () => {
    const { ctx } = scenario.service
    const plan = await scenario.plan('pro', MONTHLY)
    const checkout = await scenario.checkout({ price_id: plan.prices[0] })
    const money = {
      eventId: null,
      transactionId: checkout.transaction_id,
      amount: 99_000,
      currency: 'VND',
      paidAt: ctx.clock.now(),
    }
    await Promise.all([
      reportPayment(ctx, { ...money, provider: 'stripe', reference: 'cs_1' }),
      reportPayment(ctx, { ...money, provider: 'bank_transfer', reference: 'FT1' }),
      chooseMethod(ctx, tokenOf(checkout), 'test'),
    ])
    const transaction = await scenario.transaction(checkout.transaction_id)
    expect(transaction).to.include({ status: 'completed', flagged: true, flag_reason: 'duplicate_payment' })
    expect(transaction.amount_received).to.be.oneOf([198_000, 297_000])
    expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
  })

  it('money that is recorded as unmatched while it is being booked is booked, and there once', async () => {
    const { ctx } = scenario.service
    const plan = await scenario.plan('pro', MONTHLY)
    const { transaction_id } = await scenario.checkout({ price_id: plan.prices[0] })
    const money = { amount: 99_000, paidAt: ctx.clock.now() }
    const confirm = () => transferred(ctx, transaction_id, money.amount, { ...money, reference: 'ACB FT1' })
    let confirmed: ReturnType<typeof confirm> | undefined
    await inTransaction(ctx, async (tx) => {
      const waiting = { ...money, reference: 'ACB FT1', bankAccountId: null, appId: null }
      await recordUnallocatedMoney(tx, waiting)
      confirmed = confirm()
      await until(isPaymentWaiting)
    })
    expect(await confirmed).to.include({ kind: 'processed', wasUnallocated: true })
    expect(await ctx.db.count(payments, '')).to.equal(1)
    expect(await scenario.transaction(transaction_id)).to.include({ amount_received: 99_000, flagged: false })
  })

  /** Whether a payment is being inserted: it cannot be, before the one that has its reference is committed. */
  async function isPaymentWaiting(): Promise<boolean> {
    const { db, name } = testDatabase()
    const rows: unknown[] = await db.query(
      `SELECT 1 FROM information_schema.processlist WHERE db = ? AND info LIKE 'INSERT INTO payments %'`,
      [name],
    )
    return rows.length > 0
  }

  it('four paid trials of one plan paid at once: one is applied, three are flagged', async () => {
    const plan = await scenario.plan('pro', { ...MONTHLY, trial: PAID_TRIAL })
    const checkouts = await Promise.all([1, 2, 3, 4].map(() => scenario.checkout({ price_id: plan.prices[0] })))
    const { ctx } = scenario.service
    // As all four pages showed them before anyone paid.
    const views = await Promise.all(checkouts.map((checkout) => viewCheckout(ctx, tokenOf(checkout))))
    await Promise.all(views.map((view) => chooseMethod(ctx, view.session.token, 'test', { seen: view })))
    const flags = await Promise.all(
      checkouts.map(async ({ transaction_id }) => (await scenario.transaction(transaction_id)).flag_reason),
    )
    expect(flags.filter((flag) => flag === null)).to.have.length(1)
    expect(count(flags, 'trial_already_used')).to.equal(3)
    expect((await scenario.subscription()).current_period_end).to.equal('2026-03-08 10:00:00')
  })

  it('lifetime bought twice at once: never applied twice, the second is flagged', async () => {
    const plan = await scenario.plan('pro', LIFETIME)
    const checkouts = await Promise.all([1, 2].map(() => scenario.checkout({ price_id: plan.prices[0] })))
    await Promise.all(checkouts.map((checkout) => scenario.pay(checkout)))
    const flags = await Promise.all(
      checkouts.map(async ({ transaction_id }) => (await scenario.transaction(transaction_id)).flag_reason),
    )
    expect(flags.sort()).to.deep.equal(['already_lifetime', null].sort())
  })

  it('12 months paid at once are a year: every payment extends the end that the previous one set', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    scenario.at('2026-01-31 10:00:00')
    const checkouts = await Promise.all(
      Array.from({ length: 12 }, () => scenario.checkout({ price_id: plan.prices[0] })),
    )
    await Promise.all(checkouts.map((checkout) => scenario.pay(checkout)))
    expect((await scenario.subscription()).current_period_end).to.equal('2027-01-31 10:00:00')
  })
})
