import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { recordUnallocatedMoney } from '#bank-mail/book-money.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import { closePayment } from '#decisions/close-payment.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { refundPayment } from '#decisions/refund-payment.ts'
import { amountToRefund, resolutionRefusalOf } from '#decisions/resolution.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { gatherStats } from '#reports/stats.ts'
import { keptOf } from '#payments/balance.ts'
import { payments, refunds, type Payment, type Refund } from '#payments/store.ts'
import { listPaymentRows } from '#payments/lists/store.ts'
import { AppError } from '#shared/errors.ts'
import { verifyLedger } from '#ledger/verify-ledger.ts'
import { lockTransactions } from '#transactions/lock-transactions.ts'
import { orderRefunds } from '#transactions/order-refunds.ts'
import { recordForeignRefund } from '#transactions/record-foreign-refund.ts'
import { recordRefundAnswer } from '#transactions/record-refund-answer.ts'
import { transactions, type Transaction } from '#transactions/store.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { aCheckout, anApp, aPlan, LIFETIME, priceId, type TestApp, transferred } from '../support/factories.ts'

const RUNS = 15
const SEED = 2411
const PRICE = 100
const MAI = operator('mai')
const NOTE = { note: 'a history' }
const WITH_REASON = { actor: 'mai', ...NOTE }

/** Indexes are taken modulo how many there are; an amount null is left out. */
type Step =
  | { readonly kind: 'arrive'; readonly transaction: number; readonly amount: number }
  | { readonly kind: 'arrive unmatched' | 'repeat'; readonly payment: number; readonly amount: number }
  | { readonly kind: 'complete' | 'dismiss'; readonly transaction: number }
  | { readonly kind: 'refund' | 'send refund'; readonly transaction: number; readonly amount: number | null }
  | { readonly kind: 'answer'; readonly refund: number; readonly status: 'succeeded' | 'failed' | 'refused' }
  | { readonly kind: 'refund at the provider'; readonly payment: number; readonly amount: number }
  | { readonly kind: 'refund payment'; readonly payment: number; readonly amount: number | null }
  | { readonly kind: 'move'; readonly payment: number; readonly transaction: number; readonly amount: number | null }
  | { readonly kind: 'close'; readonly payment: number }

const index = fc.nat(20)
const amount = fc.constantFrom(1, 30, 60, 99, PRICE, 130)
const part = fc.option(amount, { freq: 2 })
const of = <Kind extends Step['kind'], Fields>(kind: Kind, fields: { [K in keyof Fields]: fc.Arbitrary<Fields[K]> }) =>
  fc.record({ kind: fc.constant(kind), ...fields })
const step = fc.oneof(
  { weight: 6, arbitrary: of('arrive', { transaction: index, amount }) },
  { weight: 2, arbitrary: of('arrive unmatched', { payment: index, amount }) },
  { weight: 1, arbitrary: of('repeat', { payment: index, amount }) },
  { weight: 2, arbitrary: of('complete', { transaction: index }) },
  { weight: 2, arbitrary: of('dismiss', { transaction: index }) },
  { weight: 3, arbitrary: of('refund', { transaction: index, amount: part }) },
  { weight: 3, arbitrary: of('send refund', { transaction: index, amount: part }) },
  { weight: 4, arbitrary: of('answer', { refund: index, status: fc.constantFrom('succeeded', 'failed', 'refused') }) },
  { weight: 2, arbitrary: of('refund at the provider', { payment: index, amount }) },
  { weight: 2, arbitrary: of('refund payment', { payment: index, amount: part }) },
  { weight: 4, arbitrary: of('move', { payment: index, transaction: index, amount: part }) },
  { weight: 1, arbitrary: of('close', { payment: index }) },
) as fc.Arbitrary<Step>

/** Three one-time purchases of one app and two of lifetime, of which one can be applied; and all money that comes for them. */
class Books {
  readonly #ctx: TestContext
  readonly #shop: TestApp
  #count = 0

  constructor(ctx: TestContext, shop: TestApp) {
    this.#ctx = ctx
    this.#shop = shop
  }

  static async open(ctx: TestContext): Promise<Books> {
    const shop = await anApp(ctx)
    const purchase = { mode: 'payment', plan_ref: 'book', amount: PRICE, currency: 'VND' }
    for (const ref of ['a', 'b', 'b']) await aCheckout(ctx, shop, { ...purchase, external_ref: ref })
    const plan = await aPlan(ctx, shop, { prices: [{ ...LIFETIME, amount: PRICE }] })
    for (const ref of ['c', 'c']) await aCheckout(ctx, shop, { price_id: priceId(plan), external_ref: ref })
    return new Books(ctx, shop)
  }

  /** Refused steps change nothing. */
  async take(step: Step): Promise<void> {
    const before = await this.#state()
    const refusal = await this.#run(step).catch((error: unknown) => {
      if (error instanceof AppError && error.status < 500) return error
      throw error
    })
    if (refusal instanceof AppError) expect(await this.#state(), refusal.message).to.deep.equal(before)
    await this.#addUp()
  }

  /** Gives back all that came, by the commands that operators have. */
  async giveBackAll(): Promise<void> {
    for (const { id, status, reference } of await this.#refunds())
      if (status === 'pending') await this.#answer(id, reference, 'succeeded')
    for (const transaction of await this.#transactions())
      if (keptOf(transaction) > 0) await this.#refund(transaction, keptOf(transaction), false)
    for (const { id, amountLeft } of await this.#payments())
      if (amountLeft !== 0) await this.#refundPayment(id, amountLeft ?? 1)
    await this.#addUp()
    for (const transaction of await this.#transactions())
      expect([keptOf(transaction), transaction.amountLeft]).to.deep.equal([0, 0])
    expect((await this.#payments()).every(({ amountLeft }) => amountLeft === 0)).to.equal(true)
    expect((await verifyLedger(this.#ctx, this.#shop.app.id)).faults).to.deep.equal([])
  }

  async #run(step: Step): Promise<unknown> {
    const [all, money, given] = await this.#state()
    const transaction = 'transaction' in step ? all[step.transaction % all.length]! : all[0]!
    const payment = 'payment' in step ? money[step.payment % money.length] : undefined
    switch (step.kind) {
      case 'arrive':
        return this.#arrive(transaction.id, this.#reference(), step.amount)
      case 'arrive unmatched':
        return this.#inTransaction((tx) =>
          recordUnallocatedMoney(tx, {
            reference: `ACB ${this.#reference()}`,
            amount: step.amount === 1 ? null : step.amount,
            bankAccountId: null,
            appId: this.#shop.app.id,
            paidAt: tx.now,
          }),
        )
      case 'repeat':
        return (
          payment && this.#arrive(all[step.payment % all.length]!.id, payment.reference, payment.amount ?? step.amount)
        )
      case 'complete':
      case 'dismiss':
        return resolveTransaction(this.#ctx, MAI, { transactionId: transaction.id, action: step.kind, ...NOTE })
      case 'refund':
      case 'send refund':
        return this.#refund(transaction, step.amount, step.kind === 'send refund')
      case 'answer': {
        const refund = given[step.refund % given.length]
        return refund && this.#answer(refund.id, refund.reference, step.status)
      }
      case 'refund at the provider': {
        const foreign = { reference: this.#reference(), amount: step.amount, status: 'succeeded' } as const
        return payment && this.#inTransaction((tx) => recordForeignRefund(tx, payment.id, foreign))
      }
      case 'refund payment':
        return payment && this.#refundPayment(payment.id, step.amount)
      case 'move':
        return payment && this.#move(payment.id, transaction.id, step.amount)
      case 'close':
        return payment && perform(this.#ctx, MAI, closePayment, { payment_id: payment.id, ...NOTE }, null)
    }
  }

  #arrive(transactionId: number, reference: string, sum: number): Promise<unknown> {
    return transferred(this.#ctx, transactionId, sum, { reference })
  }

  /** Recorded as made manually, or, with `isSent`, left to the provider, whose answer is a step of its own. */
  async #refund({ id }: Transaction, sum: number | null, isSent: boolean): Promise<void> {
    await this.#inTransaction(async (tx) => {
      const before = (await lockTransactions(tx, [id])).get(id)!
      const refusal = resolutionRefusalOf(before, 'refund', sum)
      if (refusal !== null) throw new AppError('invalid_request', refusal)
      const wayOf = () => (isSent ? 'provider' : 'transfer')
      const order = { amount: amountToRefund(before, sum), wayOf, operatorNote: WITH_REASON } as const
      await orderRefunds(tx, this.#shop.app, before, { ...order, reference: this.#reference() })
    })
  }

  async #answer(refundId: number, reference: string | null, how: 'succeeded' | 'failed' | 'refused'): Promise<void> {
    // A provider that has named the refund does not refuse it any more.
    const isRefused = how === 'refused' && reference === null
    const status = how === 'succeeded' ? how : 'failed'
    const answer = { status, reference: isRefused ? null : (reference ?? this.#reference()), failure: null } as const
    await this.#inTransaction((tx) => recordRefundAnswer(tx, refundId, answer))
  }

  #refundPayment(paymentId: number, sum: number | null): Promise<unknown> {
    const part = sum === null ? {} : { amount: sum }
    return refundPayment(this.#ctx, MAI, { payment_id: paymentId, reference: this.#reference(), ...part, ...NOTE })
  }

  #move(paymentId: number, transactionId: number, sum: number | null): Promise<unknown> {
    const part = sum === null ? {} : { amount: sum }
    return movePayment(this.#ctx, MAI, { payment_id: paymentId, transaction_id: transactionId, ...part, ...NOTE })
  }

  /** The sentences of docs/payments.md, and that lists and sums show exactly what waits. */
  async #addUp(): Promise<void> {
    const [all, money] = await this.#state()
    for (const one of all) requireKnownState(one)
    const open = money.filter(({ closedAt }) => closedAt === null).map(({ amountLeft }) => amountLeft ?? 0)
    const flagged = all.filter(({ flagReason }) => flagReason !== null).map(({ amountLeft }) => amountLeft)
    const surplus = all.filter(({ flagReason }) => flagReason === null).map(({ amountLeft }) => amountLeft)
    const stats = await gatherStats(this.#ctx, { app: this.#shop.app })
    expect(Number(stats.unapplied[0]?.amount ?? 0), 'unapplied').to.equal(sumOf([...open, ...flagged]))
    expect(Number(stats.surplus[0]?.amount ?? 0), 'surplus').to.equal(sumOf(surplus))
    const [{ received, refunded } = { received: 0n, refunded: 0n }] = stats.revenue
    const { gross, refunds: returned } = stats.month
    expect([gross['VND'] ?? 0n, returned['VND'] ?? 0n], 'the only month').to.deep.equal([received, refunded])
    const filter = { appId: this.#shop.app.id, waiting: true, after: null, limit: 100 }
    const queue = await listPaymentRows(this.#ctx.db, filter)
    expect(sumOf(queue.map(({ waiting }) => waiting ?? 0)), 'the queue').to.equal(sumOf([...open, ...flagged]))
  }

  async #state(): Promise<[Transaction[], Payment[], Refund[]]> {
    return [await this.#transactions(), await this.#payments(), await this.#refunds()]
  }

  #transactions(): Promise<Transaction[]> {
    return this.#ctx.db.all(transactions, 'WHERE app_id = ? ORDER BY id', [this.#shop.app.id])
  }

  #payments(): Promise<Payment[]> {
    return this.#ctx.db.all(payments, 'WHERE app_id = ? ORDER BY id', [this.#shop.app.id])
  }

  #refunds(): Promise<Refund[]> {
    return this.#ctx.db.all(refunds, 'WHERE app_id = ? ORDER BY id', [this.#shop.app.id])
  }

  #inTransaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return inTransaction(this.#ctx, work)
  }

  #reference(): string {
    this.#count += 1
    return `${this.#shop.app.id} ${this.#count}`
  }
}

function requireKnownState(transaction: Transaction): void {
  const { status, flagReason, amountUsed, amountLeft } = transaction
  const kept = keptOf(transaction)
  const said = `${status} ${flagReason ?? 'no flag'}: kept ${kept}, used ${amountUsed}, left ${amountLeft}`
  expect(Math.min(kept, amountUsed, amountLeft, kept - amountUsed - amountLeft), said).to.be.at.least(0)
  expect(amountUsed, said).to.be.at.most(PRICE)
  switch (`${status} ${flagReason ?? ''}`) {
    case 'pending ':
      expect([amountUsed, amountLeft], said).to.deep.equal([0, 0])
      break
    case 'pending underpaid':
      expect([amountUsed, amountLeft > 0, kept < PRICE], said).to.deep.equal([0, true, true])
      break
    case 'completed ':
      break
    case 'completed already_lifetime':
      expect([amountUsed, amountLeft > 0], said).to.deep.equal([0, true])
      break
    case 'completed duplicate_payment':
    case 'refunded duplicate_payment':
      expect(amountLeft, said).to.be.above(0)
      break
    case 'refunded ':
      expect(amountLeft, said).to.equal(0)
      break
    default:
      expect.fail(said)
  }
}

function sumOf(amounts: readonly number[]): number {
  return amounts.reduce((sum, each) => sum + each, 0)
}

/** What such histories found once. */
const FOUND: readonly (readonly Step[])[] = [
  [
    { kind: 'arrive', transaction: 0, amount: 1 },
    { kind: 'send refund', transaction: 0, amount: null },
    { kind: 'complete', transaction: 0 },
    { kind: 'answer', refund: 0, status: 'refused' },
  ],
  [
    { kind: 'arrive', transaction: 0, amount: 60 },
    { kind: 'send refund', transaction: 0, amount: null },
    { kind: 'arrive', transaction: 0, amount: 60 },
    { kind: 'answer', refund: 0, status: 'refused' },
  ],
]

describe('money that comes, moves and goes back in any order', () => {
  it(`adds up after each step of ${RUNS} random histories, waits in one queue, and can all be given back`, async function () {
    this.timeout(240_000)
    const ctx = testContext()
    const histories = fc.array(step, { minLength: 10, maxLength: 25, size: 'max' })
    await fc.assert(
      fc.asyncProperty(histories, async (steps) => {
        const books = await Books.open(ctx)
        for (const each of steps) await books.take(each)
        await books.giveBackAll()
      }),
      { numRuns: RUNS, seed: SEED, examples: FOUND.map((steps) => [[...steps]]) },
    )
  })
})
