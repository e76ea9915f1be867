import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { z } from 'zod'
import { job, operator, payer, provider, type Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { commitTokens, listAuditEntries } from '#commands/store.ts'
import { checkoutSessions } from '#checkout/store.ts'
import type { Context, Rehearsal } from '#context.ts'
import { findPlan, listPlans } from '#plans/store.ts'
import { addPrice } from '#plans/add-price.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { createPlan } from '#plans/create-plan.ts'
import { openLossyDatabase, strikeFirstCommit, type LossyDatabase } from '../db/lossy-server.ts'
import { testContext } from '../support/context.ts'
import { testDatabase } from '../support/database.ts'
import { anApp, aPlan, MONTHLY, SERVER, type TestApp, transferred } from '../support/factories.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

const PRO = { code: 'pro', name: 'Pro', prices: [MONTHLY] }

describe('perform', () => {
  let ctx: Context
  let app: TestApp

  beforeEach(async () => {
    ctx = testContext()
    app = await anApp(ctx)
  })

  const create = (caller: Caller, within: Context = ctx) => perform(within, caller, createPlan, PRO, { app: app.app })

  for (const [caller, actor] of [
    [operator('linh (sudo)'), 'linh (sudo)'],
    [{ kind: 'server', name: 'app 7' }, 'server app 7'],
    [{ kind: 'end_user', name: 'user-42' }, 'end user user-42'],
    [job('expire'), 'job expire'],
    [provider('stripe'), 'provider stripe'],
    [payer, 'payer page'],
  ] as const) {
    it(`writes every kind of caller to the audit log: ${actor}`, async () => {
      const { id } = await create(caller)
      const [entry] = await listAuditEntries(ctx.db, { subject: `plan ${id}`, limit: 1 })
      expect(entry).to.include({ actor, action: 'plan.create', appId: app.app.id })
    })
  }

  it('accepts only an empty body for a command without input', async () => {
    const counted = command({ name: 'counted', input: nothing, run: () => Promise.resolve('done') })
    for (const input of [undefined, {}]) expect(await perform(ctx, SERVER, counted, input, undefined)).to.equal('done')
    const error: unknown = await perform(ctx, SERVER, counted, { amount: 5 }, undefined).catch(
      (error: unknown) => error,
    )
    expect(error).to.include({ code: 'invalid_request', field: 'amount' })
  })

  it('refuses invalid input with its field before a transaction is opened', async () => {
    let runs = 0
    const counted = command({
      name: 'counted',
      input: z.strictObject({ amount: z.int('must be a whole number') }),
      run: () => Promise.resolve((runs += 1)),
    })
    const error: unknown = await perform(ctx, SERVER, counted, { amount: '5' }, undefined).catch(
      (error: unknown) => error,
    )
    expect(error).to.include({ code: 'invalid_request', field: 'amount' })
    expect(runs).to.equal(0)
  })

  it('commits the kept answer together with the work, or neither', async () => {
    const failing = perform(
      ctx,
      SERVER,
      createPlan,
      PRO,
      { app: app.app },
      {
        keep: () => Promise.reject(new Error('another request holds the key')),
      },
    )
    expect(await failing.catch((error: unknown) => error)).to.be.an('error')
    expect(await listPlans(ctx.db, app.app.id, undefined)).to.deep.equal([])
  })

  it('reports what a rehearsal would change, and leaves no row', async () => {
    const rehearsal: Rehearsal = { changes: [], events: [] }
    const plan = await create(operator('linh'), { ...ctx, rehearsal })
    expect(rehearsal.changes).to.have.length(1)
    expect(rehearsal.changes[0]).to.include({ action: 'plan.create', before: null })
    expect(await findPlan(ctx.db, app.app.id, plan.id)).to.equal(null)
    expect(await listAuditEntries(ctx.db, { subject: `plan ${plan.id}`, limit: 5 })).to.deep.equal([])
  })

  it('writes no token for a command that is repeatable', async () => {
    const count = () => ctx.db.count(commitTokens, 'WHERE 1 = 1', [])
    const before = await count()
    const own = { name: 'repeatable', input: z.undefined(), run: () => Promise.resolve('done') }
    await perform(ctx, SERVER, command({ ...own, isRepeatable: true }), undefined, undefined)
    expect(await count()).to.equal(before)
    await perform(ctx, SERVER, command(own), undefined, undefined)
    expect(await count()).to.equal(before + 1)
  })
})

describe('a COMMIT whose answer is lost', () => {
  let lossy: LossyDatabase
  let scenario: Scenario

  beforeEach(async () => {
    scenario = await startScenario()
    lossy = await openLossyDatabase()
    Object.assign(scenario.service.ctx, { db: lossy.db })
  })

  afterEach(async () => {
    Object.assign(scenario.service.ctx, { db: testDatabase().db })
    await lossy.close()
    await scenario.service.stop()
  })

  for (const fate of ['answer lost', 'lost'] as const) {
    describe(`("${fate}") is answered with what really happened:`, () => {
      it('one plan, without a 409', async () => {
        strikeFirstCommit(lossy.line, fate)
        const made = await scenario.seller.post('/api/v1/plans', PRO)
        expect(made.status, made.text).to.equal(201)
        const { plans } = (await scenario.seller.get('/api/v1/plans')).body.data
        expect(plans.map(({ id }: { id: string }) => id)).to.deep.equal([made.body.data.id])
      })

      it('one more price, not two', async () => {
        const { id } = (await scenario.seller.post('/api/v1/plans', PRO)).body.data
        strikeFirstCommit(lossy.line, fate)
        const priced = await scenario.seller.post(`/api/v1/plans/${id}/prices`, { ...MONTHLY, amount: 120_000 })
        expect(priced.body.data.prices).to.have.length(2)
        expect((await scenario.seller.get(`/api/v1/plans/${id}`)).body.data.prices).to.have.length(2)
      })

      it('the test clock moves once', async () => {
        const before = Date.parse(`${(await scenario.seller.get('/api/v1/test-clock')).body.data.now}Z`)
        strikeFirstCommit(lossy.line, fate)
        const moved = await scenario.seller.post('/api/v1/test-clock', { advance_seconds: 86_400 })
        expect((Date.parse(`${moved.body.data.now}Z`) - before) / 1000).to.equal(86_400)
      })

      it('a free trial is activated, and the answer says so', async () => {
        const plan = await scenario.plan('pro', {
          ...MONTHLY,
          trial: { amount: 0, interval_unit: 'day', interval_count: 7 },
        })
        strikeFirstCommit(lossy.line, fate)
        const checkout = await scenario.checkout({ price_id: plan.prices[0]! })
        expect(checkout).to.include({ activated: true, transaction_id: null })
        expect((await scenario.subscription()).in_trial).to.equal(true)
      })

      it('one checkout, whose own row proves the commit', async () => {
        const plan = await scenario.plan('pro', MONTHLY)
        const tokensBefore = await scenario.service.ctx.db.count(commitTokens, 'WHERE 1 = 1', [])
        strikeFirstCommit(lossy.line, fate)
        const opened = await scenario.checkout({ price_id: plan.prices[0]! })
        const { db } = scenario.service.ctx
        const sessions = await db.all(checkoutSessions, 'WHERE 1 = 1', [])
        expect(sessions.map(({ transactionId }) => transactionId)).to.deep.equal([opened.transaction_id])
        expect(await db.count(commitTokens, 'WHERE 1 = 1', [])).to.equal(tokensBefore)
        await scenario.pay(opened)
        expect((await scenario.subscription()).status).to.equal('active')
      })

      it('an operator completes a payment once, and the result says so', async () => {
        const plan = await scenario.plan('pro', MONTHLY)
        const { transaction_id: id } = await scenario.checkout({ price_id: plan.prices[0]! })
        await transferred(scenario.service.ctx, id, 90_000, { reference: 'FT-1' })
        strikeFirstCommit(lossy.line, fate)
        const input = { transactionId: id, action: 'complete', note: 'near enough' } as const
        const completed = await resolveTransaction(scenario.service.ctx, operator('mai'), input)
        expect(completed).to.include({ status: 'completed', flagReason: null })
        expect((await scenario.subscription()).current_period_end).to.equal('2026-04-01 10:00:00')
      })
    })
  }

  it('runs the effects of the committed run, once', async () => {
    const app = await anApp(scenario.service.ctx)
    const plan = await aPlan(scenario.service.ctx, app)
    let effects = 0
    const noisy = command({
      name: 'noisy',
      input: addPrice.input,
      run: (tx, input, scope: Parameters<typeof addPrice.run>[2]) => {
        tx.afterCommit(() => void (effects += 1))
        return addPrice.run(tx, input, scope)
      },
    })
    strikeFirstCommit(lossy.line, 'answer lost')
    const updated = await perform(
      scenario.service.ctx,
      SERVER,
      noisy,
      { ...MONTHLY, amount: 5 },
      { app: app.app, planId: plan.id },
    )
    expect(updated.prices).to.have.length(2)
    expect(effects).to.equal(1)
  })
})
