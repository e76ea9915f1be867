import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { cardAccounts } from '#providers/card/accounts.ts'
import { getApp } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { asAppTime } from '#shared/time.ts'
import { findTransaction, transactions } from '#transactions/store.ts'
import { testContext } from '../support/context.ts'
import { aCheckout, anApp, aPlan, paid, partlyPaid, priceId, transferred } from '../support/factories.ts'
import { flaggedOf } from '../support/review.ts'
import { openCli, type Cli } from './run-cli.ts'
import { onSimulatedTerminal } from './simulated-terminal.ts'
import { CTRL_C, CTRL_D, DOWN, ENTER, onTerminal } from './terminal.ts'

const ESCAPE = '\u001b'

describe('the command line on a terminal', () => {
  let cli: Cli
  let ctx: Context

  beforeEach(() => {
    cli = openCli()
    ctx = testContext()
  })

  it('breaks an error between words at the edge of the terminal', async () => {
    const gone = openCli({ BILLING_DATABASE_URL: 'mysql://paygate@127.0.0.1:1/paygate' })
    for (const columns of [60, 80]) {
      const { code, text } = await onSimulatedTerminal(gone.env, ['app', 'list'], [], columns)
      const lines = text.trimEnd().split('\n')
      expect(code).to.equal(1)
      expect(lines).to.have.length.above(1)
      for (const line of lines) expect(line.length, line).to.be.at.most(columns)
      expect(lines.join(' ')).to.match(/^error: the database cannot be reached at .+ BILLING_DATABASE_URL right\?$/)
    }
  })

  it('breaks an error as for 80 columns on a terminal that does not know its width', async () => {
    const { text } = await onTerminal(cli.env, ['app', 'show', 'nothing'], [], { columns: 0 })
    expect(text).to.match(/^error: app "nothing" not found; see billing-cli app list\s+$/)
  })

  it('ends a question at Ctrl-D as at Ctrl-C, and changes nothing', async () => {
    const { app } = await anApp(ctx)
    for (const [words, question] of [
      [['app', 'show'], 'Which app?'],
      [['app', 'create', '--json'], 'Name of the app'],
      [['app', 'disable', String(app.id)], '(y/N)'],
    ] as const) {
      const { code, text, left } = await onTerminal(cli.env, words, [[question, CTRL_D]])
      expect([code, left], text).to.deep.equal([1, []])
      expect(text, words.join(' ')).to.include('Cancelled, nothing changed')
    }
    expect((await cli.json(['app', 'list'])).map(({ disabled }) => disabled)).to.deep.equal([false])
  })

  it('takes an app from a menu, and keeps the menu out of the JSON on standard output', async () => {
    await anApp(ctx, { name: 'Reader' })
    const { app } = await anApp(ctx, { name: 'Second', sandbox: false })
    const pick = [['Which app?', `${DOWN}${ENTER}`]] as const
    const shown = await onTerminal(cli.env, ['app', 'show', '--json'], pick, { toFile: true })
    expect(shown.code, shown.text).to.equal(0)
    expect(shown.text).to.include('[TEST] Reader').and.include('[LIVE] Second')
    expect(JSON.parse(shown.stdout)).to.include({ app_id: app.id })
  })

  it('reads secrets without showing them', async () => {
    const { app } = await anApp(ctx, { methods: [] })
    const entered = await onTerminal(
      cli.env,
      ['method', 'enable', String(app.id), 'card', '--skip-check'],
      [
        ['Stripe secret key', `sk_test_canary1${ENTER}`],
        ['webhook signing secret', `whsec_canary2${ENTER}`],
      ],
    )
    expect([entered.code, entered.left]).to.deep.equal([0, []])
    expect(entered.raw).not.to.include('canary')
    expect((await cardAccounts.current(ctx, app.id))?.credentials).to.deep.equal({
      secretKey: 'sk_test_canary1',
      webhookSecret: 'whsec_canary2',
    })
  })

  it('changes nothing and exits 1 after a no or Ctrl-C, continues after a yes, and does not ask with --yes', async () => {
    const { app } = await anApp(ctx)
    const disable = ['app', 'disable', String(app.id)]
    const isDisabled = async () => (await getApp(ctx.db, app.id)).disabledAt !== null
    const no = await onSimulatedTerminal(cli.env, disable, [['Disable [TEST] Reader', `n${ENTER}`]])
    expect([no.code, await isDisabled()]).to.deep.equal([1, false])
    expect(no.text).to.include('Cancelled, nothing changed')
    const cancelled = await onTerminal(cli.env, disable, [['Disable [TEST] Reader', CTRL_C]])
    expect([cancelled.code, await isDisabled()]).to.deep.equal([1, false])
    expect(cancelled.text).to.include('Cancelled, nothing changed')
    expect(cancelled.text).not.to.match(/ {4}at /)
    const yes = await onSimulatedTerminal(cli.env, disable, [['Disable [TEST] Reader', `y${ENTER}`]])
    expect([yes.code, await isDisabled()]).to.deep.equal([0, true])
    await cli.json(['app', 'enable', String(app.id)])
    const unasked = await onSimulatedTerminal(cli.env, [...disable, '--yes'], [])
    expect([unasked.code, await isDisabled()]).to.deep.equal([0, true])
    expect(unasked.text).not.to.include('?')
  })

  it('resolves a transaction picked from the flagged ones, and shows the effects before it asks', async () => {
    const app = await anApp(ctx)
    const price = priceId(await aPlan(ctx, app))
    await partlyPaid(ctx, app, { price_id: price })
    const id = await flaggedOf(ctx, app)
    await paid(ctx, app, { external_ref: 'user-2', price_id: price })
    const resolved = await onSimulatedTerminal(
      cli.env,
      ['transaction', 'resolve'],
      [
        ['Which flagged transaction?', ENTER],
        ['Choose an action', `${DOWN}${ENTER}`],
        ['Why?', `the fee of the bank${ENTER}`],
        [`Resolve transaction ${id}?`, `y${ENTER}`],
      ],
    )
    expect([resolved.code, resolved.left], resolved.text).to.deep.equal([0, []])
    expect(resolved.text).to.match(/^- .+/m)
    expect((await findTransaction(ctx.db, id))?.status).to.equal('completed')
    const none = await onSimulatedTerminal(cli.env, ['transaction', 'resolve'], [])
    expect(none.code).to.equal(2)
    expect(none.text).to.include('none to choose from')
  })

  it('offers only possible actions, and refuses an impossible command before it asks for a note', async () => {
    const app = await anApp(ctx)
    const price = priceId(await aPlan(ctx, app))
    const { transaction_id: done } = await paid(ctx, app, { price_id: price })
    await ctx.db.update(transactions, { id: done! }, { flagReason: 'already_lifetime' })
    const offered = await onSimulatedTerminal(cli.env, ['transaction', 'resolve', String(done)], [['dismiss', CTRL_C]])
    expect(offered.text).to.include('refund: give the money back').and.not.include('complete: accept')
    const { transaction_id: open } = await aCheckout(ctx, app, { external_ref: 'user-2', price_id: price })
    const { payment_id: money } = (await cli.json(['payment', 'list']))[0]!
    const impossible = [
      [['transaction', 'resolve', String(done), '--action', 'complete'], 'only a pending transaction'],
      [['payment', 'close', String(money)], 'transaction resolve'],
      [['payment', 'refund', String(money)], 'transaction resolve'],
      [['payment', 'move', String(money), String(open! + 1000)], 'not found'],
      [['bank-mail', 'close', '999999'], 'bank mail'],
      [['subscription', 'end', String(app.app.id), 'nobody'], 'subscription'],
    ] as const
    for (const [words, why] of impossible) {
      const refused = await onSimulatedTerminal(cli.env, words, [['Why?', CTRL_C]])
      expect([refused.code, refused.left.length], `${words.join(' ')}: ${refused.text}`).to.deep.equal([1, 1])
      expect(refused.text, words.join(' ')).to.include(why).and.not.include('Why?')
    }
  })

  it('asks for the reference of a manual refund, and changes nothing after Ctrl-C at the last question', async () => {
    const app = await anApp(ctx)
    const { transaction_id: id } = await aCheckout(ctx, app, { price_id: priceId(await aPlan(ctx, app)) })
    await transferred(ctx, id!, 99_000)
    const flagged = { flagReason: 'already_lifetime', flaggedAt: asAppTime(ctx.clock.now()) } as const
    await ctx.db.update(transactions, { id: id! }, flagged)
    const refund = ['transaction', 'resolve', String(id), '--action', 'refund', '--note', 'paid twice']
    const reference = ['Reference of your own transfer', `FT26123${ENTER}`] as const
    const cancelled = await onSimulatedTerminal(cli.env, refund, [reference, ['Resolve transaction', CTRL_C]])
    expect(cancelled.code).to.equal(1)
    expect((await findTransaction(ctx.db, id!))?.flagReason).to.equal('already_lifetime')
    const refunded = await onSimulatedTerminal(cli.env, refund, [reference, ['Resolve transaction', `y${ENTER}`]])
    expect([refunded.code, refunded.left], refunded.text).to.deep.equal([0, []])
    expect(refunded.text).to.include('FT26123')
    expect((await findTransaction(ctx.db, id!))?.flagReason).to.equal(null)
  })

  it('prints colours on a terminal, unless NO_COLOR is set', async () => {
    await anApp(ctx)
    const coloured = await onTerminal(cli.env, ['app', 'list'], [])
    expect(coloured.raw).to.include(`${ESCAPE}[1m`)
    for (const line of coloured.text.split(/\r?\n/)) expect(line.length, line).to.be.at.most(80)
    const plain = await onTerminal({ ...cli.env, NO_COLOR: '1' }, ['app', 'list'], [])
    expect(plain.raw).not.to.include(ESCAPE)
  })
})
