import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { inTransaction } from '#commands/transaction.ts'
import { API_ROUTES } from '#daemon/app.ts'
import { databasePresent } from '#db/database-now.ts'
import { hasDueMails } from '#mails/has-due-mails.ts'
import { UNTRIED } from '#mail/mail-columns.ts'
import { listDueReceipts } from '#mails/receipts/store.ts'
import { listDueRefunds, refunds } from '#payments/store.ts'
import { promotions } from '#promotions/store.ts'
import { hasDueLookups } from '#providers/engine/reconcile-payments.ts'
import { listDueSessions, providerSessions } from '#providers/store.ts'
import { listAbandoned, queueRealtimeWrite } from '#realtime/store.ts'
import { hasRunOut } from '#renewals/expire-due.ts'
import { listRunOut } from '#renewals/store.ts'
import { DAY_MS, HOUR_MS, addMs, asAppTime, formatTimestamp } from '#shared/time.ts'
import { hasAbandonedWrites } from '#subscriptions/finish-pending-writes.ts'
import { listTransactions } from '#transactions/list-transactions.ts'
import { receipts } from '#transactions/receipts/store.ts'
import { deleteOldRows } from '#upkeep/delete-old-rows.ts'
import { claimDue, listAppsWithPending, listDue } from '#webhooks/claims/store.ts'
import { copyRow } from '../support/copies.ts'
import { aCustomer, aPromotion, MONTHLY, tokenOf } from '../support/factories.ts'
import { startScenario, type PayableCheckout, type Scenario } from '../support/scenario.ts'
import { measureStatements, type Measured, type Measuring } from './measured.ts'

const ROWS = 20_000
/** A year after the scenario begins. */
const A_YEAR_LATER = '2027-03-01 10:00:00'
/** A list that asks for one row more than its page has. */
const PAGE = 101

describe('no statement reads more rows than it returns and a page, where there are 20,000', () => {
  let scenario: Scenario
  let measuring: Measuring | undefined
  let plan: string
  let price: string
  let promotion: string
  let customer: string
  let opened: PayableCheckout
  const tooMany: string[] = []

  /** Copies the newest row. */
  const copy = (table: string, changes: Readonly<Record<string, string>>, key?: string): Promise<void> =>
    copyRow(scenario.service.ctx.db, table, ROWS, changes, key)

  beforeEach(async () => {
    scenario = await startScenario()
    const { service, app } = scenario
    const sold = await scenario.plan('pro', MONTHLY)
    plan = sold.id
    price = sold.prices[0]!
    customer = `cus_${(await aCustomer(service.ctx, app)).id}`
    promotion = `promo_${(await aPromotion(service.ctx, app, { max_uses: 100_000, on_page: true, valid_until: A_YEAR_LATER })).id}`
    const body = { price_id: price, customer_id: customer, promotion_code: 'TET' }
    opened = await scenario.checkout(body)
    await scenario.pay(opened)
  })
  afterEach(async () => {
    await measuring?.close()
    await scenario.service.stop()
  })

  async function begin(): Promise<void> {
    measuring = await measureStatements(scenario.service.ctx)
    tooMany.length = 0
  }

  /** Runs the work; notes its statements that read too much. */
  async function check<T>(what: string, work: () => Promise<T>): Promise<T> {
    measuring?.take()
    const result = await work()
    for (const statement of measuring?.take() ?? []) if (readsTooMuch(statement)) tooMany.push(lineOf(what, statement))
    return result
  }

  it('whatever call of the API runs it', async () => {
    const { service, seller } = scenario
    await copy('customers', {
      email: `CONCAT('c', seq, '@example.com')`,
      merchant_customer_id: `CONCAT('m', seq)`,
      created_at: 'created_at - INTERVAL seq SECOND',
    })
    await copy('promotion_uses', {
      end_user_id: 'end_user_id + seq',
      once_for: 'once_for + seq',
      transaction_id: '1000000 + seq',
    })
    await copy('promotions', {
      code: `CONCAT('P', seq)`,
      created_at: 'created_at - INTERVAL seq SECOND',
    })
    await copy('subscriptions', {
      end_user_id: 'end_user_id + seq',
      external_ref: `CONCAT('copy-', seq)`,
      renewal_token: `SHA2(seq, 256)`,
      created_at: 'created_at - INTERVAL seq SECOND',
    })
    await copy('end_users', { external_ref: `CONCAT('copy-', seq)` })
    await copy('transactions', {
      end_user_id: 'end_user_id + seq',
      external_ref: `CONCAT('copy-', seq)`,
      transfer_code: `CONCAT('T', seq)`,
      created_at: 'created_at - INTERVAL seq SECOND',
    })
    await copy('events', { external_ref: `CONCAT('copy-', seq)`, created_at: 'created_at - INTERVAL seq SECOND' })
    await begin()
    const event: string = (await seller.get('/api/v1/events')).body.data[0]!.id
    const reads = readsOf(plan, promotion, customer, opened.transaction_id, event)
    const called: string[] = []
    for (const path of reads) {
      const { status, body } = await check(`GET ${path}`, () => seller.get(path))
      expect(status, path).to.equal(200)
      if (body.next_cursor) {
        const next = `${path}${path.includes('?') ? '&' : '?'}cursor=${body.next_cursor}`
        called.push(next)
        await check(`GET ${next}`, () => seller.get(next))
      }
    }
    expect(readsIn([...reads, ...called])).to.include.members(readsOfRoutes())
    for (const external_ref of ['user-1', 'copy-7', 'new']) {
      const body = { price_id: price, customer_id: customer, external_ref }
      const checkout = await check('POST /checkout-sessions', () => scenario.checkout(body))
      await check('the payment', () => scenario.pay(checkout))
    }
    await check('with a promotion', () =>
      scenario.checkout({ price_id: price, external_ref: 'other', promotion_code: 'TET' }),
    )
    const page = `/checkout/${tokenOf(await scenario.checkout({ price_id: price, external_ref: 'payer' }))}`
    const askForCode = check('a page with codes to type', () => service.call('GET', page))
    expect((await askForCode).text).to.include('promotion_code')
    await service.ctx.db.update(
      promotions,
      { appId: scenario.app.app.id },
      { validUntil: asAppTime(service.ctx.clock.now()) },
    )
    const hideCode = check('a page whose codes are over', () => service.call('GET', page))
    expect((await hideCode).text).not.to.include('promotion_code')
    const yearly = (await scenario.plan('yearly', MONTHLY)).prices[0]!
    await check('PUT plan', () => seller.put('/api/v1/subscriptions/user-1/plan', { price_id: yearly }))
    await check('PUT customer', () => seller.put('/api/v1/subscriptions/user-1/customer', { customer_id: customer }))
    await check('PATCH customer', () => seller.patch(`/api/v1/customers/${customer}`, { name: 'An' }))
    await check('POST customer', () => seller.post('/api/v1/customers', { name: 'An', email: 'an@example.com' }))
    await check('/readyz', () => service.call('GET', '/readyz'))
    const first = await check('transactions of all apps', () => listTransactions(service.ctx, null, {}))
    await check('and those that are flagged', () => listTransactions(service.ctx, null, { flagged: 'true' }))
    await check('and the next', () => listTransactions(service.ctx, null, { cursor: first.nextCursor }))
    if (tooMany.length > 0) throw new Error(tooMany.join('\n'))
  })

  it('whatever queue runs it, with nothing due and with everything', async () => {
    const { service, app } = scenario
    const { ctx } = service
    const now = ctx.clock.now()
    const later = addMs(now, HOUR_MS)
    const appId = app.app.id
    const transactionId = opened.transaction_id
    await inTransaction(ctx, async (tx) => {
      const session = {
        appId,
        transactionId,
        provider: 'payos',
        providerAccountId: 1,
        url: null,
        amount: 1,
        currency: 'VND',
      }
      const times = { expiresAt: addMs(now, DAY_MS), nextLookupAt: later, createdAt: now, updatedAt: now }
      await tx.insert(providerSessions, {
        ...session,
        ...times,
        reference: '0',
        status: 'open',
        lookups: 1,
        failures: 0,
      })
      const refund = { appId, paymentId: 1, amount: 1, status: 'pending', reference: '0', failure: null } as const
      const decided = { amountUsed: 0, flagReason: null, actor: null, note: null, attempts: 0, endedAt: null }
      await tx.insert(refunds, { ...refund, ...decided, nextLookupAt: later, createdAt: now })
      const receipt = {
        appId,
        transactionId,
        kind: 'received',
        amount: 1,
        total: 1,
        status: 'due',
      } as const
      await tx.insert(receipts, { ...UNTRIED, ...receipt, retryAt: now, createdAt: now })
      await queueRealtimeWrite(tx, { appId, subscriptionId: 1, revision: 1 })
    })
    // Every second one is done, the others are due in an hour.
    const done = (status: string, column: string): string => `IF(seq % 2, '${status}', ${column})`
    await copy('events', {
      delivery_status: `IF(seq % 2, 'delivered', 'pending')`,
      next_attempt_at: `IF(seq % 2, NULL, '${formatTimestamp(later)}')`,
    })
    await copy('provider_sessions', { reference: 'seq', status: done('paid', 'status'), transaction_id: '1000 + seq' })
    await copy('transactions', { id: '1000 + seq', transfer_code: `CONCAT('T', seq)`, status: `'pending'` })
    await copy('refunds', { reference: 'seq', status: done('succeeded', 'status') })
    await copy('receipts', {
      transaction_id: '1000 + seq',
      status: done('sent', 'status'),
      next_try_at: `'${formatTimestamp(later)}'`,
    })
    await copy('realtime_writes', { subscription_id: '1000 + seq', state: done('done', 'state') }, 'subscription_id')
    await copy('subscriptions', {
      end_user_id: 'end_user_id + seq',
      external_ref: `CONCAT('copy-', seq)`,
      renewal_token: `SHA2(seq, 256)`,
      status: done('expired', 'status'),
      current_period_end: `IF(seq % 2, '2025-01-01', '${formatTimestamp(later)}')`,
    })
    await begin()
    await check('are webhooks due', () => listAppsWithPending(ctx.db, databasePresent(ctx)))
    await check('webhooks', () => listDue(ctx.db, [appId], 50, databasePresent(ctx)))
    await check('are mails due', () => hasDueMails(ctx))
    await check('has anything run out', () => hasRunOut(ctx))
    await check('are look-ups due', () => hasDueLookups(ctx))
    await check('are writes abandoned', () => hasAbandonedWrites(ctx))
    ctx.clock.advance('2h')
    const due = ctx.clock.now()
    const first = { dueAt: due, appId: null, afterId: 0, after: null, limit: 100 }
    await check('are webhooks due', () => listAppsWithPending(ctx.db, databasePresent(ctx)))
    const events = await check('webhooks', () => listDue(ctx.db, [appId], 50, databasePresent(ctx)))
    await check('webhooks', () => claimDue(ctx.db, events, { token: 1, ms: 1000 }, databasePresent(ctx)))
    await check('are mails due', () => hasDueMails(ctx))
    await check('receipts', () => listDueReceipts(ctx.db, 'due', due, null, 100))
    await check('has anything run out', () => hasRunOut(ctx))
    await check('expiry', () => listRunOut(ctx.db, 'apps in real time', asAppTime(due), null, 50))
    await check('are look-ups due', () => hasDueLookups(ctx))
    await check('look-ups', () => listDueSessions(ctx.db, first))
    await check('refunds', () => listDueRefunds(ctx.db, first))
    await check('are writes abandoned', () => hasAbandonedWrites(ctx))
    await check('realtime', () => listAbandoned(ctx.db, due, 100))
    await check('old rows', () => deleteOldRows(ctx))
    if (tooMany.length > 0) throw new Error(tooMany.join('\n'))
  })
})

/** Statements that read more, and what they read. */
const EXCEPT = [
  // The uses of a promotion are counted in its index.
  { text: 'FROM promotion_uses', most: ROWS + PAGE },
  // A session whose payment was made in another way is found among the open ones, with their payments.
  { text: 'FROM provider_sessions s', most: ROWS },
  // A mail that is due is found among the periods that end in the days of its stage. Of each it reads the index entry, the reminder and,
  // if none was sent, the row, which says here that the period is too short for the stage.
  { text: 'LEFT JOIN reminders', most: (3 * ROWS) / 2 },
]

/** Each table of a join may be read once for each row that is returned. */
function readsTooMuch({ sql, read, found }: Measured): boolean {
  const tables = sql.match(/\b(FROM|JOIN|UPDATE|INTO)\b/g)?.length ?? 1
  const more = EXCEPT.find(({ text }) => sql.includes(text))?.most ?? 0
  return read > found * tables + more + PAGE
}

function lineOf(what: string, { sql, read, found }: Measured): string {
  return `${what}: ${read} rows read, ${found} found: ${sql}`
}

/** Each call that reads, each filter by itself, also where it finds nothing. */
function readsOf(planId: string, promotionId: string, customerId: string, transactionId: number, eventId: string) {
  return [
    '/plans',
    '/plans?status=archived',
    `/plans/${planId}`,
    '/promotions',
    '/promotions?limit=100',
    `/promotions/${promotionId}`,
    '/customers',
    '/customers?limit=100',
    '/customers?email=c7@example.com',
    '/customers?email=nobody@example.com',
    '/customers?merchant_customer_id=m7',
    '/customers?merchant_customer_id=nobody',
    `/customers/${customerId}`,
    '/subscriptions',
    '/subscriptions?limit=100',
    '/subscriptions?status=active',
    '/subscriptions?status=expired',
    '/subscriptions?plan=pro',
    '/subscriptions?plan=none',
    '/subscriptions?ends_after=2036-01-01+00:00:00',
    '/subscriptions?ends_before=2020-01-01+00:00:00',
    '/subscriptions/user-1',
    '/transactions',
    '/transactions?limit=100',
    '/transactions?external_ref=copy-7',
    '/transactions?external_ref=nobody',
    '/transactions?status=completed',
    '/transactions?status=pending',
    '/transactions?status=void',
    '/transactions?flagged=true',
    '/transactions?flagged=false',
    '/transactions?status=refunded&flagged=false',
    '/transactions?external_ref=copy-7&status=pending&flagged=true',
    `/transactions/${transactionId}`,
    '/events',
    '/events?limit=100&order=asc',
    '/events?order=desc',
    '/events?event_type=transaction.completed',
    '/events?event_type=subscription.expired',
    '/events?external_ref=copy-7',
    '/events?external_ref=copy-7&event_type=subscription.expired',
    '/events?created_after=2036-01-01+00:00:00&order=asc',
    `/events/${eventId}`,
    '/test-clock',
  ].map((path) => `/api/v1${path}`)
}

/** The calls that read, and their parameters: `/api/v1/customers limit`. */
function readsOfRoutes(): string[] {
  return API_ROUTES.filter(({ method }) => method === 'GET').flatMap(({ path, words }) => [
    path,
    ...Object.keys(words.filter?.shape ?? {}).map((name) => `${path} ${name}`),
  ])
}

function readsIn(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const url = new URL(path, 'http://localhost')
    const route = API_ROUTES.find(
      (candidate) =>
        candidate.method === 'GET' && new RegExp(`^${candidate.path.replace(/:\w+/g, '[^/]+')}$`).test(url.pathname),
    )
    return route ? [route.path, ...[...url.searchParams.keys()].map((name) => `${route.path} ${name}`)] : []
  })
}
