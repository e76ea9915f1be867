import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { addDatabaseMetrics } from '#daemon/database-metrics.ts'
import { openMetrics } from '#daemon/metrics.ts'
import { movementOf, recordUnallocatedMoney } from '#bank-mail/book-money.ts'
import { inTransaction } from '#commands/transaction.ts'
import { jobRuns } from '#upkeep/job-runs/store.ts'
import { openCli, type Cli } from '../cli/run-cli.ts'
import type { Shown } from '../cli/shown.ts'
import { whileLacking } from '../support/broken-tables.ts'
import { realTimeContext, type RealTimeContext } from '../support/context.ts'
import { aCheckout, anApp, aPlan, partlyPaid, priceId, type TestApp, transferred } from '../support/factories.ts'

/** The greatest amount that a price may have. Three of them are more than a number holds exactly. */
const MAX = Number.MAX_SAFE_INTEGER
const THRICE = '27021597764222973'
/** Of three times one less. */
const THRICE_LESS = '27021597764222970'

describe('sums of money beyond what a number holds', () => {
  let ctx: RealTimeContext
  let cli: Cli
  let seller: TestApp
  let references = 0

  beforeEach(async () => {
    ctx = realTimeContext()
    cli = openCli()
    seller = await anApp(ctx, { name: 'Huge' })
    const huge = { amount: MAX, currency: 'VND', interval_unit: 'month', interval_count: 1 } as const
    const plan = await aPlan(ctx, seller, { prices: [huge, { ...huge, amount: 1 }] })
    for (let times = 0; times < 3; times += 1) {
      // Paid in full, underpaid, overpaid, and money that nobody expects.
      await arrives(priceId(plan), MAX)
      await arrives(priceId(plan), MAX - 1)
      await arrives(priceId(plan, 1), MAX)
      await unexpected(MAX)
    }
  })

  async function arrives(price: string, amount: number): Promise<void> {
    references += 1
    const session = await aCheckout(ctx, seller, { external_ref: `user-${references}`, price_id: price })
    await transferred(ctx, session.transaction_id!, amount)
  }

  async function unexpected(amount: number): Promise<void> {
    references += 1
    const mail = {
      bank: 'ACB',
      bankReference: `FT${references}`,
      bankAccountId: null,
      contentHash: String(references).padStart(64, '0'),
    }
    await inTransaction(ctx, async (tx) => {
      const { reference } = await movementOf(tx, mail)
      const appId = seller.app.id
      await recordUnallocatedMoney(tx, { reference, amount, bankAccountId: null, appId, paidAt: tx.now })
    })
  }

  const scrape = async (): Promise<string> => {
    const metrics = openMetrics()
    addDatabaseMetrics(ctx, metrics)
    return metrics.registry.metrics()
  }

  it('are exact in stats, as JSON numbers and in the table', async () => {
    const { code, stdout } = await cli.run(['stats', String(seller.app.id), '--json'])
    expect(code).to.equal(0)
    const received = BigInt(MAX) * 9n - 3n
    expect(stdout).to.contain(`"received":${received},"refunded":0,"net":${received}`)
    // Underpaid, and expected by nobody.
    expect(stdout).to.contain(`"unapplied":[{"currency":"VND","amount":${BigInt(THRICE_LESS) + BigInt(THRICE)}}]`)
    expect(stdout).to.contain(`"surplus":[{"currency":"VND","amount":${THRICE_LESS}}]`)
    const [, unearned] = /"unearned":\[\{"currency":"VND","amount":(\d+)\}\]/.exec(stdout) ?? []
    expect(BigInt(unearned!) <= BigInt(THRICE) + 3n && BigInt(unearned!) > BigInt(THRICE) - 10n ** 12n).to.equal(true)
    expect(await cli.table(['stats', String(seller.app.id)])).to.contain('₫27,021,597,764,222,970')
  })

  it('of a sandbox app hide nothing of the others from doctor, watch and the metrics', async () => {
    const live = await anApp(ctx, { sandbox: false })
    await partlyPaid(ctx, live, { price_id: priceId(await aPlan(ctx, live)) })
    const checks = await cli.json(['doctor'], { code: 1 })
    const flagged = checks.find(({ check }) => check === 'flagged')
    expect(flagged).to.include({ ok: false, detail: '1 underpaid with ₫90,000 received and not applied' })
    const { stdout } = await cli.run(['watch', '--once', '--json'])
    expect(stdout).to.contain(`"transactions":3,"unapplied":${THRICE_LESS}`)
    const watched = JSON.parse(stdout) as Shown<'watch'>
    expect(watched.flagged.map(({ unapplied }) => unapplied)).to.include(90_000)
    const text = await scrape()
    expect(text).to.match(/^paygate_database_up 1$/m)
    expect(text).to.match(/^paygate_money_unapplied\{currency="VND",mode="live"\} 90000$/m)
    const [, sum] = /^paygate_money_unapplied\{currency="VND",mode="test"\} (\S+)$/m.exec(text) ?? []
    expect(Number(sum)).to.equal(Number(BigInt(THRICE_LESS) + BigInt(THRICE)))
  })

  it('that are checked or exported are those of the rows', async () => {
    expect((await cli.json(['ledger', 'verify'])).faults).to.deep.equal([])
    const listed = await cli.json(['payment', 'list', '--unallocated'])
    expect(listed.map(({ amount }: { amount: number }) => amount)).to.include(MAX)
  })

  it('and every other figure stay where one cannot be read', async () => {
    await whileLacking(ctx.db, jobRuns, async () => {
      const text = await scrape()
      expect(text).to.match(/^paygate_database_up 1$/m)
      expect(text).to.match(/^paygate_outbox_events \d+$/m)
      expect(text).to.match(/^paygate_money_unapplied\{/m)
      expect(text).not.to.match(/^paygate_job_last_run_seconds\{/m)
      expect(ctx.logged.join('')).to.include('a database metric cannot be read').and.include('"metric":"jobs"')
      const { jobs, flagged, outbox } = await cli.json(['watch', '--once'])
      expect([jobs, flagged.length, outbox?.events]).to.deep.equal([null, 1, 0])
      expect(await cli.table(['watch', '--once'])).to.contain('cannot be read')
    })
  })
})
