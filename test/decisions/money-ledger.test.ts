import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { recordUnallocatedMoney } from '#bank-mail/book-money.ts'
import { inTransaction } from '#commands/transaction.ts'
import { closePayment } from '#decisions/close-payment.ts'
import { examine } from '#doctor/doctor.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { refundPayment } from '#decisions/refund-payment.ts'
import { resolveTransaction, type ResolveInput } from '#decisions/resolve-transaction.ts'
import { gatherStats } from '#reports/stats.ts'
import { getTransactionTimeline } from '#support/transaction-timeline.ts'
import { listPaymentsOf } from '#payments/store.ts'
import { listPaymentRows } from '#payments/lists/store.ts'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { getApp } from '#apps/store.ts'
import { refusalOf } from '../support/expect-error.ts'
import { LIFETIME, MONTHLY, transferred } from '../support/factories.ts'
import { changeApp } from '../support/operators.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

const MAI = operator('mai')

describe('money is its own ledger', () => {
  let scenario: Scenario
  let references = 0
  let isTampered = false
  beforeEach(async () => {
    scenario = await startScenario()
    isTampered = false
  })
  afterEach(async () => {
    const report = await verifyLedger(scenario.service.ctx, null)
    await scenario.service.stop()
    if (!isTampered) expect(report.faults, 'the ledger').to.deep.equal([])
  })

  const arrives = (transactionId: number, amount: number) => transferred(scenario.service.ctx, transactionId, amount)
  const resolve = (transactionId: number, action: ResolveInput['action'], changes: Partial<ResolveInput> = {}) =>
    resolveTransaction(scenario.service.ctx, MAI, {
      transactionId,
      action,
      note: 'asked by phone',
      ...(action === 'refund' ? { reference: `BACK${(references += 1)}` } : {}),
      ...changes,
    })
  const buy = async (externalRef = 'user-1', price: object = MONTHLY): Promise<number> => {
    const plan = await scenario.plan(`plan-${(references += 1)}`, price)
    return (await scenario.checkout({ price_id: plan.prices[0], external_ref: externalRef })).transaction_id
  }
  const money = async () => {
    const { unapplied, surplus, unknown_payments } = await gatherStats(scenario.service.ctx, {
      app: null,
      isTest: true,
    })
    return {
      unapplied: Number(unapplied[0]?.amount ?? 0),
      surplus: Number(surplus[0]?.amount ?? 0),
      unknown: unknown_payments,
    }
  }
  const waiting = async () => {
    const filter = { appId: null, waiting: true, after: null, limit: 100 }
    return (await listPaymentRows(scenario.service.ctx.db, filter)).map(({ id, waiting: amount, flagReason }) => ({
      id,
      amount,
      flagReason,
    }))
  }
  const unmatched = (amount: number | null) =>
    inTransaction(scenario.service.ctx, async (tx) => {
      const reference = `content ${(references += 1)}`
      const app = scenario.app.app.id
      const found = { reference, amount, bankAccountId: null, appId: app, paidAt: tx.now }
      return (await recordUnallocatedMoney(tx, found)).paymentId
    })
  const newestOf = async (transactionId: number) =>
    (await listPaymentsOf(scenario.service.ctx.db, transactionId)).at(-1)!.id
  const move = (paymentId: number, transactionId: number, changes: object = {}) =>
    movePayment(scenario.service.ctx, MAI, {
      payment_id: paymentId,
      transaction_id: transactionId,
      note: 'n',
      ...changes,
    })
  const refusal = async (work: Promise<unknown>): Promise<string> => (await refusalOf(work)).message

  it('money with the code of last month is flagged, and can be moved to the transaction that it was meant for', async () => {
    const [last, next] = [await buy(), await buy('user-2')]
    await arrives(last, 99_000)
    await arrives(last, 99_000)
    expect(await waiting()).to.deep.equal([
      { id: await newestOf(last), amount: 99_000, flagReason: 'duplicate_payment' },
    ])
    expect(await move(await newestOf(last), next)).to.include({ status: 'processed', amount: 99_000 })
    expect(await scenario.transaction(last)).to.include({
      flagged: false,
      amount_received: 99_000,
      status: 'completed',
    })
    expect(await scenario.transaction(next)).to.include({ status: 'completed', amount_received: 99_000 })
    expect(await money()).to.deep.equal({ unapplied: 0, surplus: 0, unknown: 0 })
  })

  it('money that paid for a transaction cannot be moved away from it', async () => {
    const [one, other] = [await buy(), await buy('user-2')]
    await arrives(one, 99_000)
    expect(await refusal(move(await newestOf(one), other))).to.include(`it paid for transaction ${one}`)
  })

  it('money cannot be moved to a transaction in another currency', async () => {
    const dollars = await buy('user-2', { ...MONTHLY, amount: 1999, currency: 'USD' })
    expect(await refusal(move(await unmatched(1999), dollars))).to.include('is in USD, and the payment in VND')
  })

  it('money for a refunded transaction is counted separately, and can be refunded or moved', async () => {
    const [first, second, target] = [await buy(), await buy('user-2'), await buy('user-3')]
    for (const id of [first, second]) {
      await arrives(id, 60_000)
      await resolve(id, 'refund')
      expect(await scenario.transaction(id)).to.include({ status: 'refunded', flagged: false })
      await arrives(id, 99_000)
      expect(await scenario.transaction(id)).to.include({ status: 'refunded', flag_reason: 'duplicate_payment' })
    }
    expect(await money()).to.deep.equal({ unapplied: 198_000, surplus: 0, unknown: 0 })
    await resolve(first, 'refund')
    expect(await money()).to.include({ unapplied: 99_000 })
    await move(await newestOf(second), target)
    expect(await money()).to.include({ unapplied: 0 })
    expect((await scenario.subscription('user-3')).current_period_end).to.equal('2026-04-01 10:00:00')
  })

  it('a surplus is counted as such, is not flagged, and is refunded alone', async () => {
    const id = await buy()
    await arrives(id, 150_000)
    expect(await money()).to.deep.equal({ unapplied: 0, surplus: 51_000, unknown: 0 })
    const [payments] = (await examine(scenario.service.ctx)).filter(({ check }) => check === 'payments')
    expect(payments).to.include({ ok: true })
    expect(await waiting()).to.deep.equal([])
    expect(await resolve(id, 'refund', { amount: 51_000 })).to.include({ status: 'completed', amountRefunded: 51_000 })
    expect(await money()).to.include({ surplus: 0 })
    expect(await refusal(resolve(id, 'refund'))).to.include('add --amount')
    expect(await refusal(resolve(id, 'refund', { amount: 99_001 }))).to.include('only ₫99,000')
    expect(await resolve(id, 'refund', { amount: 99_000 })).to.include({ status: 'refunded' })
  })

  it('dismissed money counts as neither, also when more comes, and can still be refunded and moved', async () => {
    const [id, target] = [await buy(), await buy('user-2')]
    await arrives(id, 99_000)
    await arrives(id, 99_000)
    await resolve(id, 'dismiss')
    expect(await money()).to.deep.equal({ unapplied: 0, surplus: 0, unknown: 0 })
    await arrives(id, 99_000)
    expect(await money()).to.include({ unapplied: 99_000 })
    await resolve(id, 'dismiss')
    const [, second] = await listPaymentsOf(scenario.service.ctx.db, id)
    expect(await move(second!.id, target)).to.include({ status: 'processed' })
    expect(await resolve(id, 'refund', { amount: 99_000 })).to.include({ status: 'completed', amountUsed: 99_000 })
    const part = await buy('user-3')
    await arrives(part, 60_000)
    await resolve(part, 'dismiss')
    expect(await money()).to.include({ unapplied: 0 })
    await arrives(part, 10_000)
    expect(await money(), 'a dismissed part counts again').to.include({ unapplied: 70_000 })
  })

  it('unmatched money waits in the one queue until it is moved, refunded or closed, in parts too', async () => {
    const target = await buy()
    const known = await unmatched(100_000)
    const unknown = await unmatched(null)
    expect(await money()).to.deep.equal({ unapplied: 100_000, surplus: 0, unknown: 1 })
    expect((await waiting()).map(({ amount }) => amount)).to.have.members([100_000, null])
    expect(await refusal(move(unknown, target))).to.include('amount')
    expect(await move(unknown, target, { amount: 98_000 })).to.include({ status: 'underpaid' })
    expect(await move(known, target, { amount: 1000 })).to.include({ status: 'processed' })
    const { ctx } = scenario.service
    const refund = (changes: object) =>
      refundPayment(ctx, MAI, { payment_id: known, amount: 9000, note: 'n', ...changes })
    expect(await refusal(refund({}))).to.include('reference: is required')
    expect(await refusal(refund({ amount: 99_001, reference: 'BACK' }))).to.include('exceeds the ₫99,000')
    await refund({ reference: 'BACK' })
    expect(await money()).to.deep.equal({ unapplied: 90_000, surplus: 0, unknown: 0 })
    await perform(ctx, MAI, closePayment, { payment_id: known, note: 'a gift' }, null)
    expect(await money()).to.include({ unapplied: 0 })
    expect(await move(known, await buy('user-2'))).to.include({ amount: 90_000, status: 'underpaid' })
  })

  it('money that two operators move at once is moved once', async () => {
    const [one, other] = [await buy(), await buy('user-2')]
    const payment = await unmatched(99_000)
    const outcomes = await Promise.allSettled([move(payment, one), move(payment, other)])
    expect(outcomes.map(({ status }) => status).sort()).to.deep.equal(['fulfilled', 'rejected'])
  })

  it('the timeline shows flags, matches, moves and refunds in order, also after the test clock moved', async () => {
    const { ctx } = scenario.service
    const [lifetime, target] = [await buy(), await buy('user-2')]
    const app = await getApp(ctx.db, scenario.app.app.id)
    scenario.at('2026-03-01 10:01:00')
    await arrives(lifetime, 60_000)
    await advanceTestClock(ctx, MAI, app, { advance_seconds: 10 * 86_400 })
    scenario.at('2026-03-01 10:02:00')
    await arrives(lifetime, 39_000)
    scenario.at('2026-03-01 10:03:00')
    await arrives(lifetime, 99_000)
    await advanceTestClock(ctx, MAI, await getApp(ctx.db, app.id), { advance_seconds: 10 * 86_400 })
    scenario.at('2026-03-01 10:04:00')
    await move(await newestOf(lifetime), target)
    scenario.at('2026-03-01 10:05:00')
    await resolve(lifetime, 'refund', { amount: 1000, note: 'goodwill' })
    const { timeline } = await getTransactionTimeline(ctx, lifetime)
    const lines = timeline
      .filter(({ part }) => part === 'money' || part === 'effect')
      .map(({ at, text }) => `${at.slice(14, 16)} ${text.replace(/(?:[:(]|, ).*$/, '').replace(/ \d+ of ₫/, ' ₫')}`)
    expect(lines).to.deep.equal(
      [
        '01 received ₫60,000',
        '01 flagged underpaid',
        '02 received ₫39,000',
        '02 flag underpaid cleared',
        '02 completed; period started',
        '03 received ₫99,000',
        '03 flagged duplicate_payment',
        '04 moved ₫99,000 away from this transaction',
        '04 flag duplicate_payment cleared',
        '05 refund ₫1,000 of payment 1 by bank_transfer succeeded',
      ].map((line) => line.replace('payment 1 ', lines.at(-1)!.match(/payment \d+ /)![0])),
    )
    expect(timeline.map(({ text }) => text).join('\n')).to.include('by mai ("goodwill")')
    const real = timeline.map(({ at }) => at)
    expect(real[0], 'when the transaction was opened').to.equal('2026-03-01 10:00:00')
    expect(real).to.deep.equal([...real].sort())
  })

  it('the timeline shows the completion where it happened, also if the app was sent the flag of a part first', async () => {
    const { ctx } = scenario.service
    const app = await getApp(ctx.db, scenario.app.app.id)
    await changeApp(ctx, 'mai', app, { more_events: ['transaction.flagged', 'transaction.refunded'] })
    const bought = await buy()
    scenario.at('2026-03-01 10:01:00')
    await arrives(bought, 60_000)
    scenario.at('2026-03-03 10:00:00')
    await arrives(bought, 39_000)
    const { timeline } = await getTransactionTimeline(ctx, bought)
    const completed = timeline.filter(({ text }) => text.startsWith('completed'))
    expect(completed.map(({ at }) => at)).to.deep.equal(['2026-03-03 10:00:00'])
  })

  it('the timeline shows when a payment was opened in real time, whenever the test clock moved', async () => {
    const { ctx } = scenario.service
    const move = async (input: object) => advanceTestClock(ctx, MAI, await getApp(ctx.db, scenario.app.app.id), input)
    const opened: [number, string][] = []
    for (const [minute, input] of [
      ['10', { advance_seconds: 86_400 }],
      ['20', { now: '2026-04-01 00:00:00' }],
      ['30', { advance_seconds: 1 }],
      ['40', { advance_seconds: 0 }],
    ] as const) {
      scenario.at(`2026-03-01 10:${minute}:00`)
      opened.push([await buy(`user-${minute}`), `2026-03-01 10:${minute}:00`])
      scenario.at(`2026-03-01 10:${minute}:05`)
      await move(input)
    }
    for (const [id, at] of opened) {
      const [first] = (await getTransactionTimeline(ctx, id)).timeline
      expect(first).to.include({ part: 'checkout', at })
    }
  })

  it('ledger verify finds money left without a flag, sums that differ, and refunds beyond what was received', async () => {
    isTampered = true
    const { ctx } = scenario.service
    const [flagged, unflagged, short] = [await buy('a', LIFETIME), await buy('b'), await buy('c')]
    for (const id of [flagged, unflagged, short]) await arrives(id, 50_000)
    await ctx.db.query('UPDATE transactions SET amount_left = 0 WHERE id = ?', [flagged])
    await ctx.db.query('UPDATE transactions SET flag_reason = NULL WHERE id = ?', [unflagged])
    await ctx.db.query('UPDATE transactions SET amount_refunded = 60000 WHERE id = ?', [short])
    await ctx.db.query('UPDATE payments SET amount_left = 1 WHERE id = ?', [await newestOf(short)])
    const faults = (await verifyLedger(ctx, null)).faults.map(({ subject, fault }) => `${subject} ${fault}`)
    expect(faults).to.include.members([
      `transaction ${flagged} is flagged but has no money left`,
      `transaction ${unflagged} has money left but is neither flagged nor completed`,
      `transaction ${short} has a refunded amount that differs from the sum of its refunds`,
      `transaction ${short} used, kept or refunded more than it received`,
      `payment ${await newestOf(short)} has a different amount left than was neither booked nor refunded`,
    ])
    for (const appId of [scenario.app.app.id, null])
      expect((await verifyLedger(ctx, appId)).faults.length, String(appId)).to.equal(faults.length)
  })
})
