import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Context } from '#context.ts'
import { createProgram } from '#cli/program.ts'
import { apps } from '#apps/store.ts'
import { payments } from '#payments/store.ts'
import { asRealTime, parseAppTime, parseTimestamp } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { transactions } from '#transactions/store.ts'
import { realTimeContext } from '../support/context.ts'
import { clearTable, giveNextId, testDatabase } from '../support/database.ts'
import { anApp, aPlan, aSubscription, LIFETIME, MONTHLY, priceId } from '../support/factories.ts'
import { shownOn, type ShownLine } from '../support/screen.ts'
import { leavesOf } from './forms.ts'
import { expectWholeTimestamps, openCli, type Cli } from './run-cli.ts'
import type { Shown } from './shown.ts'
import { aBusyService, type BusyService } from './states.ts'
import { onSimulatedTerminal } from './simulated-terminal.ts'

const [RED, GREEN, YELLOW] = [1, 2, 3]

describe('lists of the command line', () => {
  let ctx: Context
  let cli: Cli
  let made: BusyService

  beforeEach(async () => {
    // The program's clock is the machine's.
    ctx = realTimeContext()
    made = await aBusyService(ctx)
    cli = openCli()
  })

  async function screenOf(words: readonly string[], columns = 80): Promise<ShownLine[]> {
    const { code, raw } = await onSimulatedTerminal(cli.env, words, [], columns)
    expect(code, raw).to.be.oneOf([0, 1])
    return shownOn(columns, raw.replaceAll('\n', '\r\n'))
  }

  /** The colours in which a word is shown, wherever it stands as a cell. */
  const coloursOf = (lines: readonly ShownLine[], word: string): (number | null)[] =>
    lines.flatMap(({ spans }) => spans.filter(({ text }) => text.trim() === word).map(({ colour }) => colour))

  it('show a transaction with its date, method, formatted amount and coloured status, at 80 columns too', async () => {
    const lines = await screenOf(['transaction', 'list'])
    const shown = lines.map(({ text }) => text).join('\n')
    expect(lines[0]!.text).to.match(/^ *id +opened \(UTC\) +app/)
    expect(shown).to.match(/^ *\d+ +\d{4}-\d\d-\d\d \d\d:\d\d /m)
    for (const part of ['₫99,000', '[LIVE]', '[TEST]']) expect(shown).to.include(part)
    expect(coloursOf(lines, 'completed')).to.include(GREEN)
    expect(coloursOf(lines, 'pending')).to.include(YELLOW).and.include(RED)
    expect(coloursOf(lines, 'underpaid')).to.deep.equal([RED])
    // From which width on there is room depends on how long the ids are.
    const narrow = (await screenOf(['transaction', 'list'], 78)).map(({ text }) => text).join('\n')
    expect(narrow)
      .to.match(/No room for: .*plan/)
      .and.not.include('premium')
    const wide = (await screenOf(['transaction', 'list'], 110)).map(({ text }) => text).join('\n')
    expect(wide).to.include('premium').and.not.include('No room')
  })

  it('show a subscription without an end as lifetime, and a free trial as free', async () => {
    const reader = String(made.reader.app.id)
    expect(await cli.table(['subscription', 'list', reader])).to.match(/user-2 .* lifetime/)
    expect(await cli.table(['subscription', 'show', reader, 'user-2'])).to.match(/current_period_end +lifetime/)
    expect(await cli.table(['plan', 'show', reader, made.plan])).to.match(/₫990,000 +1 year +free for 7 days/)
  })

  it('show a row of an app on one line at 80 columns, amounts by their ends and the method in its own column', async () => {
    const app = await anApp(ctx, { name: 'Small' })
    const own = await aPlan(ctx, app, { prices: [MONTHLY, LIFETIME] })
    await aSubscription(ctx, app, own, { external_ref: 'user-1' })
    await aSubscription(ctx, app, own, { external_ref: 'user-2', price_id: priceId(own, 1) })
    for (const list of ['transaction list', 'payment list']) {
      const [banner, , head, , ...rows] = (await screenOf([...list.split(' '), '--app', String(app.app.id)]))
        .map(({ text }) => text)
        .filter((text, row) => row < 2 || text !== '')
      expect(banner).to.match(/^\[TEST\] Small \(app \d+\)$/)
      expect(head)
        .to.match(/ method +amount /)
        .and.not.match(/ app /)
      expect(rows, rows.join('\n')).to.have.length(2)
      const amounts = rows.map((row) => / test +(₫[\d,]+) /.exec(row)!)
      expect(amounts.map(([, amount]) => amount)).to.deep.equal(['₫2,900,000', '₫99,000'])
      const ends = amounts.map(({ index, 0: { length } }) => index + length)
      expect(new Set([...ends, head!.indexOf('amount') + 'amount '.length])).to.have.property('size', 1)
    }
  })

  it('show payments as a table at 80 columns where ids are long, as after the restore of a backup', async () => {
    for (const table of [apps, payments, transactions]) await giveNextId(testDatabase().db, table, 10_000_000)
    try {
      const app = await anApp(ctx)
      await aSubscription(ctx, app, await aPlan(ctx, app))
      for (const list of ['transaction list', 'payment list']) {
        const text = await cli.table(list.split(' '))
        expect(text)
          .to.match(/^ +id +\w+ \(UTC\) +app /)
          .and.match(new RegExp(`^\\d{8}  .*  \\[TEST\\] ${app.app.id}  .* ₫99,000  `, 'm'))
        expect(text).to.match(/No room for: \w+, method\. A wider terminal or --json shows all\./)
      }
    } finally {
      for (const table of [apps, payments, transactions]) await clearTable(testDatabase().db, table)
    }
  })

  it('narrow transactions and payments to days, first and last included, and to a method', async () => {
    await ctx.db.update(transactions, { id: made.flagged }, { createdAt: parseAppTime('2026-10-27 23:59:59')! })
    const receivedAt = asRealTime(parseTimestamp('2026-10-28 23:59:59')!)
    await ctx.db.update(payments, { provider: 'test' }, { receivedAt })
    const idsOf = async (words: string): Promise<number[]> =>
      ((await cli.json(words.split(' '))) as Partial<Record<'transaction_id' | 'payment_id', number>>[]).map(
        (row) => row.transaction_id ?? row.payment_id!,
      )
    expect(await idsOf('transaction list --until 2026-10-27')).to.deep.equal([made.flagged])
    expect(await idsOf('transaction list --since 27/10/2026 --until 27/10/2026')).to.deep.equal([made.flagged])
    expect(await idsOf('transaction list --since 2026-10-28')).to.not.include(made.flagged)
    expect(await idsOf('transaction list --method bank_transfer')).to.deep.equal([made.flagged])
    const all = await idsOf('payment list')
    const tests = await idsOf('payment list --method test')
    expect(tests).to.have.length(3)
    expect(await idsOf('payment list --since 2026-10-28 --until 28/10/2026')).to.deep.equal(tests)
    expect(await idsOf('payment list --since 2026-10-29')).to.have.length(all.length - 3)
    expect(await idsOf('payment list --method card')).to.deep.equal([])
    for (const list of ['transaction', 'payment'])
      await cli.expectErrors(
        [2, [list, 'list', '--method', 'cash'], 'bank_transfer'],
        [2, [list, 'list', '--since', '31/02/2026'], '--since must be a day'],
        [2, [list, 'list', '--until', 'today'], '--until must be a day'],
      )
  })

  it('show prices with their interval', async () => {
    const reader = String(made.reader.app.id)
    expect(await cli.table(['plan', 'list', reader])).to.match(
      /₫99,000\/month, ₫990,000\/year,\s+₫2,900,000\s+lifetime/,
    )
    expect(await cli.table(['subscription', 'list', reader]))
      .to.match(/user-1 .*₫99,000\/month/)
      .and.match(/user-2 .*₫2,900,000 /)
  })

  it('say below the table that there is more', async () => {
    const lines = (await screenOf(['transaction', 'list', '--limit', '2'])).map(({ text }) => text)
    const note = lines.findIndex((text) => text.startsWith('Showing 2; see more with'))
    expect(note).to.be.greaterThan(lines.findIndex((text) => text.startsWith('─')))
  })

  it('take a terminal of 0 columns for one of 80', async () => {
    for (const words of [['transaction', 'list'], ['payment', 'list'], ['transaction', 'list', '--help'], ['doctor']]) {
      const [of0, of80] = await Promise.all([0, 80].map((columns) => onSimulatedTerminal(cli.env, words, [], columns)))
      // Other programs use the disk, too.
      const [text0, text80] = [of0, of80].map((screen) => screen!.text.replace(/[\d.]+ GB free, \d+ %/, ''))
      expect(text0, words.join(' ')).to.equal(text80)
    }
  })

  it('show the results of doctor in their colours, and leave no line of progress behind', async () => {
    const lines = await screenOf(['doctor'])
    expect(coloursOf(lines, 'PASS')).to.include(GREEN)
    expect(coloursOf(lines, 'WARN')).to.include(YELLOW)
    expect(coloursOf(lines, 'FAIL')).to.include(RED)
    expect(lines[0]!.text).to.match(/^check +state +result/)
  })

  it('name the app of every row in JSON, and whether it is a sandbox', async () => {
    const ofAll = ['transaction list', 'payment list', 'bank-mail list', 'reminders plan --days 40', 'audit list']
    const unconfirmed = ['reminders unconfirmed', 'receipts unconfirmed']
    const ofOne = ['webhook', 'plan', 'customer', 'subscription', 'method'].map(
      (word) => `${word} list ${made.reader.app.id}`,
    )
    for (const list of [...ofAll, ...unconfirmed, ...ofOne]) {
      const rows = (await cli.json(list.split(' '))) as { app_id: number | null; sandbox: boolean | null }[]
      expect(rows, list).not.to.have.length(0)
      for (const { app_id: appId, sandbox } of rows)
        expect(sandbox, `${list}: app ${appId}`).to.equal(appId === null ? null : appId !== made.shop.app.id)
    }
  })

  it('say on the screen of each thing of an app that it is a sandbox', async () => {
    const reader = made.reader.app.id
    const [event] = await cli.json(['webhook', 'list', String(reader)])
    const payments = await cli.json(['payment', 'list'])
    const payment = payments.find((row) => row.app_id === reader)
    for (const thing of [
      `webhook show ${event!.id}`,
      `payment show ${payment!.payment_id}`,
      `transaction show ${made.flagged}`,
      `subscription show ${reader} user-1`,
    ])
      expect(await cli.table(thing.split(' ')), thing).to.match(
        new RegExp(`^\\[TEST\\] Reader \\(app ${reader}\\)\n\n`),
      )
  })

  it('continue where they ended: standard error has the cursor, for scripts too', async () => {
    const lists = ['transaction list', 'payment list', 'bank-mail list', 'audit list']
    const reader = made.reader.app.id
    for (const list of [...lists, `webhook list ${reader}`, `subscription list ${reader}`]) {
      const words = list.split(' ')
      const all = (await cli.json(words)) as object[]
      const first = await cli.run([...words, '--limit', '1', '--json'])
      const cursor = /^Showing 1; see more with --cursor (\S+), or with a higher --limit\.\n$/.exec(first.stderr)?.[1]
      expect(cursor, first.stderr).to.be.a('string')
      const rest = (await cli.json([...words, '--cursor', cursor!])) as object[]
      expect([...(JSON.parse(first.stdout) as object[]), ...rest], list).to.deep.equal(all)
    }
    expect(await cli.refused(['transaction', 'list', '--cursor', 'x'])).to.include('--cursor: is not a cursor')
  })

  it('page through subscriptions, also those that end together or in the year 9999, and lifetime ones', async () => {
    const app = await anApp(ctx)
    const own = await aPlan(ctx, app, { prices: [MONTHLY, LIFETIME] })
    for (const ref of ['c', 'a', 'b', 'f', 'g']) await aSubscription(ctx, app, own, { external_ref: ref })
    for (const ref of ['e', 'd']) await aSubscription(ctx, app, own, { external_ref: ref, price_id: priceId(own, 1) })
    const together = { currentPeriodEnd: parseAppTime('2099-01-01 00:00:00')! }
    await ctx.db.update(subscriptions, { externalRef: ['a', 'b', 'c'] }, together)
    const latest = { currentPeriodEnd: parseAppTime('9999-12-31 23:59:59')! }
    await ctx.db.update(subscriptions, { externalRef: ['f', 'g'] }, latest)
    for (const [options, expected] of [
      [[], 'c a b f g e d'],
      [['--status', 'active'], 'c a b f g e d'],
      [['--status', 'expired'], ''],
      [['--expiring-within', '36500d'], 'c a b'],
    ] as const) {
      const words = ['subscription', 'list', String(app.app.id), '--limit', '1', ...options]
      const refs: string[] = []
      for (let cursor: string[] | null = []; cursor !== null;) {
        const { stdout, stderr } = await cli.run([...words, ...cursor, '--json'])
        const rows = JSON.parse(stdout) as Shown<'subscription', 'list'>
        refs.push(...rows.map((row) => row.external_ref))
        const next = /--cursor (\S+),/.exec(stderr)?.[1]
        cursor = next === undefined ? null : ['--cursor', next]
      }
      expect(refs.join(' '), options.join(' ')).to.equal(expected)
    }
  })

  it('show timestamps whole at every width', async () => {
    const lists = leavesOf(await createProgram()).filter(({ path }) => path.at(-1) === 'list')
    for (const { path, command } of lists) {
      const words = command.registeredArguments.length === 0 ? path : [...path, String(made.reader.app.id)]
      for (const columns of [60, 70, 80, 100, 120]) {
        const { code, text } = await onSimulatedTerminal(cli.env, words, [], columns)
        expect(code, text).to.equal(0)
        expectWholeTimestamps(text)
      }
    }
  })

  for (const columns of [60, 80, 120, 200]) {
    it(`fit a terminal of ${columns} columns without a broken identifier`, async () => {
      const reader = String(made.reader.app.id)
      const marked = `[TEST] ${reader}`
      const lists: { words: string[]; whole: string[]; codes?: string[] }[] = [
        { words: ['app', 'list'], whole: [made.reader.app.apiKey] },
        { words: ['transaction', 'list'], whole: ['underpaid', marked, 'user-1'], codes: ['bank_transfer'] },
        { words: ['payment', 'list'], whole: ['unmatched', marked], codes: columns < 80 ? [] : ['bank_transfer'] },
        { words: ['bank-mail', 'list'], whole: ['money'], codes: ['no_transfer_code'] },
        { words: ['webhook', 'list', reader], whole: ['evt_'], codes: ['subscription.updated'] },
        {
          words: ['reminders', 'plan', '--days', '40'],
          // The address is the column that a narrow terminal leaves out.
          whole: ['user-1', 'unconfirmed', marked, ...(columns < 80 ? [] : ['an@example.com'])],
        },
        { words: ['audit', 'list'], whole: ['server'], codes: ['customer.create'] },
        { words: ['subscription', 'list', reader], whole: ['user-1'] },
      ]
      for (const { words, whole, codes = [] } of lists) {
        const { raw } = await onSimulatedTerminal(cli.env, words, [], columns)
        const lines = await shownOn(columns, raw.replaceAll('\n', '\r\n'))
        const shown = lines.map(({ text }) => text).join('\n')
        const parts = codes.flatMap((code) => (columns <= 80 ? code.split(/(?<=[_.])/) : [code]))
        for (const identifier of [...whole, ...parts]) expect(shown, words.join(' ')).to.include(identifier)
        // The terminal would wrap a line that is too long into two.
        expect(
          lines.filter(({ text }) => text !== ''),
          words.join(' '),
        ).to.have.length(raw.split('\n').filter((line) => line !== '').length)
        expect(shown).not.to.match(/\d+m /)
      }
    })
  }
})
