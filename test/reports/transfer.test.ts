import { mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { listAuditEntries } from '#commands/store.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { customers } from '#customers/store.ts'
import { exportApp } from '#reports/export-app.ts'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { importSubscriptions } from '#subscriptions/import-subscriptions.ts'
import { getApp } from '#apps/store.ts'
import { setRealtime } from '#apps/set-realtime.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { stopWithCleanLedger } from '../support/clean-ledger.ts'
import { changeApp } from '../support/operators.ts'
import { expectError, refusalOf } from '../support/expect-error.ts'
import { aCustomer, anApp, aPlan, aPromotion, LIFETIME, MONTHLY, priceId } from '../support/factories.ts'
import { rowsLike } from '../support/many-rows.ts'
import { aServiceAccountFile } from '../support/service-account.ts'
import { scratchFolder } from '../support/scratch.ts'
import { startScenario, newEventTypes, type Scenario } from '../support/scenario.ts'

describe('import and export', () => {
  let scenario: Scenario
  let plan: { id: string; prices: string[] }
  beforeEach(async () => {
    scenario = await startScenario()
    plan = await scenario.plan('pro', MONTHLY, LIFETIME)
  })
  afterEach(() => stopWithCleanLedger(scenario.service))

  const HEADER = 'external_ref,price_id,current_period_end,anchor_day,customer_email,customer_name'
  const importCsv = (csv: string, dryRun = false) =>
    importSubscriptions(scenario.service.ctx, operator('mai'), scenario.app.app, csv, { dryRun })

  describe('subscription import', () => {
    it('keeps the period end and the anchor day, so that periods still end at the end of the month', async () => {
      const report = await importCsv(`${HEADER}\nuser-1,${plan.prices[0]},2026-04-30 10:00:00,31,an@example.com,An\n`)
      expect(report).to.deep.include({ imported: 1, skipped: 0, refused: 0 })
      expect(await scenario.subscription()).to.include({
        status: 'active',
        current_period_end: '2026-04-30 10:00:00',
        in_trial: false,
      })
      expect((await scenario.subscription()).customer_id).to.match(/^cus_\d+$/)
      expect(await newEventTypes(scenario)).to.deep.equal(['subscription.updated'])
      await scenario.pay(await scenario.checkout({ price_id: plan.prices[0] }))
      expect((await scenario.subscription()).current_period_end).to.equal('2026-05-31 10:00:00')
    })

    it('skips existing subscriptions, so that an interrupted import can simply be run again', async () => {
      const first = `${HEADER}\nuser-1,${plan.prices[0]},2026-04-30 10:00:00,,,\n`
      await importCsv(first)
      const again = await importCsv(`${first}user-2,${plan.prices[1]},,,,\n`)
      expect(again.lines.map(({ line, external_ref, result }) => [line, external_ref, result])).to.deep.equal([
        [2, 'user-1', 'skipped'],
        [3, 'user-2', 'imported'],
      ])
      expect((await scenario.subscription('user-2')).current_period_end).to.equal(null)
    })

    it('a dry run shows what each line would do, and writes nothing', async () => {
      const report = await importCsv(`${HEADER}\nuser-1,${plan.prices[0]},2026-04-30 10:00:00,,,\n`, true)
      expect(report.lines[0]?.result).to.equal('would_import')
      expectError(await scenario.seller.get('/api/v1/subscriptions/user-1'), 404, 'not_found')
      const entries = await listAuditEntries(scenario.service.ctx.db, { limit: 10, appId: scenario.app.app.id })
      expect(entries.map(({ action }) => action)).to.not.include('subscription.import')
    })

    it('refuses an invalid line with the reason, and imports the others', async () => {
      const lines = [
        `a,price_999,2026-04-30 10:00:00,,,`,
        `b,${plan.prices[0]},30.04.2026,,,`,
        `c,${plan.prices[0]},2026-04-30 10:00:00,32,,`,
        `d,${plan.prices[1]},2026-04-30 10:00:00,,,`,
        `e,${plan.prices[0]},2026-04-30 10:00:00,,no address,`,
        `f,${plan.prices[0]},2026-04-30 10:00:00,,,`,
      ]
      const report = await importCsv(`${HEADER}\n${lines.join('\n')}\n`)
      expect(report).to.deep.include({ imported: 1, refused: 5 })
      expect(report.lines.slice(0, 5).map(({ reason }) => reason?.split(':')[0])).to.deep.equal([
        'price_id',
        'current_period_end',
        'anchor_day',
        'current_period_end',
        'customer_email',
      ])
    })

    it('refuses an external_ref that no URL can hold', async () => {
      const report = await importCsv(
        `${HEADER}\n.,${plan.prices[1]},,,,\n..,${plan.prices[1]},,,,\n...,${plan.prices[1]},,,,\n`,
      )
      expect(report.lines.map(({ result, reason }) => [result, reason])).to.deep.equal([
        ['refused', 'external_ref: must not be . or ..'],
        ['refused', 'external_ref: must not be . or ..'],
        ['imported', null],
      ])
    })

    it('counts the lines of the file, blank ones and those within quotes too', async () => {
      const quoted = `"two\nlines",${plan.prices[0]},2026-04-30 10:00:00,,,`
      const { lines } = await importCsv(`${HEADER}\n\n${quoted}\n\nb,${plan.prices[0]},2026-04-30 10:00:00,,,\n`)
      expect(lines.map(({ line, result }) => [line, result])).to.deep.equal([
        [4, 'refused'],
        [6, 'imported'],
      ])
    })

    it('reads a file whose lines end in different ways, as one that was put together from two, and names the right lines', async () => {
      const rows = ['a', 'b'].map((ref) => `${ref},${plan.prices[0]},2026-04-30 10:00:00,,,`)
      const read = async ([first, others]: readonly string[]) =>
        (await importCsv(`${HEADER}${first}${rows.join(others)}${others}`)).lines.map((each) => each.line)
      const ends = [
        ['\r\n', '\n'],
        ['\n', '\r\n'],
        ['\r', '\r'],
      ]
      for (const pair of ends) expect(await read(pair), JSON.stringify(pair)).to.deep.equal([2, 3])
    })

    it('refuses an anchor_day that contradicts the period end', async () => {
      const ends: [end: string, anchor: string, result: string][] = [
        ['2026-03-31 10:00:00', '1', 'refused'],
        ['2026-04-01 10:00:00', '31', 'refused'],
        ['2026-04-29 10:00:00', '31', 'refused'],
        ['2026-04-30 10:00:00', '29', 'refused'],
        ['2026-04-30 10:00:00', '30', 'imported'],
        ['2026-04-30 10:00:00', '31', 'imported'],
        ['2028-02-29 10:00:00', '30', 'imported'],
        ['2026-03-15 10:00:00', '15', 'imported'],
      ]
      const lines = ends.map(([end, anchor], index) => `u${index},${plan.prices[0]},${end},${anchor},,`)
      const report = await importCsv(`${HEADER}\n${lines.join('\n')}\n`)
      expect(report.lines.map(({ result }) => result)).to.deep.equal(ends.map(([, , result]) => result))
      for (const { result, reason } of report.lines)
        if (result === 'refused') expect(reason).to.match(/^anchor_day: a period that aims at day/)
      scenario.at('2026-04-20 10:00:00')
      await scenario.pay(await scenario.checkout({ price_id: plan.prices[0], external_ref: 'u5' }))
      expect((await scenario.subscription('u5')).current_period_end).to.equal('2026-05-31 10:00:00')
    })

    it('refuses an external_ref that a realtime path cannot contain, for an app with a realtime database', async () => {
      const { ctx } = scenario.service
      const phone = await anApp(ctx, { auth: 'identity' })
      const monthly = priceId(await aPlan(ctx, phone))
      const csv = `${HEADER}\na/b,${monthly},2026-04-30 10:00:00,,,\nok,${monthly},2026-04-30 10:00:00,,,\n`
      const run = async () =>
        importSubscriptions(ctx, operator('mai'), await getApp(ctx.db, phone.app.id), csv, { dryRun: true })
      expect((await run()).refused, 'without a realtime database').to.equal(0)
      const database = { databaseUrl: 'https://demo-proj.firebaseio.com', serviceAccount: aServiceAccountFile() }
      await perform(ctx, operator('mai'), setRealtime, database, { app: phone.app })
      const { lines } = await run()
      expect(lines.map(({ result }) => result)).to.deep.equal(['refused', 'would_import'])
      expect(lines[0]?.reason).to.match(/^external_ref: must not contain/)
    })

    it('refuses a whole file that is not valid CSV', async () => {
      expect(await refusalOf(importCsv(`${HEADER}\n"user-1,x\n`))).to.have.property('code', 'invalid_request')
    })
  })

  describe('app export', () => {
    it('writes every table as JSON Lines and as CSV with the same columns, and no secret', async () => {
      const { ctx } = scenario.service
      const app = await changeApp(ctx, 'mai', scenario.app.app, { receipts: true })
      const made = await scenario.seller.post('/api/v1/customers', { name: '=HYPERLINK("x")', email: 'an@example.com' })
      const checkout = await scenario.checkout({ price_id: plan.prices[0], customer_id: made.body.data.id })
      await scenario.pay(checkout)
      scenario.at('2026-03-29 10:00:00')
      await sendDueReminders(ctx)
      const refund = { action: 'refund', amount: 1000, note: 'asked', reference: 'FT-BACK' } as const
      await resolveTransaction(ctx, operator('mai'), { transactionId: checkout.transaction_id, ...refund })
      await aPromotion(ctx, scenario.app)
      const folder = join(scratchFolder('export'), 'out')
      const counts = await exportApp(ctx, app, folder)
      expect(counts).to.deep.equal({
        plans: 1,
        promotions: 1,
        customers: 1,
        subscriptions: 1,
        transactions: 1,
        payments: 1,
        allocations: 2,
        refunds: 1,
        ledger: 1,
        reminders: 1,
        receipts: 2,
        events: 2,
      })
      for (const [name, count] of Object.entries(counts)) {
        const lines = readFileSync(join(folder, `${name}.jsonl`), 'utf8')
          .trim()
          .split('\n')
        const table: Record<string, string>[] = parse(readFileSync(join(folder, `${name}.csv`), 'utf8'), {
          columns: true,
        })
        expect([lines.length, table.length], name).to.deep.equal([count, count])
        expect(Object.keys(table[0] ?? {}), name).to.deep.equal(Object.keys(JSON.parse(lines[0] ?? '{}') as object))
      }
      const all = readdirSync(folder)
        .map((file) => readFileSync(join(folder, file), 'utf8'))
        .join('\n')
      expect(all).to.not.include(scenario.app.secret).and.not.include('sk_').and.not.include('/renew/')
    })

    it('fails with the reason when a file cannot be written', async () => {
      for (const file of ['plans.csv', 'plans.jsonl']) {
        const folder = scratchFolder('export')
        mkdirSync(join(folder, file))
        const failed: unknown = await exportApp(scenario.service.ctx, scenario.app.app, folder).catch(
          (error: unknown) => error,
        )
        expect(failed, file).to.have.property('code', 'EISDIR')
      }
    })

    it('writes all pages of a table', async () => {
      const { ctx } = scenario.service
      const first = await aCustomer(ctx, scenario.app, { name: 'customer 0' })
      const others = rowsLike(first, 1000, (n) => ({ name: `customer ${n}` }))
      await ctx.db.insertAll(customers, others)
      const folder = scratchFolder('export')
      expect(await exportApp(ctx, scenario.app.app, folder)).to.include({ customers: 1001 })
      const table: Record<string, string>[] = parse(readFileSync(join(folder, 'customers.csv'), 'utf8'), {
        columns: true,
      })
      expect(table.map(({ name }) => name)).to.deep.equal([first, ...others].map(({ name }) => name))
    })

    it('marks each cell of CSV that a spreadsheet would run, and quotes each that contains a semicolon', async () => {
      const names: [name: string, cell: string][] = [
        ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"`],
        ['  =1+1', "'  =1+1"],
        ['+84 90', "'+84 90"],
        ['-1+1', "'-1+1"],
        ['@SUM(A1)', "'@SUM(A1)"],
        ['\u00a0=1', "'\u00a0=1"],
        ["'=1", "''=1"],
        ['＝1', "'＝1"],
        ['An; =1+1', '"An; =1+1"'],
        ['-42', '-42'],
        ['3.5', '3.5'],
        ['An = Bình', 'An = Bình'],
        ["O'Brien", "O'Brien"],
      ]
      for (const [name] of names) await scenario.seller.post('/api/v1/customers', { name, email: 'an@example.com' })
      const folder = scratchFolder('export')
      await exportApp(scenario.service.ctx, scenario.app.app, folder)
      const [header = '', ...lines] = readFileSync(join(folder, 'customers.csv'), 'utf8').trim().split('\n')
      const column = header.split(',').indexOf('name')
      expect(column).to.equal(1)
      expect(lines.map((line) => /^[^,]*,("(?:[^"]|"")*"|[^,]*),/.exec(line)?.[1])).to.deep.equal(
        names.map(([, cell]) => cell),
      )
    })

    it('quotes a cell that begins or ends with a blank, so that subscription import reads it unchanged', async () => {
      const refs = [' an', 'an ', '\u3000an', 'an']
      for (const ref of refs)
        await scenario.pay(await scenario.checkout({ external_ref: ref, price_id: plan.prices[0] }))
      const folder = scratchFolder('export')
      await exportApp(scenario.service.ctx, scenario.app.app, folder)
      const [, ...lines] = readFileSync(join(folder, 'subscriptions.csv'), 'utf8').trimEnd().split('\n')
      const cells = lines.map((line) => line.split(',')[1])
      const report = await importCsv(
        [
          'external_ref,price_id,current_period_end',
          ...cells.map((cell) => `${cell}, ${plan.prices[0]} ,2026-04-01 10:00:00`),
        ].join('\n'),
      )
      expect(report.lines.map((line) => [line.external_ref, line.result])).to.deep.equal(
        refs.map((ref) => [ref, 'skipped']),
      )
    })

    it('writes lines that subscription import accepts unchanged, and removes the marks', async () => {
      const refs = ['=cmd', '  @x', "'=y", "'z", '-42', '\u2007+1', "  '=q", 'plain']
      for (const ref of refs)
        await scenario.pay(await scenario.checkout({ external_ref: ref, price_id: plan.prices[0] }))
      const folder = scratchFolder('export')
      await exportApp(scenario.service.ctx, scenario.app.app, folder)
      const rows: Record<string, string>[] = parse(readFileSync(join(folder, 'subscriptions.csv'), 'utf8'), {
        columns: true,
      })
      const columns = ['external_ref', 'price_id', 'current_period_end', 'anchor_day']
      const report = await importCsv(stringify(rows, { header: true, columns }))
      // Each reference is recognized.
      expect(report.lines.map((line) => [line.external_ref, line.result])).to.deep.equal(
        refs.map((ref) => [ref, 'skipped']),
      )
    })
  })
})
