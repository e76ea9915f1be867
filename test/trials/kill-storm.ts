import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type Connection } from 'mysql2/promise'
import { operator } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import { isDatabaseBusy } from '#db/database-error.ts'
import { movePayment } from '#decisions/move-payment.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { AppError } from '#shared/errors.ts'
import { endSubscription } from '#subscriptions/end-subscription.ts'
import { openLossyDatabase, type Fate } from '../db/lossy-server.ts'
import type { Response } from '../support/api.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { testDatabase } from '../support/database.ts'
import { FREE_TRIAL, MONTHLY, reportPayment, YEARLY } from '../support/factories.ts'
import { mapConcurrently } from '../support/map-concurrently.ts'
import { startScenario, type PayableCheckout, type Scenario } from '../support/scenario.ts'
import { seededRandom } from '../support/seeded-random.ts'

export interface KillStormOptions {
  /** Each end user goes through every command once. */
  readonly endUsers: number
  readonly seed: number
  /** Share of the commands that begin or end a transaction which the relay refuses, or whose answer it loses. */
  readonly sessionFaults: number
}

const POOL_SIZE = 8
const END_USERS_AT_ONCE = 8
const MOST_REPETITIONS = 30
const LONGEST_PAUSE_MS = 6
const FATES: readonly Fate[] = ['killed', 'run, answered as killed', 'answer lost', 'lost']
const SESSION_COMMANDS = new Set(['START TRANSACTION', 'COMMIT', 'ROLLBACK'])
const LINH = operator('linh')

/** What a unit of work is about, what it adds when it is done, and how many rows there are of that. */
interface Unit {
  readonly name: string
  readonly run: () => Promise<'done' | 'failed'>
  /** A SELECT of one row of counts. */
  readonly count: string
  readonly params: readonly unknown[]
  /** What a complete run adds to each count; all zero for a rehearsal. */
  readonly adds: readonly number[]
}

/**
 * Runs every kind of command while statements and connections are killed at random, and while a relay refuses commands that begin or end
 * a transaction or loses their answers. After each unit of work the rows are compared with its answer: done is all of it, once; failed
 * is all of it or nothing. Throws at the first that is otherwise, and if the ledger has a discrepancy at the end.
 */
export async function killStorm({ endUsers, seed, sessionFaults }: KillStormOptions) {
  const { socketPath, name } = testDatabase()
  const scenario = await startScenario()
  const { line, db, close } = await openLossyDatabase({ poolSize: POOL_SIZE })
  const admin = await createConnection({ socketPath, user: 'root', database: name })
  const random = seededRandom(seed)
  const storm = { isOver: false, queries: 0, connections: 0, faults: 0 }
  /** A unit that is answered as failed is repeated. */
  const figures = { units: 0, answeredFailed: 0 }
  try {
    const prices = await scenario.plan('shared', MONTHLY, YEARLY)
    const trial = await scenario.plan('trial', { ...MONTHLY, trial: FREE_TRIAL })
    Object.assign(scenario.service.ctx, { db })
    line.fateOf = (statement) => {
      if (!SESSION_COMMANDS.has(statement) || random() >= sessionFaults) return 'pass'
      storm.faults += 1
      return FATES[Math.floor(random() * FATES.length)] ?? 'pass'
    }
    const killing = kill(storm, admin, line.threadIds, random)
    killing.catch(() => undefined)
    const numbers = Array.from({ length: endUsers }, (_, number) => number)
    await mapConcurrently(
      numbers,
      async (number) => {
        for (const unit of unitsOf(scenario, number, prices.prices, trial.prices)) {
          figures.answeredFailed += await runWhole(unit, number)
          figures.units += 1
        }
      },
      END_USERS_AT_ONCE,
    )
    storm.isOver = true
    await killing
    Object.assign(scenario.service.ctx, { db: testDatabase().db })
    await requireCleanLedger(scenario.service.ctx, 'after the storm')
    const retries = scenario.service.ctx.counted.filter(({ metric }) => metric === 'transaction_retries_total').length
    const { queries: killedQueries, connections: killedConnections, faults } = storm
    return { seed, ...figures, killedQueries, killedConnections, sessionFaults: faults, retries }
  } finally {
    storm.isOver = true
    Object.assign(scenario.service.ctx, { db: testDatabase().db })
    line.fateOf = () => 'pass'
    await close()
    await admin.end()
    await scenario.service.stop()
  }
}

interface Storm {
  isOver: boolean
  queries: number
  connections: number
}

/** Kills a random statement or connection of the relay every few milliseconds. */
async function kill(
  storm: Storm,
  admin: Connection,
  threadIds: ReadonlySet<number>,
  random: () => number,
): Promise<void> {
  while (!storm.isOver) {
    const threads = [...threadIds]
    const victim = threads[Math.floor(random() * threads.length)]
    const isQuery = random() < 0.8
    if (victim !== undefined) {
      // It may have ended meanwhile.
      await admin.query(`KILL ${isQuery ? 'QUERY' : 'CONNECTION'} ${victim}`).catch(() => undefined)
      storm[isQuery ? 'queries' : 'connections'] += 1
    }
    await delay(random() * LONGEST_PAUSE_MS)
  }
}

/** Runs the unit, again while it fails, as its caller would; returns how often it failed. */
async function runWhole({ name, run, count, params, adds }: Unit, number: number): Promise<number> {
  const counted = async (): Promise<number[]> => {
    const [row] = await testDatabase().db.query<Record<string, number>[]>(count, [...params])
    return Object.values(row ?? {}).map(Number)
  }
  const before = await counted()
  const whole = before.map((found, index) => found + (adds[index] ?? 0))
  for (let failed = 0; failed < MOST_REPETITIONS; failed += 1) {
    const answer = await run()
    const after = await counted()
    const isWhole = after.join() === whole.join()
    if (answer === 'done' ? isWhole : isWhole || after.join() === before.join()) {
      if (isWhole) return failed
      continue
    }
    // Tells rows that are missing from rows that were not seen.
    const again = await counted()
    throw new Error(
      `${name} of end user ${number} was ${answer} after ${failed} failures: ${before.join()} became ${after.join()}, not ${whole.join()}; read again, ${again.join()}`,
    )
  }
  throw new Error(`${name} of end user ${number} failed ${MOST_REPETITIONS} times`)
}

const COUNT_SUBSCRIPTION = `SELECT COALESCE(SUM(revision), 0) AS revisions,
  (SELECT COUNT(*) FROM payment_applications l JOIN subscriptions x ON x.id = l.subscription_id WHERE x.external_ref = ?) AS line,
  (SELECT COUNT(*) FROM events WHERE external_ref = ? AND event_type = 'subscription.updated') AS updated,
  (SELECT COUNT(*) FROM audit_log a JOIN subscriptions x ON a.subject = CONCAT('subscription ', x.id) WHERE x.external_ref = ?) AS audited
  FROM subscriptions WHERE external_ref = ?`

const COUNT_MONEY = `SELECT COUNT(*) AS payments, COALESCE(SUM(amount_left), 0) AS unbooked,
  (SELECT COALESCE(SUM(a.amount), 0) FROM allocations a WHERE a.transaction_id = ?) AS booked,
  (SELECT amount_received FROM transactions WHERE id = ?) AS received,
  (SELECT COUNT(*) FROM payment_applications WHERE transaction_id = ?) AS applied,
  (SELECT COUNT(*) FROM events WHERE transaction_id = ?) AS events,
  (SELECT status = 'completed' FROM transactions WHERE id = ?) AS completed
  FROM payments WHERE reference IN (?, ?)`

function unitsOf(scenario: Scenario, number: number, prices: readonly string[], trials: readonly string[]): Unit[] {
  const { seller, service, app } = scenario
  const ctx = () => service.ctx
  const [ref, trialRef, code] = [`user-${number}`, `trial-${number}`, `plan-${number}`]
  let transactionId = 0
  let token = ''
  let planId = ''
  let partId = 0
  const subscriptionOf = [ref, ref, ref, ref]
  const urls = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
  const countSessions = `SELECT COUNT(*) AS transactions, (SELECT COUNT(*) FROM checkout_sessions s JOIN transactions x
    ON x.id = s.transaction_id WHERE x.external_ref = ?) AS sessions FROM transactions WHERE external_ref = ?`
  const open = (wanted: string, price: string, take: (data: PayableCheckout) => void) => async () => {
    const body = { external_ref: wanted, mode: 'subscription', price_id: price, ...urls }
    const answer = await seller.post('/api/v1/checkout-sessions', body)
    if (answer.status === 201) take(answer.body.data as PayableCheckout)
    return outcomeOf(answer)
  }
  return [
    {
      name: 'POST /plans',
      run: async () => {
        const answer = await seller.post('/api/v1/plans', { code, name: 'Pro', prices: [MONTHLY, YEARLY] })
        if (answer.status === 201) planId = answer.body.data.id
        return outcomeOf(answer)
      },
      count: `SELECT COUNT(*) AS plans, (SELECT COUNT(*) FROM prices x JOIN plans y ON y.id = x.plan_id WHERE y.code = ?) AS prices,
        (SELECT COUNT(*) FROM audit_log a JOIN plans y ON a.subject = CONCAT('plan ', y.id) WHERE y.code = ?) AS audited
        FROM plans WHERE code = ?`,
      params: [code, code, code],
      adds: [1, 2, 1],
    },
    {
      name: 'PATCH /plans',
      run: async () => outcomeOf(await seller.patch(`/api/v1/plans/${planId}`, { name: `Pro ${number}` })),
      count: `SELECT COUNT(*) AS named, (SELECT COUNT(*) FROM audit_log a JOIN plans y ON a.subject = CONCAT('plan ', y.id)
        WHERE y.code = ? AND a.action = 'plan.update') AS audited FROM plans WHERE code = ? AND name = ?`,
      params: [code, code, `Pro ${number}`],
      adds: [1, 1],
    },
    {
      name: 'POST /customers',
      run: async () =>
        outcomeOf(await seller.post('/api/v1/customers', { name: `An ${number}`, email: `an${number}@example.com` })),
      count: 'SELECT COUNT(*) AS customers FROM customers WHERE email = ?',
      params: [`an${number}@example.com`],
      adds: [1],
    },
    {
      name: 'POST /checkout-sessions with a free trial',
      run: open(trialRef, trials[0] ?? '', () => undefined),
      count: `SELECT COUNT(*) AS subscriptions, (SELECT COUNT(*) FROM trial_grants g JOIN end_users e ON e.id = g.end_user_id
        WHERE e.external_ref = ?) AS grants, (SELECT COUNT(*) FROM events WHERE external_ref = ?) AS events
        FROM subscriptions WHERE external_ref = ?`,
      params: [trialRef, trialRef, trialRef],
      adds: [1, 1, 1],
    },
    {
      name: 'POST /checkout-sessions',
      run: open(ref, prices[0] ?? '', (data) => {
        transactionId = data.transaction_id
        token = data.checkout_url.split('/').at(-1)!
      }),
      count: countSessions,
      params: [ref, ref],
      adds: [1, 1],
    },
    {
      name: 'the click on pay',
      run: async () =>
        outcomeOf(
          await service.call('POST', `/checkout/${token}/resolve`, {
            raw: JSON.stringify({ payment_method: 'test' }),
            headers: { 'Content-Type': 'application/json' },
          }),
        ),
      get count() {
        return COUNT_MONEY
      },
      get params() {
        const of = transactionId
        return [of, of, of, of, of, `test ${of}`, `tx_${of}`]
      },
      adds: [0, 0, 99_000, 99_000, 1, 1, 1],
    },
    {
      name: 'PUT …/plan',
      run: async () => outcomeOf(await seller.put(`/api/v1/subscriptions/${ref}/plan`, { price_id: prices[1] })),
      count: COUNT_SUBSCRIPTION,
      params: subscriptionOf,
      adds: [1, 1, 1, 1],
    },
    {
      name: 'subscription end --dry-run',
      run: () =>
        attempt(() =>
          perform(
            { ...ctx(), rehearsal: { changes: [], events: [] } },
            LINH,
            endSubscription,
            { note: 'a rehearsal' },
            { app: app.app, externalRef: ref },
          ),
        ),
      count: COUNT_SUBSCRIPTION,
      params: subscriptionOf,
      adds: [0, 0, 0, 0],
    },
    {
      name: 'a second checkout',
      run: open(ref, prices[1] ?? '', (data) => (partId = data.transaction_id)),
      count: countSessions,
      params: [ref, ref],
      adds: [1, 1],
    },
    {
      name: 'a transfer of a part',
      run: () => attempt(() => transfer(scenario, partId, `part-${number}`, 90_000)),
      count: COUNT_MONEY,
      get params() {
        return [partId, partId, partId, partId, partId, `part-${number}`, '']
      },
      adds: [1, 0, 90_000, 90_000, 0, 0, 0],
    },
    {
      name: 'transaction resolve --action complete',
      run: () =>
        attempt(() =>
          resolveTransaction(ctx(), LINH, { transactionId: partId, action: 'complete', note: 'near enough' }),
        ),
      count: COUNT_MONEY,
      get params() {
        return [partId, partId, partId, partId, partId, `part-${number}`, '']
      },
      adds: [0, 0, 0, 0, 1, 2, 1],
    },
    {
      name: 'money for a completed transaction',
      run: () => attempt(() => transfer(scenario, transactionId, `twice-${number}`, 99_000)),
      count: COUNT_MONEY,
      get params() {
        const of = transactionId
        return [of, of, of, of, of, `twice-${number}`, '']
      },
      adds: [1, 0, 99_000, 99_000, 0, 0, 0],
    },
    {
      name: 'payment move',
      run: () =>
        attempt(async () => {
          const found = await testDatabase().db.query<{ id: number }[]>('SELECT id FROM payments WHERE reference = ?', [
            `twice-${number}`,
          ])
          return movePayment(ctx(), LINH, { payment_id: found[0]?.id, transaction_id: partId, note: 'meant for it' })
        }),
      count: COUNT_MONEY,
      get params() {
        return [partId, partId, partId, partId, partId, `twice-${number}`, '']
      },
      adds: [0, 0, 99_000, 99_000, 0, 0, 0],
    },
    {
      name: 'subscription end',
      run: () =>
        attempt(() => perform(ctx(), LINH, endSubscription, { note: 'a mistake' }, { app: app.app, externalRef: ref })),
      count: COUNT_SUBSCRIPTION,
      params: subscriptionOf,
      adds: [1, 1, 1, 1],
    },
  ]
}

function transfer({ service }: Scenario, transactionId: number, reference: string, amount: number) {
  return reportPayment(service.ctx, {
    provider: 'bank_transfer',
    eventId: `event ${reference}`,
    reference,
    transactionId,
    amount,
    currency: 'VND',
    paidAt: service.ctx.clock.now(),
  })
}

/** The caller hears that it is done, or that it may try again; anything else is a fault, a refusal above all. */
function outcomeOf({ status, text }: Response): 'done' | 'failed' {
  if (status < 300) return 'done'
  if (status === 503) return 'failed'
  throw new Error(`answered ${status}: ${text}`)
}

async function attempt(run: () => Promise<unknown>): Promise<'done' | 'failed'> {
  try {
    await run()
    return 'done'
  } catch (error) {
    if (!(error instanceof AppError) && isDatabaseBusy(error)) return 'failed'
    throw error
  }
}
