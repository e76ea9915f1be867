import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { apps } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { measureReview, type ReviewItem } from '#review/read-review.ts'
import { REVIEW_KINDS } from '#review/store.ts'
import { DAY_MS, systemClock } from '#shared/time.ts'
import { realTimeContext } from '../support/context.ts'
import { anApp, aPlan, partlyPaid, priceId } from '../support/factories.ts'
import { flaggedOf, oneOfEachKind } from '../support/review.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli, type Cli } from './run-cli.ts'
import { aBankMail, unmatchedMoney } from './states.ts'

const FIELDS = [
  ...['kind', 'id', 'app_id', 'sandbox', 'age_seconds', 'amount', 'currency', 'subject', 'next_step'],
] as const

describe('review', () => {
  let cli: Cli
  let ctx: Context

  beforeEach(() => {
    cli = openCli()
    ctx = realTimeContext()
  })

  const kindsOf = (items: readonly ReviewItem[]) => items.map(({ kind }) => kind).sort()
  const byKind = (items: readonly ReviewItem[], kind: ReviewItem['kind']) => items.find((item) => item.kind === kind)!

  it('lists each case of all eight kinds once, the oldest first, with what to do about it', async () => {
    const app = await oneOfEachKind(ctx)
    const { value: items, text } = await cli.both(['review'])
    expect(kindsOf(items)).to.deep.equal([...REVIEW_KINDS, 'unconfirmed_mail'].sort())
    for (const item of items) expect(Object.keys(item)).to.deep.equal(FIELDS)
    const ages = items.map(({ age_seconds: age }: { age_seconds: number }) => age)
    expect(ages).to.deep.equal([...ages].sort((a: number, b: number) => b - a))
    const flagged = await flaggedOf(ctx, app)
    expect(byKind(items, 'flagged_payment')).to.include({
      ...{ id: flagged, app_id: app.app.id, sandbox: true, amount: 90_000, currency: 'VND' },
      ...{ subject: 'user-9: underpaid', next_step: `billing-cli transaction resolve ${flagged}` },
    })
    const unmatched = byKind(items, 'unmatched_bank_mail')
    expect(unmatched).to.include({ app_id: null, sandbox: null, amount: 99_000, currency: 'VND' })
    expect(unmatched.next_step).to.match(/^billing-cli bank-mail match \d+ \d+ --note "…"$/)
    expect(byKind(items, 'unreadable_bank_mail')).to.include({ amount: null, app_id: null })
    expect(byKind(items, 'unapplied_payment')).to.include({ amount: 70_000 })
    expect(byKind(items, 'failed_webhook').id).to.match(/^evt_\d+$/)
    expect(byKind(items, 'paused_account').subject).to.equal('payos: no answer')
    expect(byKind(items, 'refused_address').subject).to.include('an@example.com')
    expect(text)
      .to.match(/^ *waits +app +what/m)
      .and.include('bank-mail match')
  })

  it('lists what waits since the same instant in one order, whatever its ids are: reminders before receipts', async () => {
    const now = systemClock.now()
    await oneOfEachKind({ ...ctx, clock: { now: () => now } })
    const { value: items } = await cli.both(['review'])
    const waiting: ReviewItem[] = items
    const steps = waiting.filter(({ kind }) => kind === 'unconfirmed_mail').map(({ next_step: step }) => step)
    expect(steps.map((step) => step.replace(/\d+/, 'ID'))).to.deep.equal([
      'billing-cli reminders settle ID --sent',
      'billing-cli receipts settle ID --sent',
    ])
  })

  it('is limited to an app by --app, and empty where nothing waits', async () => {
    const { app } = await anApp(ctx, { name: 'Calm' })
    await unmatchedMoney(ctx, await oneOfEachKind(ctx), 50_000)
    expect(await cli.json(['review', '--app', String(app.id)])).to.deep.equal([])
    expect(await cli.table(['review', '--app', String(app.id)])).to.include('Nothing needs review.')
  })

  it('counts age in real time, whatever a sandbox app’s clock says', async () => {
    const made = await anApp(ctx)
    const app = { ...made, app: { ...made.app, clockOffsetMs: 90 * DAY_MS } }
    await ctx.db.update(apps, { id: app.app.id }, { clockOffsetMs: 90 * DAY_MS })
    await partlyPaid(ctx, app, { external_ref: 'user-9', price_id: priceId(await aPlan(ctx, app)) })
    const flagged = byKind(await cli.json(['review']), 'flagged_payment')
    expect(flagged.age_seconds).to.be.within(0, 600)
  })

  it('is measured by kind for /metrics, with the age of the oldest', async () => {
    await oneOfEachKind(ctx)
    await aBankMail(ctx, { bank: 'VCB', bankReference: 'x-2', review: 'unknown_sender' })
    const sizes = new Map((await measureReview(ctx)).map((size) => [size.kind, size]))
    expect([...sizes.keys()]).to.deep.equal([...REVIEW_KINDS])
    expect(sizes.get('unreadable_bank_mail')?.cases).to.equal(2)
    expect(sizes.get('unconfirmed_mail')?.oldestSeconds).to.be.closeTo(3600, 60)
  })

  itRunsEveryForm('review.test.ts')
})
