import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { App } from '#apps/store.ts'
import { recordUnallocatedMoney } from '#bank-mail/book-money.ts'
import { operator } from '#commands/caller.ts'
import { inTransaction } from '#commands/transaction.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { listPaymentsOf } from '#payments/store.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { refusalOf } from '../support/expect-error.ts'
import { aCheckout, anApp, aPlan, MONTHLY, priceId, type TestApp, transferred } from '../support/factories.ts'
import { addBankAccount, assignBankAccount } from '../support/operators.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

const MAI = operator('mai')

describe('payment move across apps', () => {
  let scenario: Scenario
  let apps: { reader: TestApp; player: TestApp; live: TestApp; liveOther: TestApp }
  let accounts: { shared: number; other: number }
  let references = 0

  beforeEach(async () => {
    scenario = await startScenario()
    scenario.at('2026-03-01 10:00:00')
    const { ctx } = scenario.service
    apps = {
      reader: scenario.app,
      player: await anApp(ctx, { name: 'Player' }),
      live: await anApp(ctx, { name: 'Live', sandbox: false }),
      liveOther: await anApp(ctx, { name: 'Live, too', sandbox: false }),
    }
    const [shared, other] = ['123456', '654321'].map((number) =>
      addBankAccount(ctx, 'mai', { bank: 'ACB', number, holder: 'AN' }),
    )
    accounts = { shared: (await shared!).id, other: (await other!).id }
    await assign(apps.reader, accounts.shared)
  })
  afterEach(async () => {
    await requireCleanLedger(scenario.service.ctx, 'after the test')
    await scenario.service.stop()
  })

  const assign = ({ app }: { readonly app: App }, account: number) =>
    assignBankAccount(scenario.service.ctx, 'mai', app, account)

  async function buy(app: TestApp): Promise<number> {
    const { ctx } = scenario.service
    references += 1
    const plan = await aPlan(ctx, app, { code: `plan-${references}`, prices: [MONTHLY] })
    const checkout = await aCheckout(ctx, app, { price_id: priceId(plan), external_ref: `user-${references}` })
    return checkout.transaction_id!
  }

  /** A second payment of the transaction, credited to the account; null if it came another way. Returns its id. */
  async function paidTwice(app: TestApp, bankAccountId: number | null): Promise<number> {
    const { ctx } = scenario.service
    const transactionId = await buy(app)
    for (let time = 0; time < 2; time += 1) await transferred(ctx, transactionId, MONTHLY.amount, { bankAccountId })
    return (await listPaymentsOf(ctx.db, transactionId)).at(-1)!.id
  }

  /** Money whose transaction nobody knows. */
  const unmatched = (bankAccountId: number | null) =>
    inTransaction(scenario.service.ctx, async (tx) => {
      references += 1
      const reference = `content ${references}`
      const money = { reference, amount: MONTHLY.amount, bankAccountId, appId: null, paidAt: tx.now }
      return (await recordUnallocatedMoney(tx, money)).paymentId
    })

  const move = (payment_id: number, transaction_id: number) =>
    movePayment(scenario.service.ctx, MAI, { payment_id, transaction_id, note: 'n' })

  async function requireRefused(payment: number, target: TestApp, message: string): Promise<void> {
    const { code, field, message: text } = await refusalOf(move(payment, await buy(target)))
    expect({ code, field }).to.deep.equal({ code: 'invalid_request', field: 'transaction_id' })
    expect(text).to.include(message)
  }

  it('is refused for an app that never used the account which received the money', async () => {
    await assign(apps.player, accounts.other)
    const payment = await paidTwice(apps.reader, accounts.shared)
    await requireRefused(payment, apps.player, `never used bank account ${accounts.shared}`)
  })

  it('is allowed for an app that uses the account now', async () => {
    const payment = await paidTwice(apps.reader, accounts.shared)
    await assign(apps.player, accounts.shared)
    expect(await move(payment, await buy(apps.player))).to.include({ status: 'processed' })
  })

  it('is allowed for an app that used the account when the money came, and has another by now', async () => {
    await assign(apps.player, accounts.shared)
    const payment = await paidTwice(apps.reader, accounts.shared)
    scenario.at('2026-03-02 10:00:00')
    await assign(apps.player, accounts.other)
    expect(await move(payment, await buy(apps.player))).to.include({ status: 'processed' })
  })

  it('is refused for an app that had given up the account before the money came, or got and gave it up afterwards', async () => {
    await assign(apps.player, accounts.shared)
    scenario.at('2026-03-02 10:00:00')
    await assign(apps.player, accounts.other)
    scenario.at('2026-03-03 10:00:00')
    const payment = await paidTwice(apps.reader, accounts.shared)
    await requireRefused(payment, apps.player, 'and did not when the money arrived')
    scenario.at('2026-03-04 10:00:00')
    const later = await anApp(scenario.service.ctx, { name: 'Later' })
    await assign(later, accounts.shared)
    await assign(later, accounts.other)
    await requireRefused(payment, later, 'and did not when the money arrived')
  })

  it('is allowed for an app that took the account again', async () => {
    await assign(apps.player, accounts.shared)
    await assign(apps.player, accounts.other)
    const payment = await paidTwice(apps.reader, accounts.shared)
    await assign(apps.player, accounts.shared)
    expect(await move(payment, await buy(apps.player))).to.include({ status: 'processed' })
  })

  it('never goes between sandbox and live, in neither direction, also if both use the account', async () => {
    for (const app of [apps.live, apps.liveOther]) await assign(app, accounts.shared)
    await requireRefused(await paidTwice(apps.reader, accounts.shared), apps.live, 'the payment to a sandbox one')
    const real = await paidTwice(apps.live, accounts.shared)
    await requireRefused(real, apps.reader, 'the payment to a live one')
    expect(await move(real, await buy(apps.liveOther))).to.include({ status: 'processed' })
  })

  it('is refused for money that came by no bank account', async () => {
    await requireRefused(await paidTwice(apps.reader, null), apps.player, 'only money on a bank account that both use')
  })

  it('of money whose app is not known goes to any app that has or had the account', async () => {
    await assign(apps.player, accounts.shared)
    await requireRefused(await unmatched(accounts.shared), apps.live, 'never used bank account')
    await assign(apps.player, accounts.other)
    expect(await move(await unmatched(accounts.shared), await buy(apps.player))).to.include({
      status: 'processed',
    })
    expect(await move(await unmatched(null), await buy(apps.live))).to.include({ status: 'processed' })
  })
})
