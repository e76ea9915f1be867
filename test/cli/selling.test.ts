import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Context } from '#context.ts'
import { realTimeContext } from '../support/context.ts'
import {
  aCustomer,
  anApp,
  aPlan,
  aSubscription,
  LIFETIME,
  MONTHLY,
  priceId,
  YEARLY,
  type TestApp,
} from '../support/factories.ts'
import type { Plan } from '../../client/src/types.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli, type Cli } from './run-cli.ts'
import { scratchFolder } from '../support/scratch.ts'

describe('the command line: plans, customers and subscriptions', () => {
  let cli: Cli
  let ctx: Context
  let app: TestApp
  let id: string

  beforeEach(async () => {
    cli = openCli()
    // The program's clock is the machine's.
    ctx = realTimeContext()
    app = await anApp(ctx)
    id = String(app.app.id)
  })

  it('creates a plan from options, a file or standard input, and shows it as the API does', async () => {
    const body = { code: 'team', name: 'Team', prices: [MONTHLY, { ...YEARLY, name: 'A year' }] }
    const file = join(scratchFolder('cli'), 'plan.json')
    writeFileSync(file, JSON.stringify(body))
    // The first command of a group is run by the program itself, and so is what reads standard input.
    const stdin = JSON.stringify({ ...body, code: 'piped' })
    expect(await cli.json(['plan', 'create', id, '--file', '-'], { stdin })).to.include({ code: 'piped' })
    const pro = await cli.json([
      'plan',
      'create',
      ...[id, '--code', 'pro', '--name', 'Pro'],
      ...['--price', '99000:VND:month', '--price', '2900000:VND:lifetime', '--price', '500:USD:day:3'],
    ])
    expect(pro).to.include({ code: 'pro', name: 'Pro', status: 'active' })
    expect(pro.prices.map((price) => [price.amount, price.currency, price.interval_unit])).to.deep.equal([
      [99_000, 'VND', 'month'],
      [2_900_000, 'VND', 'lifetime'],
      [500, 'USD', 'day'],
    ])
    expect(await cli.table(['plan', 'create', id, '--file', file]))
      .to.include('[TEST] Reader')
      .and.include('team')

    const { value: plans, text } = await cli.both(['plan', 'list', id])
    expect(plans.map(({ code }: { code: string }) => code)).to.deep.equal(['team', 'pro', 'piped'])
    expect(text).to.include('piped')
    const { value: shown, text: one } = await cli.both(['plan', 'show', id, pro.id])
    expect(shown).to.deep.equal(pro)
    expect(one).to.include('₫99,000').and.include('lifetime')

    await cli.expectErrors(
      [1, ['plan', 'create', id, '--file', file], 'team'],
      [1, ['plan', 'show', id, 'plan_999'], `billing-cli plan list`],
      [2, ['plan', 'create', id, '--code', 'x', '--name', 'X'], '--price'],
    )
    expect(
      await cli.misused(['plan', 'create', id, '--code', 'x', '--name', 'X', '--price', '1.5:VND:month']),
    ).to.match(/amount:currency:unit/)
    expect(await cli.misused(['plan', 'create', id, '--file', `${file}.gone`])).to.include('cannot be read')
    for (const [bytes, message] of [
      ['{', 'is not JSON'],
      [Buffer.from('{"name":"\xff"}', 'latin1'), 'is not UTF-8'],
    ] as const) {
      writeFileSync(file, bytes)
      expect(await cli.misused(['plan', 'create', id, '--file', file])).to.include(message)
    }
    writeFileSync(file, `\ufeff${JSON.stringify({ ...body, prices: [{ ...MONTHLY, trial: { amount: 'x' } }] })}`)
    await cli.expectErrors(
      [1, ['plan', 'create', id, '--file', file], 'prices.0.trial.amount'],
      [2, ['plan', 'create', id, '--file', file, '--code', 'x'], 'cannot be used with'],
      [2, ['plan', 'list', id, '--status', 'old'], 'active or archived'],
    )
  })

  it('updates, archives and restores plans and prices', async () => {
    const plan = `plan_${(await aPlan(ctx, app)).id}`
    expect(await cli.json(['plan', 'update', id, plan, '--name', 'Pro 2026'])).to.include({ name: 'Pro 2026' })
    expect(await cli.table(['plan', 'update', id, plan, '--description', 'All of it'])).to.include('Pro 2026')
    expect(await cli.misused(['plan', 'update', id, plan])).to.include('--name')
    const { value: off, text: shownOff } = await cli.both(['plan', 'archive', id, plan])
    expect(off).to.include({ status: 'archived' })
    expect(shownOff).to.include('(archived)')
    expect(await cli.json(['plan', 'list', id, '--status', 'active'])).to.deep.equal([])
    const { value: on, text: shownOn } = await cli.both(['plan', 'restore', id, plan])
    expect(on).to.include({ status: 'active' })
    expect(shownOn).to.include('(active)')

    const file = join(scratchFolder('cli'), 'price.json')
    writeFileSync(file, JSON.stringify(YEARLY))
    const added = await cli.json(['price', 'add', id, plan, '--file', file])
    expect(added.prices).to.have.length(2)
    const price = added.prices[1]!.id
    expect(await cli.table(['price', 'add', id, plan, '--price', '1000:VND:week:2'])).to.include('2 week')
    const statusOf = (shown: Plan) => shown.prices.find((each) => each.id === price)?.status
    const { value: archived, text: shownArchived } = await cli.both(['price', 'archive', id, plan, price])
    expect(statusOf(archived)).to.equal('archived')
    expect(shownArchived).to.include('archived')
    const { value: restored, text: shownRestored } = await cli.both(['price', 'restore', id, plan, price])
    expect(statusOf(restored)).to.equal('active')
    expect(shownRestored).not.to.include('archived')
    await cli.expectErrors(
      [1, ['price', 'archive', id, plan, 'price_x'], 'price not found'],
      [2, ['price', 'archive', id, plan], '<price_id>'],
    )
  })

  it('imports subscriptions from CSV, previews each line, and skips existing ones', async () => {
    const price = priceId(await aPlan(ctx, app))
    const lines = ['external_ref,price_id,current_period_end', `old-1,${price},2099-01-01 00:00:00`]
    const file = join(scratchFolder('cli'), 'subscriptions.csv')
    writeFileSync(file, lines.join('\n'))
    const words = ['subscription', 'import', id, file]
    const line = { line: 2, external_ref: 'old-1', reason: null }
    const planned = await cli.preview(words)
    const twice = [...lines, lines[1]].join('\n')
    const again = { line: 3, external_ref: 'old-1', result: 'skipped', reason: 'has a subscription already' }
    expect(await cli.json(['subscription', 'import', id, '-', '--dry-run'], { stdin: twice })).to.deep.equal({
      ...{ imported: 0, skipped: 1, refused: 0 },
      lines: [{ ...line, result: 'would_import' }, again],
    })
    const would = await cli.table([...words, '--dry-run'])
    expect(planned).to.deep.equal({ imported: 0, skipped: 0, refused: 0, lines: [{ ...line, result: 'would_import' }] })
    expect(would).to.include('[TEST] Reader').and.include('would_import')
    expect(await cli.json(words)).to.deep.include({ imported: 1, lines: [{ ...line, result: 'imported' }] })
    expect(await cli.table(words))
      .to.include('skipped')
      .and.include('has a subscription already')

    const stdin = [...lines, `old-2,price_x,2099-01-01 00:00:00`].join('\n')
    const piped = await cli.json(['subscription', 'import', id, '-'], { code: 1, stdin })
    expect(piped).to.include({ imported: 0, skipped: 1, refused: 1 })
    await cli.expectErrors(
      [2, ['subscription', 'import', id], '<file>'],
      [2, ['subscription', 'import', id, `${file}.gone`], 'cannot be read'],
    )
    writeFileSync(file, 'a;b\n1;2\n')
    expect(await cli.refused(words)).to.include('external_ref')
  })

  it("lists and shows an app's customers as the API returns them", async () => {
    const an = await aCustomer(ctx, app, { merchant_customer_id: 'm-1' })
    await aCustomer(ctx, app, { name: 'Bình \u200f', email: 'binh@example.com' })
    const { value, text } = await cli.both(['customer', 'list', id])
    expect(value).to.have.length(2)
    expect(text).to.include('an@example.com').and.include('\\u200f')
    expect(await cli.json(['customer', 'list', id, '--email', 'an@example.com'])).to.have.length(1)
    expect(await cli.json(['customer', 'list', id, '--merchant-customer-id', 'm-2'])).to.deep.equal([])
    const { value: shown, text: one } = await cli.both(['customer', 'show', id, `cus_${an.id}`])
    expect(shown).to.include({ id: `cus_${an.id}`, merchant_customer_id: 'm-1' })
    expect(one).to.include('m-1')
    expect(await cli.refused(['customer', 'show', id, 'cus_999'])).to.include('billing-cli customer list')
  })

  it('says when a list is incomplete, and returns more than a page on request', async () => {
    for (let number = 0; number < 103; number += 1) await aCustomer(ctx, app, { name: `N${number}` })
    const short = await cli.run(['customer', 'list', id])
    expect(short.stderr).to.include('--limit')
    expect(await cli.json(['customer', 'list', id, '--limit', '1000'])).to.have.length(103)
    expect(await cli.misused(['customer', 'list', id, '--limit', '0'])).to.include('--limit')
  })

  it("lists, shows and changes subscriptions, an identity-token app's too", async () => {
    const plan = await aPlan(ctx, app, { prices: [MONTHLY, YEARLY] })
    const other = await aPlan(ctx, app, { prices: [LIFETIME] })
    await aSubscription(ctx, app, plan)
    const customer = `cus_${(await aCustomer(ctx, app)).id}`
    const { value, text } = await cli.both(['subscription', 'list', id])
    expect(value).to.have.length(1)
    expect(text).to.include('user-1')
    expect(await cli.json(['subscription', 'list', id, '--expiring-within', '7d'])).to.deep.equal([])
    expect(
      await cli.json(['subscription', 'list', id, '--expiring-within', '32d', '--status', 'active']),
    ).to.have.length(1)
    const { value: shown, text: one } = await cli.both(['subscription', 'show', id, 'user-1'])
    expect(shown).to.include({ external_ref: 'user-1', price_id: priceId(plan), status: 'active' })
    expect(one).to.include('[TEST] Reader')

    const switched = await cli.json(['subscription', 'switch-plan', id, 'user-1', priceId(plan, 1)])
    expect(switched).to.include({ price_id: priceId(plan, 1), current_period_end: shown.current_period_end })
    expect(await cli.table(['subscription', 'switch-plan', id, 'user-1', priceId(other)])).to.include(priceId(other))
    const attach = await cli.both(['subscription', 'attach-customer', id, 'user-1', customer])
    expect(attach.value).to.include({ customer_id: customer })
    expect(attach.text).to.include(customer)
    expect(await cli.json(['subscription', 'reminders', id, 'user-1', 'off'])).to.deep.equal({
      external_ref: 'user-1',
      reminders: 'off',
      changed: true,
    })
    expect(await cli.table(['subscription', 'reminders', id, 'user-1', 'on'])).to.include('are on')

    await cli.expectErrors(
      [1, ['subscription', 'switch-plan', id, 'user-1', 'price_999'], 'price'],
      [1, ['subscription', 'show', id, 'nobody'], 'billing-cli subscription list'],
      [2, ['subscription', 'list', id, '--status', 'old'], '--status'],
      [2, ['subscription', 'list', id, '--expiring-within', 'soon'], '7d'],
      [2, ['subscription', 'list', id, '--expiring-within', '36501d'], '36500d'],
      [2, ['subscription', 'reminders', id, 'user-1', 'maybe'], 'on or off'],
    )

    const clients = await anApp(ctx, { auth: 'identity', name: 'Phone' })
    const theirs = await aPlan(ctx, clients, { prices: [MONTHLY, YEARLY] })
    await aSubscription(ctx, clients, theirs)
    const words = ['subscription', 'switch-plan', String(clients.app.id), 'user-1', priceId(theirs, 1)]
    expect(await cli.json(words)).to.include({ price_id: priceId(theirs, 1) })
  })

  it('ends a subscription now, a lifetime one too, with a note; a new checkout is possible afterwards', async () => {
    const plan = await aPlan(ctx, app, { prices: [LIFETIME, MONTHLY] })
    await aSubscription(ctx, app, plan)
    const words = ['subscription', 'end', id, 'user-1', '--note', 'refunded: bought by mistake'] as const
    const planned = await cli.preview(words)
    expect(planned.changes[0]!.before).to.deep.equal({ current_period_end: null })
    expect(planned.events.map((event) => event.event_type)).to.deep.equal(['subscription.updated'])
    expect((await cli.json(['subscription', 'show', id, 'user-1'])).status).to.equal('active')

    const ended = await cli.json(words)
    expect(ended).to.include({ external_ref: 'user-1', status: 'expired' })
    expect(ended.current_period_end).to.match(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/)
    const [entry] = await cli.json(['audit', 'list'])
    expect(entry).to.deep.include({ action: 'subscription.end', reason: 'refunded: bought by mistake' })
    await cli.expectErrors(
      [1, words, 'ended at'],
      [1, ['subscription', 'end', id, 'nobody', '--note', 'x'], 'billing-cli subscription list'],
      [2, ['subscription', 'end', id, 'user-1'], '--note'],
    )

    await aSubscription(ctx, app, plan, { price_id: priceId(plan, 1) })
    expect(await cli.table(words)).to.include('expired')
    expect((await cli.json(['ledger', 'verify', '--app', id])).faults).to.deep.equal([])
  })

  itRunsEveryForm('selling.test.ts')
})
