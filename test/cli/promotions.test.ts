import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Context } from '#context.ts'
import { realTimeContext } from '../support/context.ts'
import { aCheckout, anApp, aPlan, paid, priceId, type TestApp } from '../support/factories.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli, type Cli } from './run-cli.ts'

describe('the command line: promotions', () => {
  let cli: Cli
  let ctx: Context
  let app: TestApp
  let id: string

  beforeEach(async () => {
    cli = openCli()
    ctx = realTimeContext()
    app = await anApp(ctx)
    id = String(app.app.id)
  })

  it('makes a promotion from options, and shows it as the API does', async () => {
    await aPlan(ctx, app, { code: 'pro' })
    await aPlan(ctx, app, { code: 'gold' })
    const made = await cli.json([
      'promotion',
      'create',
      ...[id, '--code', 'tet-2027', '--percent', '20', '--plans', 'pro, gold', '--every-period'],
      ...['--valid-until', '2099-02-28 16:59:59', '--max-uses', '500', '--many-per-user', '--on-page'],
    ])
    expect(made).to.deep.include({
      code: 'TET-2027',
      percent: 20,
      amount: null,
      currency: null,
      plan_codes: ['pro', 'gold'],
      every_period: true,
      valid_until: '2099-02-28 16:59:59',
      max_uses: 500,
      once_per_user: false,
      on_page: true,
      status: 'active',
      uses: 0,
    })
    const text = await cli.table(['promotion', 'create', id, '--code', 'WELCOME', '--amount', '30000:VND'])
    expect(text)
      .to.include('[TEST] Reader')
      .and.match(/off +₫30,000/)
      .and.match(/per end user +once/)
    for (const named of [made.id, 'TET-2027', 'tet-2027'])
      expect(await cli.json(['promotion', 'show', id, named])).to.deep.equal(made)
    expect(await cli.table(['promotion', 'show', id, made.id])).to.match(/uses +0 of 500/)
  })

  it('lists the promotions with their uses, archives and restores them', async () => {
    const plan = await aPlan(ctx, app)
    await cli.json(['promotion', 'create', id, '--code', 'TET', '--percent', '20'])
    await cli.json(['promotion', 'create', id, '--code', 'WELCOME', '--amount', '30000:VND', '--max-uses', '5'])
    await paid(ctx, app, { price_id: priceId(plan), promotion_code: 'welcome' })
    const { value: listed, text } = await cli.both(['promotion', 'list', id])
    expect(listed.map(({ code, uses }: { code: string; uses: number }) => [code, uses])).to.deep.equal([
      ['WELCOME', 1],
      ['TET', 0],
    ])
    expect(listed[0]).to.include({ app_id: app.app.id, sandbox: true })
    expect(text).to.match(/WELCOME +₫30,000.* 1 of 5/)
    expect(Math.max(...text.split('\n').map((line) => line.length))).to.be.at.most(80)
    const { value: archived } = await cli.both(['promotion', 'archive', id, 'TET'])
    expect(archived).to.include({ code: 'TET', status: 'archived' })
    const { value: restored } = await cli.both(['promotion', 'restore', id, archived.id])
    expect(restored).to.include({ code: 'TET', status: 'active' })
  })

  it('shows the discount of a transaction', async () => {
    const plan = await aPlan(ctx, app)
    await cli.json(['promotion', 'create', id, '--code', 'TET', '--percent', '20'])
    const { transaction_id } = await paid(ctx, app, { price_id: priceId(plan), promotion_code: 'TET' })
    const { value, text } = await cli.both(['transaction', 'show', String(transaction_id)])
    expect(value.discount).to.deep.equal({ code: 'TET', amount: 19_800 })
    expect(text).to.match(/discount +₫19,800 off ₫99,000 with TET/)
    const plain = await paid(ctx, app, { price_id: priceId(plan) })
    expect(await cli.table(['transaction', 'show', String(plain.transaction_id)])).to.match(/discount +-/)
  })

  it('finds what a promotion paid in full by its method', async () => {
    const plan = await aPlan(ctx, app)
    await cli.json(['promotion', 'create', id, '--code', 'GIFT', '--percent', '100'])
    await paid(ctx, app, { price_id: priceId(plan) })
    const { transaction_id } = await aCheckout(ctx, app, { price_id: priceId(plan), promotion_code: 'GIFT' })
    const found = await cli.json(['transaction', 'list', '--method', 'promotion'])
    expect(found.map((row) => row.transaction_id)).to.deep.equal([transaction_id])
    expect(await cli.json(['payment', 'list', '--method', 'promotion'])).to.deep.equal([])
  })

  it('names what is wrong', async () => {
    const create = ['promotion', 'create', id, '--code', 'TET', '--percent', '20']
    await cli.expectErrors(
      [2, [...create, '--amount', '1:VND'], 'exclude each other'],
      [2, ['promotion', 'create', id, '--code', 'TET', '--percent', 'many'], '--percent'],
      [2, ['promotion', 'create', id, '--code', 'TET', '--amount', '30000'], 'amount:currency'],
      [2, ['promotion', 'create', id, '--code', 'TET'], '--percent or --amount'],
      [1, ['promotion', 'create', id, '--code', 'TET', '--percent', '101'], 'error: --percent: must be at most 100'],
      [1, [...create, '--valid-until', 'tomorrow'], 'error: --valid-until: must be a time'],
      [1, [...create, '--plans', 'no way'], 'error: --plans: '],
      [1, [...create, '--plans', 'nowhere'], 'error: --plans: the app has no plan "nowhere"'],
      [1, ['promotion', 'show', id, 'NOPE'], 'promotion not found'],
      [1, ['promotion', 'archive', id, 'promo_999'], 'promotion not found'],
    )
  })

  itRunsEveryForm('promotions.test.ts')
})
