import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { chooseMethod } from '#checkout/choose-method.ts'
import { viewCheckout } from '#checkout/view-checkout.ts'
import { confirmPayment } from '#transactions/confirm-payment.ts'
import { verifyLedger } from '#transactions/ledger.ts'
import { FREE_TRIAL, LIFETIME, MONTHLY, PAID_TRIAL, tokenOf } from '../support/factories.ts'
import { startStory, toldTypes, type Story } from '../support/story.ts'

describe('races (contract 4, One door for money)', () => {
  let story: Story
  beforeEach(async () => {
    story = await startStory()
  })
  afterEach(async () => {
    const report = await verifyLedger(story.service.ctx, null)
    await story.service.stop()
    expect(report.faults, 'the ledger').to.deep.equal([])
  })

  const count = (values: readonly string[], value: string) => values.filter((each) => each === value).length

  it('20 free-trial checkouts of one end user at once: exactly one activates', async () => {
    const plan = await story.plan('pro', { ...MONTHLY, trial: FREE_TRIAL })
    const answers = await Promise.all(Array.from({ length: 20 }, () => story.checkout({ price_id: plan.prices[0] })))
    expect(answers.filter(({ activated }) => activated)).to.have.length(1)
    expect(answers.filter(({ trial }) => trial !== null)).to.have.length(1)
    expect(await toldTypes(story)).to.deep.equal(['subscription.updated'])
  })

  it('10 confirmations of one payment at once: applied once', async () => {
    const plan = await story.plan('pro', MONTHLY)
    const checkout = await story.checkout({ price_id: plan.prices[0] })
    const payment = {
      provider: 'stripe',
      reference: 'cs_1',
      transactionId: checkout.transaction_id,
      amount: 99_000,
      currency: 'VND',
      paidAt: story.service.ctx.clock.now(),
    } as const
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, n) => confirmPayment(story.service.ctx, { ...payment, eventId: `evt_${n}` })),
    )
    const kinds = outcomes.map(({ kind }) => kind)
    expect(count(kinds, 'processed')).to.equal(1)
    expect(count(kinds, 'already_completed')).to.equal(9)
    expect(await toldTypes(story)).to.deep.equal(['subscription.updated'])
    expect(await story.transaction(checkout.transaction_id)).to.include({ amount_received: 99_000, flagged: false })
  })

  it('10 copies of one provider event at once: one runs, nine are duplicates', async () => {
    const plan = await story.plan('pro', MONTHLY)
    const checkout = await story.checkout({ price_id: plan.prices[0] })
    const payment = {
      provider: 'stripe',
      eventId: 'evt_1',
      reference: 'cs_1',
      transactionId: checkout.transaction_id,
      amount: 99_000,
      currency: 'VND',
      paidAt: story.service.ctx.clock.now(),
    } as const
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => confirmPayment(story.service.ctx, payment)))
    expect(outcomes.map(({ kind }) => kind).sort()).to.deep.equal([
      ...Array.from({ length: 9 }, () => 'duplicate'),
      'processed',
    ])
  })

  it('card, bank transfer and test method at once on one transaction: one completes it, the others are flagged, no money is dropped', async () => {
    const { ctx } = story.service
    const plan = await story.plan('pro', MONTHLY)
    const checkout = await story.checkout({ price_id: plan.prices[0] })
    const money = {
      eventId: null,
      transactionId: checkout.transaction_id,
      amount: 99_000,
      currency: 'VND',
      paidAt: ctx.clock.now(),
    }
    await Promise.all([
      confirmPayment(ctx, { ...money, provider: 'stripe', reference: 'cs_1' }),
      confirmPayment(ctx, { ...money, provider: 'bank_transfer', reference: 'FT1' }),
      chooseMethod(ctx, tokenOf(checkout), 'test'),
    ])
    const transaction = await story.transaction(checkout.transaction_id)
    expect(transaction).to.include({ status: 'completed', flagged: true, flag_reason: 'duplicate_payment' })
    expect(transaction.amount_received).to.be.oneOf([198_000, 297_000])
    expect(await toldTypes(story)).to.deep.equal(['subscription.updated'])
  })

  it('two paid trials of one plan paid at once: one is applied, one is flagged', async () => {
    const plan = await story.plan('pro', { ...MONTHLY, trial: PAID_TRIAL })
    const checkouts = await Promise.all([1, 2, 3, 4].map(() => story.checkout({ price_id: plan.prices[0] })))
    const { ctx } = story.service
    // As all four pages showed them before anyone paid.
    const views = await Promise.all(checkouts.map((checkout) => viewCheckout(ctx, tokenOf(checkout))))
    await Promise.all(views.map((view) => chooseMethod(ctx, view.session.token, 'test', view)))
    const flags = await Promise.all(
      checkouts.map(async ({ transaction_id }) => (await story.transaction(transaction_id)).flag_reason),
    )
    expect(flags.filter((flag) => flag === null)).to.have.length(1)
    expect(count(flags, 'trial_already_used')).to.equal(3)
    expect((await story.subscription()).current_period_end).to.equal('2026-03-08 10:00:00')
  })

  it('lifetime bought twice at once: never applied twice, the second is flagged', async () => {
    const plan = await story.plan('pro', LIFETIME)
    const checkouts = await Promise.all([1, 2].map(() => story.checkout({ price_id: plan.prices[0] })))
    await Promise.all(checkouts.map((checkout) => story.pay(checkout)))
    const flags = await Promise.all(
      checkouts.map(async ({ transaction_id }) => (await story.transaction(transaction_id)).flag_reason),
    )
    expect(flags.sort()).to.deep.equal(['already_lifetime', null].sort())
  })

  it('12 months paid at once are a year: every payment is applied to the end that the one before it left', async () => {
    const plan = await story.plan('pro', MONTHLY)
    story.at('2026-01-31 10:00:00')
    const checkouts = await Promise.all(Array.from({ length: 12 }, () => story.checkout({ price_id: plan.prices[0] })))
    await Promise.all(checkouts.map((checkout) => story.pay(checkout)))
    expect((await story.subscription()).current_period_end).to.equal('2027-01-31 10:00:00')
  })
})
