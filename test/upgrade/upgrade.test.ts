import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { MIGRATIONS, pendingMigrations, runMigrations } from '#db/migrate.ts'
import { cutAfterEachChange } from '../db/cut-migrations.ts'
import { openEmptyDatabase, testDatabase, type EmptyDatabase, type TestDb } from '../support/database.ts'
import { deliverDue } from '../support/deliver-due.ts'
import { Receiver } from '../support/receiver.ts'
import { schemaOf } from '../support/schema.ts'
import { loadDump } from './dump.ts'
import { readApp } from './reads.ts'
import { openWorld, type World } from './world.ts'
import type { Summary } from './year.ts'

/** The last migration of the version that made the dump. */
const BEFORE = 17
const NEWER = MIGRATIONS.slice(BEFORE).map(({ name }) => name)

/** A database with the dump in it. */
interface Upgraded extends EmptyDatabase {
  readonly summary: Summary
}

describe('an upgrade of a year of data', () => {
  let upgraded: Upgraded
  let summary: Summary
  let world: World
  let migrated: Record<string, unknown>

  before(async () => {
    upgraded = await load('upgrade')
    summary = upgraded.summary
    world = await openWorld({ now: summary.takenAt, database: upgraded, bank: () => summary.bank })
    world.stripe.sessions.push(summary.open.card.session, summary.refundable.card)
    world.stripe.settle(summary.refundable.card)
    world.payos.links.push(summary.open.payos.link)
  })

  after(async () => {
    await world.stop()
    await upgraded.drop()
  })

  const news = () => summary.apps.news
  const transaction = (id: number | null) => world.api(news(), 'get', `/api/v1/transactions/${id}`)
  const endOf = async (ref: string): Promise<string | null> =>
    (await world.api(news(), 'get', `/api/v1/subscriptions/${ref}`)).current_period_end
  const requireCleanLedger = async (): Promise<void> => {
    const subscriptions = Object.values(summary.apps).reduce((sum, app) => sum + app.subscriptions.length, 0)
    const { checked, faults } = await world.cli('ledger', 'verify')
    expect(faults).to.deep.equal([])
    expect(checked).to.be.at.least(subscriptions)
  }

  it('applies the newer migrations once and leaves a clean ledger', async () => {
    expect(NEWER, 'newer migrations').not.to.deep.equal([])
    expect(await pendingMigrations(upgraded.db)).to.deep.equal(NEWER)
    await world.cli('migrate')
    expect(await pendingMigrations(upgraded.db)).to.deep.equal([])
    await requireCleanLedger()
    migrated = await contentOf(upgraded.db)
    await world.cli('migrate')
    expect(await contentOf(upgraded.db)).to.deep.equal(migrated)
  })

  it('records them all in TypeORM’s table, and leaves no other', async () => {
    const rows = await upgraded.db.query('SELECT * FROM migrations ORDER BY id')
    expect(rows).to.deep.equal(
      MIGRATIONS.map(({ name }, index) => ({ id: index + 1, timestamp: Number(name.slice(-13)), name })),
    )
    expect(await upgraded.db.query("SHOW TABLES LIKE 'schema\\_migrations'")).to.deep.equal([])
  })

  for (const name of ['news', 'school', 'practice', 'phone'] as const) {
    it(`keeps every end date, status, plan and sum of the app ${name}`, async () => {
      const app = summary.apps[name]
      const found = await readApp(world, app)
      expect(found.subscriptions).to.deep.equal(app.subscriptions)
      expect(found.transactions).to.deep.equal(app.transactions)
      expect(found).to.deep.include({ sums: app.sums, flagged: app.flagged, events: app.events })
    })
  }

  it('records the purpose of each payment, and the last plan switch of each subscription in its ledger', async () => {
    const rows = (sql: string) => upgraded.db.query<Record<string, unknown>[]>(sql)
    const wrong = await rows(`
      SELECT t.id, t.purpose, a.kind FROM transactions t
      LEFT JOIN payment_applications a ON a.transaction_id = t.id
      LEFT JOIN checkout_sessions c ON c.transaction_id = t.id
      WHERE (t.mode = 'payment') <> (t.purpose = 'purchase') OR (t.is_trial = 1) <> (t.purpose = 'trial')
         OR (COALESCE(c.origin, '') = 'renewal') <> (t.is_renewal = 1) OR (t.is_renewal = 1 AND t.purpose <> 'extend')
         OR (a.kind = 'started' AND t.purpose NOT IN ('start', 'trial')) OR (a.kind = 'extended' AND t.purpose = 'change')`)
    expect(wrong).to.deep.equal([])
    const purposes = (await rows('SELECT DISTINCT purpose FROM transactions')).map(({ purpose }) => purpose)
    expect(purposes).to.have.members(['start', 'extend', 'change', 'trial', 'purchase'])
    const strayed = await rows(`
      SELECT s.id FROM subscriptions s JOIN payment_applications l ON l.subscription_id = s.id
        AND l.revision = (SELECT MAX(e.revision) FROM payment_applications e WHERE e.subscription_id = s.id)
      WHERE l.plan_id <> s.plan_id OR l.price_id <> s.price_id`)
    expect(strayed).to.deep.equal([])
    expect(await rows(`SELECT id FROM payment_applications WHERE kind = 'switched'`)).to.not.deep.equal([])
  })

  it('counts unapplied money, on flagged transactions and from unmatched mails, and surplus money', async () => {
    const waiting = await world.cli('payment', 'list', '--unallocated')
    const unmatched = waiting.filter(({ reason }) => reason === 'unmatched').map((row) => row.amount_unapplied)
    // A transfer without a code; a text that was not understood; a mail to the address of a disabled account.
    expect(unmatched).to.deep.equal([77_000, null, 99_000])
    const flagged = news().flagged['VND']!
    const stats = await world.cli('stats')
    expect(stats.unapplied).to.deep.equal([{ currency: 'VND', amount: flagged + 77_000 + 99_000 }])
    const onFlagged = waiting.filter(({ reason }) => reason !== 'unmatched')
    expect(onFlagged.reduce((sum, row) => sum + row.amount_unapplied, 0)).to.equal(flagged)
    expect(stats.surplus).to.deep.equal([{ currency: 'VND', amount: 21_000 }])
  })

  it('results in the schema of a new database', async () => {
    expect(await schemaOf(upgraded.db)).to.deep.equal(await schemaOf(testDatabase().db))
  })

  it('can be interrupted after each statement and run again', async () => {
    const cut = await load('cut')
    try {
      const cuts = await migrateWithCuts(cut.db)
      // Each migration writes a record besides its changes.
      expect(cuts).to.be.at.least(NEWER.length)
      expect(await schemaOf(cut.db)).to.deep.equal(await schemaOf(upgraded.db))
      const content = await contentOf(cut.db)
      for (const [table, rows] of Object.entries(migrated)) expect(content[table], table).to.deep.equal(rows)
    } finally {
      await cut.drop()
    }
  })

  it('lets each open payment be paid by its method', async () => {
    const { open, prices, apps } = summary
    await world.settle(open.card.session.url!, 'card')
    await world.settle(`https://pay.payos.vn/web/${open.payos.link.id}`, 'payos')
    expect(await world.transfer(open.bank.transferCode, 99_000)).to.deep.equal({ status: 'processed' })
    expect(await world.transfer(open.underpaid.transferCode, 59_000)).to.deep.equal({ status: 'processed' })
    await world.pay(`/checkout/${open.untouched.token}`, 'card')
    for (const { transactionId } of [open.card, open.payos, open.bank, open.underpaid, open.untouched])
      expect(await transaction(transactionId)).to.include({ status: 'completed', flagged: false })
    for (const name of ['card', 'payos', 'bank', 'underpaid', 'untouched'])
      expect(await endOf(`open-${name}`), name).to.match(/^2026-11-01 05:1/)
    const plus = await world.api(news(), 'get', '/api/v1/subscriptions/open-payos')
    expect(plus).to.include({ price_id: prices.monthlyPlus, status: 'active' })

    await world.pay(`/checkout/${open.test.token}`, 'test')
    const tested = await world.api(apps.practice, 'get', '/api/v1/subscriptions/open-test')
    expect(tested).to.include({ price_id: prices.practiceMonthly, status: 'active' })
    const gone = await world.service.call('GET', `/checkout/${open.expired.token}`)
    expect(gone.status).to.equal(410)
    await requireCleanLedger()
  })

  it('extends from the existing end when an end user renews by the link of an old mail', async () => {
    const before = { anh: '2026-11-04 06:00:00', 'old-2': '2026-05-15 12:00:00', chi: '2026-11-01 06:00:00' }
    for (const [ref, end] of Object.entries(before)) expect(await endOf(ref), ref).to.equal(end)
    await world.pay(await world.renewPath(news(), 'anh'), 'card')
    expect(await endOf('anh')).to.equal('2026-12-04 06:00:00')
    await world.pay(await world.renewPath(news(), 'chi'), 'bank_transfer')
    expect(await endOf('chi')).to.equal('2026-12-01 06:00:00')
    await requireCleanLedger()
  })

  it('refunds old payments: a card payment at Stripe, a transfer manually', async () => {
    const { cardTransaction, transfer } = summary.refundable
    const ends = [await endOf('anh'), await endOf('binh')]
    const refund = (id: number, ...more: string[]) =>
      world.cli('transaction', 'resolve', String(id), '--action', 'refund', '--note', 'asked for', ...more)
    await refund(cardTransaction)
    await refund(transfer, '--reference', 'FT-BACK-9')
    expect(world.stripe.calls.filter(({ path, method }) => path === '/v1/refunds' && method === 'POST')).to.have.length(
      1,
    )
    for (const id of [cardTransaction, transfer])
      expect(await transaction(id)).to.include({ status: 'refunded', flagged: false })
    expect([await endOf('anh'), await endOf('binh')], 'periods stay').to.deep.equal(ends)
    await requireCleanLedger()
  })

  it('books and resolves unapplied money', async () => {
    const { open } = summary
    const [mail, code] = [String(open.unmatchedMail), String(open.expired.transactionId)]
    await world.cli('bank-mail', 'match', mail, code, '--note', 'the payer called')
    expect(await transaction(open.expired.transactionId)).to.include({
      flag_reason: 'underpaid',
      amount_received: 77_000,
    })
    const note = ['--note', 'agreed by phone']
    await world.cli('transaction', 'resolve', code, '--action', 'complete', ...note)
    expect(await endOf('open-expired')).to.match(/^2026-11-01 05:1/)
    const completed = news().transactions.filter(({ flagged, status }) => flagged && status === 'completed')
    expect(completed).to.not.deep.equal([])
    for (const row of completed) {
      const id = String(row['transaction_id'])
      await world.cli('transaction', 'resolve', id, '--action', 'refund', '--reference', `FT-${id}`, ...note)
      expect(await transaction(Number(id)), id).to.include({ flagged: false })
    }
    await requireCleanLedger()
  })

  it('sends the pending events', async () => {
    const receiver = await Receiver.start()
    try {
      const waiting = await world.cli('webhook', 'list', news().id, '--status', 'pending')
      expect(waiting).to.have.length.greaterThan(0)
      await world.cli('app', 'update', news().id, '--webhook-url', receiver.url)
      await deliverDue(world.service.ctx)
      expect(new Set(receiver.received.map(({ eventId }) => eventId))).to.include.keys(
        waiting.map(({ id }: { id: string }) => id),
      )
    } finally {
      await receiver.stop()
    }
  })
})

async function load(suffix: string): Promise<Upgraded> {
  const database = await openEmptyDatabase(suffix)
  return { ...database, summary: await loadDump(database.url, BEFORE) }
}

/**
 * Migrates in as many runs as it takes: each is interrupted after a statement that interrupted no earlier run. Returns the number of
 * interruptions.
 */
async function migrateWithCuts(db: TestDb): Promise<number> {
  const { seen, restore } = cutAfterEachChange()
  try {
    for (;;) {
      const failure = await runMigrations(db).then(() => null, String)
      if (failure === null) return seen.size
      expect(failure).to.include('cut after')
    }
  } finally {
    restore()
  }
}

/** Every row of every table except that of the lease. */
async function contentOf(db: TestDb): Promise<Record<string, unknown>> {
  const tables: { name: string }[] = await db.query(
    `SELECT table_name AS name FROM information_schema.tables
     WHERE table_schema = DATABASE() AND table_name <> 'schema_lease' ORDER BY table_name`,
  )
  const content: Record<string, unknown> = {}
  for (const { name } of tables) content[name] = await db.query(`SELECT * FROM ${name} ORDER BY 1`)
  return content
}
