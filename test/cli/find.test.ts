import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { appNow } from '#apps/app-time.ts'
import type { Context } from '#context.ts'
import type { Param, Queries } from '#db/queries.ts'
import { bankMails } from '#bank-mail/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { desktopOpener } from '#config/environment.ts'
import { customers } from '#customers/store.ts'
import { checkoutSessions } from '#checkout/store.ts'
import { allocations } from '#payments/store.ts'
import { assignTransferCode } from '#providers/bank-transfer/store.ts'
import { newTransferCode } from '#providers/bank-transfer/transfer-code.ts'
import { transferTextOf } from '#providers/payos/order.ts'
import { insertProviderSession } from '#providers/store.ts'
import { reminders } from '#mails/reminders/store.ts'
import { UNTRIED } from '#mail/mail-columns.ts'
import { DAY_MS, addMs, asRealTime, formatDay } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { find } from '#support/find.ts'
import { MAX_PER_KIND } from '#support/store.ts'
import { insertProviderEvent, transactions } from '#transactions/store.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { realTimeContext } from '../support/context.ts'
import { clearTable, testDatabase } from '../support/database.ts'
import { aCheckout, aCustomer, aPlan, priceId, transferred } from '../support/factories.ts'
import { addBankAccount } from '../support/operators.ts'
import { explain } from '../support/query-plans.ts'
import { shownOn } from '../support/screen.ts'
import { aBankMail, aBusyService, type BusyService } from './states.ts'
import { itRunsEveryForm } from './forms.ts'
import { openCli, type Cli } from './run-cli.ts'
import type { Shown } from './shown.ts'
import { onSimulatedTerminal } from './simulated-terminal.ts'

describe('find and open', () => {
  let ctx: Context
  let cli: Cli
  let made: BusyService
  let app: string
  /** When what is found was made; the test may run on past midnight. */
  let today: string

  beforeEach(async () => {
    // The program's clock is the machine's.
    ctx = realTimeContext()
    cli = openCli()
    made = await aBusyService(ctx)
    app = String(made.reader.app.id)
    today = formatDay((await ctx.db.one(transactions, 'WHERE id = ?', [made.flagged]))!.createdAt)
  })

  const namesOf = async (text: string, ...options: string[]): Promise<string[]> =>
    (await cli.json(['find', text, '--app', app, ...options])).matches.map(
      ({ kind, id, external_ref: ref }) => `${kind} ${kind === 'end user' ? ref : id}`,
    )

  it('finds an e-mail address, an end user, an id or a link, as it was copied', async () => {
    const flagged = (await ctx.db.one(transactions, 'WHERE id = ?', [made.flagged]))!
    const session = (await ctx.db.one(checkoutSessions, 'WHERE transaction_id = ?', [flagged.id]))!
    const subscription = (await ctx.db.one(subscriptions, "WHERE app_id = ? AND external_ref = 'user-1'", [app]))!
    const customer = `customer cus_${subscription.customerId}`
    expect(await namesOf('an@example.com')).to.deep.equal([customer])
    expect(await namesOf(' AN@example.com ')).to.deep.equal([customer])
    expect(await namesOf('user-1')).to.deep.equal(['end user user-1'])
    expect(await namesOf(`cus_${subscription.customerId}`)).to.deep.equal([customer])
    expect(await namesOf(made.plan)).to.deep.equal([`plan ${made.plan}`])
    expect(await namesOf(`price_${subscription.priceId}`)).to.deep.equal([`price price_${subscription.priceId}`])
    expect(await namesOf(`cs_${session.id}`)).to.deep.equal([`checkout cs_${session.id}`])
    expect(await namesOf(String(flagged.id))).to.include(`transaction ${flagged.id}`)
    expect(await namesOf(made.reader.apiKey)).to.deep.equal([`app ${app}`])
    expect(await namesOf(`https://pay.example.com/checkout/${session.token}/bank?lang=vi`)).to.deep.equal([
      `checkout cs_${session.id}`,
    ])
    expect(await namesOf(`http://x/renew/${subscription.renewalToken}`)).to.deep.equal(['end user user-1'])
    expect(await namesOf(subscription.renewalToken)).to.deep.equal(['end user user-1'])
    const [event] = await cli.json(['webhook', 'list', app])
    expect(await namesOf(event!.id)).to.deep.equal([`event ${event!.id}`])
    expect(await namesOf('nobody@example.com')).to.deep.equal([])
    expect(await cli.table(['find', 'nobody'])).to.include('Nothing found.')
  })

  it('finds a customer by any part of the name, without regard to case and diacritics', async () => {
    const lan = await aCustomer(ctx, made.reader, { name: 'Nguyễn Thị Lan', email: 'lan@example.com' })
    const duc = await aCustomer(ctx, made.reader, { name: 'Đặng Văn Đức'.normalize('NFD'), email: 'duc@example.com' })
    const other = await aCustomer(ctx, made.shop, { name: 'Nguyen Thi Lan', email: 'lan@example.org' })
    for (const text of ['nguyen thi', 'NGUYỄN THỊ', 'LAN', 'thị lan', 'lan nguyễn', 'guyễn Th'])
      expect(await namesOf(text), text).to.deep.equal([`customer cus_${lan.id}`])
    for (const text of ['dang', 'đặng', 'ĐỨC', 'duc'])
      expect(await namesOf(text), text).to.deep.equal([`customer cus_${duc.id}`])
    for (const text of ['lan%', '_an', 'nguyen x', 'n']) expect(await namesOf(text), text).to.deep.equal([])
    const { matches } = await cli.json(['find', 'thi lan'])
    expect(matches.map(({ id }) => id)).to.deep.equal([`cus_${other.id}`, `cus_${lan.id}`])
  })

  it('shows a match on one line of 80 columns, without the columns that no match fills', async () => {
    // With an id of eight digits, the command takes a second line.
    await clearTable(testDatabase().db, customers)
    const lan = await aCustomer(ctx, made.reader, { name: 'Nguyễn Thị Lan', email: 'lan@example.com' })
    const [head = '', , row = ''] = (await cli.table(['find', 'lan@example.com'])).split('\n')
    expect(head.split(/ {2,}/)).to.deep.equal(['what', 'id', 'app', 'at (UTC)', 'more'])
    expect(row).to.include(`customer show ${made.reader.app.id} cus_${lan.id}`)
  })

  it('finds an e-mail address in any case, as it was given and as it is searched', async () => {
    const { id } = await aCustomer(ctx, made.reader, { email: 'Lan.Pham@Example.com' })
    for (const text of ['Lan.Pham@Example.com', 'lan.pham@example.com', 'LAN.PHAM@EXAMPLE.COM'])
      expect(await namesOf(text), text).to.deep.equal([`customer cus_${id}`])
    expect(await namesOf('an.pham@example.com')).to.deep.equal([])
  })

  it('leads from an e-mail address or a name to the end user of an open or paid transaction, before any subscription', async () => {
    const lan = await aCustomer(ctx, made.shop, { name: 'Nguyễn Thị Lan', email: 'lan@example.com' })
    const plan = await aPlan(ctx, made.shop)
    const open = { external_ref: 'user-lan', price_id: priceId(plan), customer_id: `cus_${lan.id}` }
    const { transaction_id: transaction } = await aCheckout(ctx, made.shop, open)
    for (const text of ['lan@example.com', 'nguyen thi lan', `cus_${lan.id}`]) {
      const { end_users: people } = await cli.json(['find', text])
      expect(
        people.map((person) => person.external_ref),
        text,
      ).to.deep.equal(['user-lan'])
      expect(people[0]!.transactions[0]).to.include({ transaction_id: transaction, status: 'pending' })
    }
    await ctx.db.update(transactions, { id: transaction! }, { status: 'void' })
    expect((await cli.json(['find', 'lan@example.com'])).end_users).to.deep.equal([])
    await ctx.db.update(transactions, { id: transaction! }, { status: 'completed' })
    expect((await cli.json(['find', 'lan@example.com'])).end_users).to.have.length(1)
  })

  it('finds an end user and an address that look like a link or a Message-ID of ours', async () => {
    const hashed = 'ab'.repeat(32)
    await aCheckout(ctx, made.reader, { price_id: priceId(await aPlan(ctx, made.reader)), external_ref: hashed })
    expect(await namesOf(hashed)).to.deep.equal([`end user ${hashed}`])
    await aCustomer(ctx, made.reader, { email: 'receipt.99999@company.example' })
    expect(await namesOf('receipt.99999@company.example')).to.have.length(1)
  })

  it('says the type of an event', async () => {
    const [event] = await cli.json(['webhook', 'list', app])
    const { value, text } = await cli.both(['find', event!.id])
    expect(value.matches[0]).to.include({ kind: 'event', event_type: event!.event_type })
    expect(text).to.include(event!.event_type).and.include(event!.id)
  })

  it('says that an amount needs its day, unless something else has this name', async () => {
    for (const text of ['99.000', '99k', '99.000đ', '$14.99'])
      expect(await cli.refused(['find', text]), text).to.include('--on')
    const { code, stderr, stdout } = await cli.run(['find', '98765', '--json'])
    expect([code, (JSON.parse(stdout) as Shown<'find'>).matches]).to.deep.equal([0, []])
    expect(stderr).to.include('--on')
    await aCheckout(ctx, made.shop, { external_ref: '99k', price_id: priceId(await aPlan(ctx, made.shop)) })
    expect((await cli.json(['find', '99k'])).matches[0]).to.include({ kind: 'end user', external_ref: '99k' })
  })

  it('offers the whole command to match unmatched money to the payment that waits for its amount', async () => {
    const waiting = (await ctx.db.one(transactions, 'WHERE transfer_code IS NOT NULL AND app_id = ?', [
      made.shop.app.id,
    ]))!
    const [mail] = await cli.json(['bank-mail', 'list', '--unmatched'])
    const command = `billing-cli bank-mail match ${mail!.id} ${waiting.id} --note "…"`
    const date = mail!.received_at.slice(0, 10)
    const day = new Date(date).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })
    const what = `₫99,000 of ${day} fits transaction ${waiting.id} (user-1, pending)`
    const person = await cli.json(['find', 'user-1', '--app', String(made.shop.app.id)])
    expect(person.end_users[0]!.next_steps[0]).to.deep.equal({ what, command })
    for (const words of [
      ['99.000', '--on', date],
      ['99,000', '--on', date],
      ['99k', '--on', date],
    ])
      expect(await cli.table(['find', ...words, '--app', String(made.shop.app.id)])).to.include(`  ${command}\n`)
    const reference = (await ctx.db.one(bankMails, 'WHERE id = ?', [mail!.id]))!.bankReference!
    expect((await cli.json(['find', reference])).next_steps).to.deep.equal([{ what, command }])
    const list = (await cli.table(['bank-mail', 'list', '--unmatched'])).replaceAll('\n', ' ')
    expect(list).to.include(`${what}: bank-mail match ${mail!.id} ${waiting.id} --note "…"`)
    await ctx.db.update(transactions, { id: waiting.id }, { amount: 98_000 })
    const [step] = (await cli.json(['find', 'user-1', '--app', String(made.shop.app.id)])).end_users[0]!.next_steps
    expect(step!.command).to.equal('billing-cli bank-mail list --unmatched')
    expect((await cli.table(['bank-mail', 'list', '--unmatched'])).replaceAll('\n', ' ')).to.include(
      `₫99,000 of ${day} may be for transaction ${waiting.id} (user-1, ₫98,000 due)`,
    )
  })

  it('finds a transfer code, a reference of a bank or a provider, and an event of a provider', async () => {
    const now = ctx.clock.now()
    await inTransaction(ctx, async (tx) => {
      await assignTransferCode(tx, made.flagged, 'PQRSTVWX')
      const common = { appId: made.reader.app.id, transactionId: made.flagged, receivedAt: now, note: null }
      const event = { provider: 'stripe', eventId: 'evt_1Px', eventType: 'checkout.session.completed' }
      await insertProviderEvent(tx, { ...event, ...common, outcome: 'applied' })
      const times = { expiresAt: now, createdAt: now, updatedAt: now, nextLookupAt: null }
      await insertProviderSession(tx, {
        ...{ appId: made.reader.app.id, transactionId: made.flagged, provider: 'stripe', reference: 'cs_test_a1B2' },
        ...{
          providerAccountId: 1,
          amount: 99_000,
          currency: 'VND',
          url: null,
          status: 'open',
          failures: 0,
          lookups: 0,
        },
        ...times,
      })
    })
    const transaction = `transaction ${made.flagged}`
    expect(await namesOf('pqrs tvwx')).to.deep.equal([transaction])
    expect(await namesOf('evt_1Px')).to.deep.equal([transaction])
    expect(await namesOf('cs_test_a1B2')).to.deep.equal([transaction])
    const payment = (await ctx.db.one(allocations, 'WHERE transaction_id = ?', [made.flagged]))!.paymentId
    expect(await namesOf('FT1')).to.include(`payment ${payment}`)
    const mail = await aBankMail(ctx, { bank: 'ACB', bankReference: 'FT26X', amount: 5000, review: 'credit' })
    const { matches } = await cli.json(['find', 'FT26X'])
    expect(matches.map(({ kind }) => kind)).to.deep.equal(['payment', 'bank mail'])
    expect(matches[1]).to.include({ id: String(mail), amount: 5000, currency: 'VND', app_id: null, sandbox: null })
  })

  it('finds a payment through PayOS by the note of its transfer, also after the gap of a restored backup', async () => {
    expect(await namesOf(`CK ${transferTextOf(made.flagged)} tien sach`)).to.deep.equal([`transaction ${made.flagged}`])
    const id = 10_000_000 + made.flagged
    await ctx.db.update(transactions, { id: made.flagged }, { id })
    expect(await namesOf(transferTextOf(id))).to.deep.equal([`transaction ${id}`])
    // MySQL would go on from this id, in the next files, too.
    await clearTable(testDatabase().db, transactions)
  })

  it('finds the transfer codes that a code with one typo may mean, and says that they are no more than near', async () => {
    const code = newTransferCode()
    await inTransaction(ctx, (tx) => assignTransferCode(tx, made.flagged, code))
    const transaction = `transaction ${made.flagged}`
    expect(await namesOf(`CK ${code.slice(0, 4)} ${code.slice(4)} tien sach`)).to.deep.equal([transaction])
    const typos = [
      `${code.slice(0, 5)}0${code.slice(6)}`,
      code.slice(0, -1),
      code.toLowerCase().slice(0, 6) + '1' + code.slice(7),
    ]
    for (const typo of typos) {
      const { code: exit, stdout, stderr } = await cli.run(['find', typo, '--app', app, '--json'])
      const { matches } = JSON.parse(stdout) as Shown<'find'>
      expect([exit, matches.map(({ id }) => id)], typo).to.deep.equal([0, [String(made.flagged)]])
      expect(stderr).to.equal('No transaction has this code. It may be a typo for:\n')
    }
    expect((await cli.run(['find', code, '--json'])).stderr).to.equal('')
  })

  it('finds the money that came to a bank account of ours at about the time of a receipt in Vietnam', async () => {
    const { id } = await addBankAccount(ctx, 'linh', { bank: 'ACB', number: '257678859', holder: 'NGUYEN VAN A' })
    const receivedAt = asRealTime(new Date('2026-10-28T07:07:00Z'))
    const mail = await aBankMail(ctx, { bank: 'ACB', bankAccountId: id, receivedAt, amount: 51_000, review: 'credit' })
    const mails = async (text: string, on: string) => {
      const { matches } = await cli.json(['find', text, '--on', on])
      return matches.flatMap(({ kind, id: one }) => (kind === 'bank mail' ? [Number(one)] : []))
    }
    for (const text of ['257678859', '257 678 859', 'xxxx8859', '***8859'])
      for (const on of ['28/10/2026', '28/10/2026 14:05', '2026-10-28 14:05:31'])
        expect(await mails(text, on), `${text} ${on}`).to.deep.equal([mail])
    expect(await mails('257678859', '28/10/2026 09:05')).to.deep.equal([])
    expect(await mails('51k', '28/10/2026 14:05')).to.deep.equal([mail])
    expect(await mails('51k', '28/10/2026 09:05')).to.deep.equal([])
    await cli.expectErrors([1, ['find', '51k', '--on', '28/10/2026 25:00'], 'must be a day'])
  })

  it('finds the reference of a bank as it is typed from a receipt', async () => {
    const mail = await aBankMail(ctx, { bank: 'ACB', bankReference: 'FT26301X', amount: 5000, review: 'credit' })
    for (const typed of ['FT26301X', 'ft26301x', 'FT26 301X'])
      expect(
        (await cli.json(['find', typed])).matches.map(({ id }) => id),
        typed,
      ).to.include(String(mail))
  })

  it('finds an amount on the day of a statement, in any notation', async () => {
    const [year, month, day] = today.split('-')
    for (const written of ['90000', '90.000 đ', '₫90,000', '90k', '90.000', '90,000']) {
      const found = await namesOf(written, '--on', today)
      expect(found, written).to.have.length(1)
      expect(found[0]).to.match(/^payment /)
    }
    expect(await namesOf('90k', '--on', `${Number(day)}/${Number(month)}/${year}`)).to.have.length(1)
    expect(await namesOf('$900', '--on', today)).to.deep.equal([])
    expect(await namesOf('2,900,000', '--on', today)).to.have.length(2)
    expect(await namesOf('90000', '--on', '2020-01-01')).to.deep.equal([])
    await cli.expectErrors(
      [1, ['find', '90000', '--on', 'yesterday'], 'error: --on: must be a day'],
      [1, ['find', 'much', '--on', today], 'error: <text>: must be an amount'],
      [2, ['find'], '<text>'],
      [1, ['find', 'x', '--app', '9999999'], 'billing-cli app list'],
    )
  })

  it('finds the matches of one app behind a full result of other apps, and says when it left some out', async () => {
    const plan = await aPlan(ctx, made.shop)
    for (let opened = 0; opened <= MAX_PER_KIND; opened += 1)
      await aCheckout(ctx, made.shop, { external_ref: 'user-3', price_id: priceId(plan) })
    expect(await namesOf('99,000', '--on', today)).to.include(`transaction ${made.flagged}`)
    const { code, stderr } = await cli.run(['find', '99,000', '--on', today, '--json'])
    expect([code, stderr]).to.deep.equal([
      0,
      'Only the newest 20 of a kind are shown: narrow the search, or give --app.\n',
    ])
    expect((await cli.run(['find', 'user-3', '--json'])).stderr).to.equal('')
  })

  it('searches by indexes only', async () => {
    const searched: [sql: string, params: readonly Param[]][] = []
    const all: Queries['all'] = (source, text, params = []) => {
      searched.push([source.statement(text), params])
      return ctx.db.all(source, text, params)
    }
    const recorded = { ...ctx, db: { ...ctx.db, all } }
    const words = ['user-1', 'nguyen', '17', 'cus_1', 'receipt.1@a.example', 'reminder.1.2.3@a.example', '0'.repeat(64)]
    for (const word of words) await find(recorded, word)
    await find(recorded, 'an@example.com', { appId: Number(app) })
    await find(recorded, 'PG7KD4MXQT')
    await find(recorded, '99,000', { on: formatDay(ctx.clock.now()) })
    expect(searched.length).to.be.greaterThan(30)
    let tablesRead = 0
    for (const [sql, params] of searched) {
      const plan = await explain(testDatabase().db, sql, params)
      // There are few apps and bank accounts, so a search may read all of them.
      const small = ['apps', 'bank_accounts', 'bank_account_assignments']
      const read = plan.filter(({ table }) => table !== null && !small.includes(table) && !table.startsWith('<'))
      for (const { table, possible_keys: keys } of read) expect(keys, `${table}: ${sql}`).not.to.equal(null)
      tablesRead += read.length
    }
    expect(tablesRead).to.be.greaterThan(30)
  })

  it('finds a mail by its Message-ID, as the mail server logs it, and shows it on the screen of its end user', async () => {
    const subscription = (await ctx.db.one(subscriptions, "WHERE app_id = ? AND external_ref = 'user-1'", [app]))!
    const row = { appId: Number(app), transactionId: made.flagged, kind: 'part', amount: 1, total: 1 } as const
    const times = { retryAt: ctx.clock.now(), createdAt: ctx.clock.now() }
    const receipt = await ctx.db.insert(receipts, { ...UNTRIED, ...row, ...times, status: 'sent' })
    const [person] = (await cli.json(['find', `receipt.${receipt}@pay.example`])).end_users
    expect(person!.receipts).to.have.length(1)
    expect(person!.receipts[0]).to.include({
      receipt_id: receipt,
      transaction_id: made.flagged,
      kind: 'part',
      status: 'sent',
    })
    expect(await namesOf(`<receipt.${receipt}@pay.example>`)).to.deep.equal([`transaction ${made.flagged}`])
    expect(await namesOf(`reminder.${subscription.id}.1774952400.3@pay.example`)).to.deep.equal(['end user user-1'])
  })

  it('shows one screen about the end user: subscription, customer, payments, mails and next steps', async () => {
    const { value, text } = await cli.both(['find', 'user-1', '--app', app])
    const [person] = value.end_users
    expect(person!.subscription).to.include({ status: 'active', plan_ref: 'premium' })
    expect(person!.subscription!.price).to.deep.equal({
      ...{ amount: 99_000, currency: 'VND' },
      ...{ interval_unit: 'month', interval_count: 1 },
    })
    expect(person!.customer).to.include({ email: 'an@example.com' })
    expect(person!.transactions.map((row) => row.flag_reason)).to.deep.equal(['underpaid', null])
    expect(person!.renewal_link).to.match(/\/renew\/[0-9a-f]{64}$/)
    expect(person!.next_steps.map(({ command }) => command)).to.deep.equal([
      `billing-cli transaction resolve ${made.flagged}`,
      `billing-cli open ${made.flagged}`,
      `billing-cli webhook retry ${person!.events.last_failed}`,
    ])
    for (const part of ['[TEST] Reader', 'premium', '₫99,000/month', 'An Nguyen', 'underpaid', 'renewal link:'])
      expect(text).to.include(part)
    expect(text).to.include(`  billing-cli transaction resolve ${made.flagged}\n`)
    const stranger = await cli.json(['find', 'user-3', '--app', app])
    expect(stranger.end_users[0]!.subscription).to.equal(null)
    expect(stranger.end_users[0]!.next_steps[0]!.what).to.match(/may still be paid$/)
    const lifetime = await cli.table(['find', 'user-2', '--app', app])
    expect(lifetime)
      .to.match(/ends +lifetime/)
      .and.include('next step: nothing to do')
  })

  it('offers the renewal link from when its page asks for the next period, three days before the end', async () => {
    const { reader: shop } = made
    const offers = async (days: number): Promise<boolean> => {
      const end = addMs(appNow(shop.app, ctx.clock.now()), days * DAY_MS)
      const period = { periodStart: addMs(end, -30 * DAY_MS), currentPeriodEnd: end }
      await ctx.db.update(subscriptions, { appId: shop.app.id, externalRef: 'user-1' }, period)
      const [person] = (await cli.json(['find', 'user-1', '--app', app])).end_users
      return person!.next_steps.some(({ what }) => what.includes('give the renewal link'))
    }
    expect([await offers(4), await offers(2), await offers(-1)]).to.deep.equal([false, true, true])
  })

  it('shows which mails were refused, and that the customer stopped reminders', async () => {
    const subscription = (await ctx.db.one(subscriptions, "WHERE app_id = ? AND external_ref = 'user-1'", [app]))!
    const now = ctx.clock.now()
    const mail = { appId: Number(app), subscriptionId: subscription.id, periodEnd: subscription.currentPeriodEnd! }
    await ctx.db.insert(reminders, {
      ...{ ...UNTRIED, ...mail, stage: 3, status: 'refused', claimedAt: now, failures: 1 },
      ...{ lastError: '550 no such user', refusedTo: 'an@example.com' },
    })
    await cli.json(['subscription', 'reminders', app, 'user-1', 'off'])
    const { value, text } = await cli.both(['find', 'an@example.com', '--app', app])
    const [person] = value.end_users
    expect(person!.mails[0]).to.include({ reminder_day: 3, status: 'refused', error: '550 no such user' })
    expect(person!.reminders_stopped_at).to.match(/^20/)
    const commands = person!.next_steps.map(({ command }) => command)
    expect(commands).to.include.members([
      'billing-cli reminders refused',
      `billing-cli subscription reminders ${app} user-1 on`,
    ])
    expect(text)
      .to.match(/3 days before/)
      .and.include('the mail server refuses an@example.com')
  })

  for (const columns of [60, 80, 120, 200]) {
    it(`fits a terminal of ${columns} columns, links aside`, async () => {
      const { raw, code } = await onSimulatedTerminal(cli.env, ['find', 'user-1', '--app', app], [], columns)
      expect(code, raw).to.equal(0)
      const shown = (await shownOn(columns, raw.replaceAll('\n', '\r\n'))).map(({ text }) => text)
      const method = columns < 80 ? ['bank_', 'transfer'] : ['bank_transfer']
      for (const word of [...method, 'underpaid', 'an@example.com']) expect(shown.join('\n'), word).to.include(word)
      expect(raw).to.match(/\/renew\/[0-9a-f]{64}\n/)
    })
  }

  it('opens the page of a checkout, of an end user and of the API, and refuses what has none or several', async () => {
    const session = (await ctx.db.one(checkoutSessions, 'WHERE transaction_id = ?', [made.flagged]))!
    const { value, text } = await cli.both(['open', `cs_${session.id}`])
    expect(value.url).to.match(new RegExp(`/checkout/${session.token}$`))
    expect(text).to.equal(`${value.url}\n`)
    expect((await cli.json(['open', String(made.flagged), '--app', app])).url).to.equal(value.url)
    const renewal = await cli.json(['open', 'user-1', '--app', app])
    expect(renewal).to.include({ page: `renewal of user-1 (app ${app})` })
    expect((await cli.json(['open', 'an@example.com', '--app', app])).url).to.equal(renewal.url)
    expect((await cli.json(['open', 'api'])).url).to.match(/\/docs$/)
    await cli.expectErrors(
      [1, ['open', 'user-2', '--app', app], 'has no page'],
      [1, ['open', 'user-1'], 'several pages'],
      [2, ['open'], '<thing>'],
    )
  })

  it('names the address of each page that a number may mean: the checkout of a transaction and the renewal of an end user', async () => {
    const plan = await aPlan(ctx, made.reader)
    const number = String(made.flagged)
    const choice = { external_ref: number, price_id: priceId(plan) }
    const { transaction_id: id } = await aCheckout(ctx, made.reader, choice)
    await transferred(ctx, id!, 99_000)
    const { renewalToken } = (await ctx.db.one(subscriptions, 'WHERE external_ref = ?', [number]))!
    const { token } = (await ctx.db.one(checkoutSessions, 'WHERE transaction_id = ?', [made.flagged]))!
    const refused = await cli.refused(['open', number, '--app', app])
    expect(refused).to.match(new RegExp(`checkout of transaction ${number} \\S+/checkout/${token},`))
    expect(refused).to.match(new RegExp(`renewal of ${number} \\(app ${app}\\) \\S+/renew/${renewalToken}`))
  })

  it('opens nothing over SSH or without a desktop', () => {
    expect(desktopOpener({}, 'linux')).to.equal(null)
    expect(desktopOpener({ DISPLAY: ':0' }, 'linux')).to.equal('xdg-open')
    expect(desktopOpener({ DISPLAY: ':0', SSH_CONNECTION: '10.0.0.1' }, 'linux')).to.equal(null)
    expect(desktopOpener({}, 'darwin')).to.equal('open')
  })

  itRunsEveryForm('find.test.ts')
})
