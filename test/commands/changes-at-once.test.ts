import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { setIdentity } from '#apps/set-identity.ts'
import { setRealtime } from '#apps/set-realtime.ts'
import type { BankAccount } from '#bank-accounts/store.ts'
import { listAuditEntries } from '#commands/store.ts'
import { perform } from '#commands/perform.ts'
import { updateCustomer } from '#customers/update-customer.ts'
import { updatePlan } from '#plans/update-plan.ts'
import { updatePrice } from '#plans/update-price.ts'
import { updatePromotion } from '#promotions/update-promotion.ts'
import { testContext, type TestContext } from '../support/context.ts'
import { aCustomer, anApp, aPlan, aPromotion, SERVER, type TestApp } from '../support/factories.ts'
import { addBankAccount, assignBankAccount, setDisabled, updateBankAccount } from '../support/operators.ts'
import { aServiceAccountFile } from '../support/service-account.ts'

interface Changed {
  readonly subject: string
  readonly change: (round: number) => Promise<unknown>
}

/** What several may change at once; each change differs from every other. */
const CHANGED: Readonly<Record<string, (ctx: TestContext, app: TestApp) => Promise<Changed>>> = {
  customer: async (ctx, { app, ...rest }) => {
    const { id } = await aCustomer(ctx, { app, ...rest })
    const change = (round: number) =>
      perform(ctx, SERVER, updateCustomer, { name: `Name ${round}` }, { app, customerId: id })
    return { subject: `customer ${id}`, change }
  },
  plan: async (ctx, { app, ...rest }) => {
    const { id } = await aPlan(ctx, { app, ...rest })
    const change = (round: number) => perform(ctx, SERVER, updatePlan, { name: `Name ${round}` }, { app, planId: id })
    return { subject: `plan ${id}`, change }
  },
  price: async (ctx, { app, ...rest }) => {
    const plan = await aPlan(ctx, { app, ...rest })
    const scope = { app, planId: plan.id, priceId: plan.prices[0]!.id }
    const change = (round: number) => perform(ctx, SERVER, updatePrice, { name: `Name ${round}` }, scope)
    return { subject: `price ${scope.priceId}`, change }
  },
  promotion: async (ctx, { app, ...rest }) => {
    const { id } = await aPromotion(ctx, { app, ...rest })
    const change = (round: number) =>
      perform(ctx, SERVER, updatePromotion, { max_uses: round + 1 }, { app, promotionId: id })
    return { subject: `promotion ${id}`, change }
  },
}

const ACCOUNT = { bank: 'ACB', number: '27550951', holder: 'NGUYEN VAN A' }
const ROUNDS = 12

describe('the audit log of changes at once', () => {
  let ctx: TestContext
  let app: TestApp
  beforeEach(async () => {
    ctx = testContext()
    app = await anApp(ctx)
  })

  /** Each of the subject's changes begins with the state that the one before it left. */
  async function expectChain(subject: string, actions: RegExp, what = subject): Promise<void> {
    const entries = await listAuditEntries(ctx.db, { subject, limit: 2 * ROUNDS })
    const changes = entries.filter(({ action }) => actions.test(action)).sort((a, b) => a.id - b.id)
    expect(changes, what).to.have.lengthOf(ROUNDS)
    const before = changes.slice(1).map(({ beforeState }) => beforeState)
    expect(before, what).to.deep.equal(changes.slice(0, -1).map(({ afterState }) => afterState))
  }

  it('shows as the state before each change what the one before it left: of a customer, a plan, a price and a promotion', async () => {
    for (const [what, make] of Object.entries(CHANGED)) {
      const { subject, change } = await make(ctx, app)
      await Promise.all(Array.from({ length: ROUNDS }, (_, round) => change(round)))
      await expectChain(subject, /\.update$/, what)
    }
  })

  it('shows as the state before each change of a bank account, and of the account of an app, what the one before it left', async () => {
    const accounts: BankAccount[] = []
    for (let round = 0; round < ROUNDS; round += 1) accounts.push(await addBankAccount(ctx, 'linh', ACCOUNT))
    const [first] = accounts as [BankAccount, ...BankAccount[]]
    const change = (account: BankAccount, round: number) => [
      updateBankAccount(ctx, 'linh', first.id, { mailbox: `shop-${round}@example.com` }),
      assignBankAccount(ctx, 'linh', app.app, account.id),
    ]
    await Promise.all(accounts.flatMap(change))
    for (const subject of [`bank account ${first.id}`, `app ${app.app.id}`]) {
      await expectChain(subject, /\.(update|assign)$/)
    }
  })

  it('shows as the state before each change of an app what the one before it left, although each command read the app first', async () => {
    const phone = await anApp(ctx, { auth: 'identity' })
    const scope = { app: phone.app }
    const serviceAccount = aServiceAccountFile()
    const changes = [1, 2].flatMap((round) => {
      const database = { databaseUrl: `https://shop-${round}.example.com`, serviceAccount }
      return [
        () => perform(ctx, SERVER, setIdentity, { provider: 'firebase', projectId: `shop-${round}` }, scope),
        () => perform(ctx, SERVER, setRealtime, database, scope),
        () => setDisabled(ctx, 'linh', phone.app, round === 1),
      ]
    })
    for (const change of changes) await change()
    const entries = await listAuditEntries(ctx.db, { subject: `app ${phone.app.id}`, limit: changes.length })
    const [, , , ...second] = entries.sort((a, b) => a.id - b.id)
    expect(second.map(({ beforeState }) => beforeState)).to.deep.equal([
      { identity: { provider: 'firebase', projectId: 'shop-1' } },
      { realtime: { database_url: 'https://shop-1.example.com', path: 'users/{uid}/subscription' } },
      { disabled: true },
    ])
  })
})
