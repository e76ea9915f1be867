import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { listAuditEntries } from '#commands/store.ts'
import { previewResolution, resolveTransaction, type ResolveInput } from '#decisions/resolve-transaction.ts'
import { refundsOf } from '#payments/list-payments.ts'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { refusalOf } from '../support/expect-error.ts'
import { LIFETIME, MONTHLY, PAID_TRIAL, transferred } from '../support/factories.ts'
import { startScenario, newEventTypes, type Scenario } from '../support/scenario.ts'
import { operator } from '#commands/caller.ts'

describe('resolving flagged transactions', () => {
  let scenario: Scenario
  beforeEach(async () => {
    scenario = await startScenario()
  })
  afterEach(() => stopWithCleanLedger(scenario.service))

  const arrives = (transactionId: number, amount: number) => transferred(scenario.service.ctx, transactionId, amount)
  const resolve = (transactionId: number, action: ResolveInput['action'], changes: Partial<ResolveInput> = {}) =>
    resolveTransaction(scenario.service.ctx, operator('mai'), {
      transactionId,
      action,
      note: 'asked by phone',
      ...changes,
    })
  const refused = async (work: Promise<unknown>) => (await refusalOf(work)).message
  const underpaid = async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const { transaction_id } = await scenario.checkout({ price_id: plan.prices[0] })
    await arrives(transaction_id, 95_000)
    return transaction_id
  }

  it('the preview of complete shows its effects, also where the payment cannot be applied', async () => {
    const plan = await scenario.plan('pro', { ...MONTHLY, trial: PAID_TRIAL })
    const late = await scenario.checkout({ price_id: plan.prices[0] })
    await scenario.pay(await scenario.checkout({ price_id: plan.prices[0] }))
    await arrives(late.transaction_id, 9_000)
    await newEventTypes(scenario)
    const preview = await previewResolution(scenario.service.ctx, operator('mai'), {
      transactionId: late.transaction_id,
      action: 'complete',
    })
    expect(preview.effects).to.deep.equal([
      'accepts ₫9,000 of ₫10,000 as full payment',
      'cannot be applied: flagged trial_already_used',
    ])
    expect(await newEventTypes(scenario)).to.deep.equal([])
    expect(await scenario.transaction(late.transaction_id)).to.include({ status: 'pending', flag_reason: 'underpaid' })
    expect(await resolve(late.transaction_id, 'complete')).to.include({ flagReason: 'trial_already_used' })
  })

  it('does what its preview showed or nothing: it is refused once another operator, or more money, came first', async () => {
    const id = await underpaid()
    const refund = { transactionId: id, action: 'refund', reference: 'FT-OUT-1' } as const
    const shown = async () => (await previewResolution(scenario.service.ctx, operator('mai'), refund)).seen
    const early = await shown()
    await arrives(id, 1_000)
    expect(await refused(resolve(id, 'refund', { ...refund, seen: early }))).to.equal(
      `transaction ${id}, or its subscription, has changed since this was shown: run the command again`,
    )
    const late = await shown()
    await resolve(id, 'complete')
    expect(await refused(resolve(id, 'refund', { ...refund, seen: late }))).to.include('has changed since')
    expect(await refundsOf(scenario.service.ctx, id)).to.deep.equal([])
    expect(await resolve(id, 'refund', { ...refund, seen: await shown() })).to.include({ status: 'refunded' })
  })

  it('completes as its preview showed or not at all: it is refused once another payment moved the period', async () => {
    const id = await underpaid()
    const complete = { transactionId: id, action: 'complete' } as const
    const { seen } = await previewResolution(scenario.service.ctx, operator('mai'), complete)
    const { prices } = await scenario.plan('gold', MONTHLY)
    await scenario.pay(await scenario.checkout({ price_id: prices[0] }))
    expect(await refused(resolve(id, 'complete', { seen }))).to.include('or its subscription, has changed since')
    expect(await scenario.transaction(id)).to.include({ status: 'pending', flag_reason: 'underpaid' })
    const again = await previewResolution(scenario.service.ctx, operator('mai'), complete)
    await resolve(id, 'complete', { seen: again.seen })
    expect(await scenario.transaction(id)).to.include({ status: 'completed' })
  })

  it('complete accepts what was received and applies it; the preview shows the new end first', async () => {
    const id = await underpaid()
    const preview = await previewResolution(scenario.service.ctx, operator('mai'), {
      transactionId: id,
      action: 'complete',
    })
    expect(preview.effects).to.deep.equal([
      'accepts ₫95,000 of ₫99,000 as full payment',
      'valid until: no subscription → 2026-04-01 10:00:00 UTC',
      'the app is sent subscription.updated',
    ])
    expect(await newEventTypes(scenario)).to.deep.equal([])
    await resolve(id, 'complete')
    expect(await scenario.transaction(id)).to.include({
      status: 'completed',
      flagged: false,
      amount_received: 95_000,
      provider_code: 'bank_transfer',
    })
    expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
    expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
  })

  it('after complete, subscription.renewed has what was paid; transaction.completed has the amount of the purchase', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const renewalOf = async (external_ref: string): Promise<number> => {
      const purchase = { external_ref, price_id: plan.prices[0] }
      await scenario.pay(await scenario.checkout(purchase))
      return (await scenario.checkout(purchase)).transaction_id
    }
    const [less, nothing, more] = [await renewalOf('less'), await renewalOf('nothing'), await renewalOf('more')]
    const sticker = { mode: 'payment', plan_ref: 'sticker', amount: 20_000, currency: 'VND' }
    const { transaction_id: oneTime } = await scenario.checkout(sticker)
    await arrives(less, 95_000)
    await arrives(oneTime, 15_000)
    await scenario.newEvents()
    for (const id of [less, nothing, oneTime]) await resolve(id, 'complete')
    await arrives(more, 100_000)
    const events = (await scenario.newEvents()).filter(({ type }) => type !== 'subscription.updated')
    expect(events.map(({ type, data }) => [type, data['transaction_id'], data['amount']])).to.deep.equal([
      ['subscription.renewed', less, 95_000],
      ['subscription.renewed', nothing, 0],
      ['transaction.completed', oneTime, 20_000],
      ['subscription.renewed', more, 99_000],
    ])
  })

  it('dismiss clears the flag and changes nothing else', async () => {
    const id = await underpaid()
    await resolve(id, 'dismiss')
    expect(await scenario.transaction(id)).to.include({ status: 'pending', flagged: false, amount_received: 95_000 })
    expect(await refused(resolve(id, 'dismiss'))).to.include('nothing to dismiss')
  })

  it('a manual refund needs the reference of the transfer, and ends an unapplied payment as refunded', async () => {
    const plan = await scenario.plan('pro', MONTHLY, LIFETIME)
    const earlier = await scenario.checkout({ price_id: plan.prices[0] })
    await scenario.pay(await scenario.checkout({ price_id: plan.prices[1] }))
    await arrives(earlier.transaction_id, 99_000)
    expect(await refused(resolve(earlier.transaction_id, 'refund'))).to.include('reference')
    await resolve(earlier.transaction_id, 'refund', { reference: 'FT-BACK' })
    expect(await scenario.transaction(earlier.transaction_id)).to.include({ status: 'refunded', flagged: false })
    expect((await scenario.subscription()).current_period_end).to.equal(null)
  })

  it('a refund of a test payment needs no reference, and keeps one that is given', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const checkout = await scenario.checkout({ price_id: plan.prices[0] })
    await scenario.pay(checkout)
    const { transaction_id: id } = checkout
    await resolve(id, 'refund', { amount: 9_000, reference: 'DESK-1' })
    const terms = { transactionId: id, action: 'refund' } as const
    const preview = await previewResolution(scenario.service.ctx, operator('mai'), terms)
    expect(preview.effects[0]).to.equal('₫90,000 by test is recorded as refunded')
    await resolve(id, 'refund', { amount: 40_000 })
    await resolve(id, 'refund')
    const refunds = await refundsOf(scenario.service.ctx, id)
    expect(refunds.map(({ amount, status, reference }) => [amount, status, reference])).to.have.deep.members([
      [9_000, 'succeeded', 'DESK-1'],
      [40_000, 'succeeded', null],
      [50_000, 'succeeded', null],
    ])
    expect(await scenario.transaction(id)).to.include({ status: 'refunded', amount_refunded: 99_000 })
  })

  it('the refund of a duplicate returns the surplus, and the period stays', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const { transaction_id } = await scenario.checkout({ price_id: plan.prices[0] })
    await arrives(transaction_id, 99_000)
    await arrives(transaction_id, 99_000)
    const preview = await previewResolution(scenario.service.ctx, operator('mai'), {
      transactionId: transaction_id,
      action: 'refund',
      reference: 'FT-BACK',
    })
    expect(preview.effects).to.deep.equal([
      '₫99,000 by bank_transfer is recorded as refunded manually (FT-BACK)',
      'the period that was paid for stays',
    ])
    await resolve(transaction_id, 'refund', { reference: 'FT-BACK' })
    expect(await scenario.transaction(transaction_id)).to.include({ status: 'completed', flagged: false })
    expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
  })

  it('a completed payment can be refunded, once, and its period stays', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const { transaction_id: transactionId } = await scenario.checkout({ price_id: plan.prices[0] })
    await arrives(transactionId, 99_000)
    const reference = 'FT-BACK'
    const preview = await previewResolution(scenario.service.ctx, operator('mai'), {
      transactionId,
      action: 'refund',
      reference,
    })
    expect(preview.effects.slice(1)).to.deep.equal([
      'the transaction ends as refunded',
      'the period that was paid for stays',
    ])
    const both = await Promise.allSettled([1, 2].map(() => resolve(transactionId, 'refund', { reference })))
    expect(both.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected'])
    expect(await scenario.transaction(transactionId)).to.include({ status: 'refunded', flagged: false })
    expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
    expect(await refused(resolve(transactionId, 'refund', { reference }))).to.include('refunded already')
  })

  it('a second refund of a duplicate is refused, so that only the surplus is returned', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const { transaction_id } = await scenario.checkout({ price_id: plan.prices[0] })
    await arrives(transaction_id, 99_000)
    await arrives(transaction_id, 99_000)
    await resolve(transaction_id, 'refund', { reference: 'FT-BACK' })
    expect(await refused(resolve(transaction_id, 'refund', { reference: 'FT-BACK' }))).to.include('refunded already')
    expect(await scenario.transaction(transaction_id)).to.include({ status: 'completed', flagged: false })
  })

  it('refuses to refund without money, to complete twice, and to resolve an unknown transaction', async () => {
    const plan = await scenario.plan('pro', MONTHLY)
    const checkout = await scenario.checkout({ price_id: plan.prices[0] })
    expect(await refused(resolve(checkout.transaction_id, 'refund'))).to.include('no money')
    await scenario.pay(checkout)
    expect(await refused(resolve(checkout.transaction_id, 'complete'))).to.include('only a pending transaction')
    expect(await refused(resolve(999_999, 'dismiss'))).to.include('not found')
  })

  it('every resolution is audited with who, why, before and after', async () => {
    const id = await underpaid()
    await resolve(id, 'complete')
    const [entry] = await listAuditEntries(scenario.service.ctx.db, { subject: `transaction ${id}`, limit: 10 })
    expect(entry).to.include({ actor: 'mai', action: 'transaction.resolve.complete', reason: 'asked by phone' })
    expect(entry?.beforeState).to.include({ status: 'pending', flag_reason: 'underpaid' })
    expect(entry?.afterState).to.include({ status: 'completed', flagged: false })
  })

  it('an operator and a transfer at once complete the transaction once, and no money is lost', async () => {
    const id = await underpaid()
    await Promise.allSettled([resolve(id, 'complete'), arrives(id, 4000)])
    expect((await scenario.transaction(id)).status).to.equal('completed')
    expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
  })
})
