import { setTimeout as delay } from 'node:timers/promises'
import { createConnection, type Connection } from 'mysql2/promise'
import type { Context } from '#context.ts'
import { openDatabase, type Database } from '#db/connect.ts'
import { isRetryable } from '#db/database-error.ts'
import { randomHex } from '#shared/crypto.ts'
import { systemClock } from '#shared/time.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { presentContext } from '../support/context.ts'
import { query, testDatabase } from '../support/database.ts'
import { aCheckout, anApp, aPlan, priceId, reportPayment } from '../support/factories.ts'
import { mapConcurrently } from '../support/map-concurrently.ts'
import { seededRandom } from '../support/seeded-random.ts'

export interface StormOptions {
  /** Each is reported twice at once; five belong to one end user. */
  readonly payments: number
  /** Connections that lock the same rows in the opposite order. */
  readonly rivals: number
  readonly seed: number
}

interface Storm {
  isOver: boolean
  /** Transactions that are being confirmed. */
  readonly inFlight: number[]
  deadlocks: number
  timeouts: number
  givenUp: number
}

const PER_END_USER = 5
const POOL_SIZE = 8
const CALLS_AT_ONCE = 60
const LOCK_WAIT_SECONDS = 1
/** Occasionally longer than a statement waits for a lock. */
const LONG_HOLD_MS = 1300
const SHORT_HOLD_MS = 5

/**
 * Confirms payments while rivals lock the same rows in the opposite order, on a server that waits one second for a lock. Throws if a
 * call fails with anything but a retryable conflict, if a payment is booked in part, or
 * if the ledger has a discrepancy.
 */
export async function deadlockStorm({ payments, rivals, seed }: StormOptions) {
  const quiet = presentContext()
  const { db, close } = await openDatabase(
    { databaseUrl: testDatabase().url, home: quiet.config.home },
    {
      poolSize: POOL_SIZE,
    },
  )
  const ctx = { ...quiet, db }
  const storm: Storm = { isOver: false, inFlight: [], deadlocks: 0, timeouts: 0, givenUp: 0 }
  try {
    await shortenLockWaits(db)
    const transactionIds = await openPayments(quiet, payments)
    const rivalry = Promise.all(
      Array.from({ length: rivals }, (_, number) => rival(storm, number, seededRandom(seed + number + 1))),
    )
    rivalry.catch(() => undefined)
    const calls = transactionIds.flatMap((id) => [id, id])
    await mapConcurrently(calls, (id) => confirmUntilTaken(ctx, id, storm), CALLS_AT_ONCE)
    storm.isOver = true
    await rivalry
    await checkWhole(quiet, payments)
    const retries = quiet.counted.filter(({ metric }) => metric === 'transaction_retries_total').length
    const { givenUp, deadlocks, timeouts } = storm
    return { seed, payments, retries, givenUp, deadlocksOfRivals: deadlocks, timeoutsOfRivals: timeouts }
  } finally {
    storm.isOver = true
    await close()
  }
}

async function shortenLockWaits({ pool }: Database): Promise<void> {
  const connections = await Promise.all(Array.from({ length: POOL_SIZE }, () => pool.take()))
  for (const connection of connections) {
    await connection.command(`SET SESSION innodb_lock_wait_timeout = ${LOCK_WAIT_SECONDS}`)
    pool.release(connection)
  }
}

async function openPayments(ctx: Context, payments: number): Promise<number[]> {
  const app = await anApp(ctx)
  const price = priceId(await aPlan(ctx, app))
  const ids: number[] = []
  for (let number = 0; number < payments; number += 1) {
    const ref = `user-${Math.floor(number / PER_END_USER)}`
    ids.push((await aCheckout(ctx, app, { external_ref: ref, price_id: price })).transaction_id!)
  }
  return ids
}

async function confirmUntilTaken(ctx: Context, transactionId: number, storm: Storm): Promise<void> {
  storm.inFlight.push(transactionId)
  while (!(await confirm(ctx, transactionId))) storm.givenUp += 1
  storm.inFlight.splice(storm.inFlight.indexOf(transactionId), 1)
}

/** False if it failed with a conflict: a provider repeats the notification. */
async function confirm(ctx: Context, transactionId: number): Promise<boolean> {
  try {
    const { kind } = await reportPayment(ctx, {
      provider: 'payos',
      eventId: `event-${transactionId}`,
      reference: `money-${transactionId}`,
      transactionId,
      amount: 99_000,
      currency: 'VND',
      paidAt: ctx.clock.now(),
    })
    if (kind !== 'processed' && kind !== 'duplicate') throw new Error(`the payment was ${kind}`)
    return true
  } catch (error) {
    if (isRetryable(error)) return false
    throw error
  }
}

/**
 * Locks the transaction before its end user, the opposite of the service's order; occasionally for long. There are never more rivals
 * than payments: all of them on the last one would leave its end to chance.
 */
async function rival(storm: Storm, number: number, random: () => number): Promise<void> {
  const { socketPath, name } = testDatabase()
  const connection = await createConnection({ socketPath, user: 'root', database: name })
  try {
    await connection.query(`SET SESSION innodb_lock_wait_timeout = ${LOCK_WAIT_SECONDS}`)
    while (!storm.isOver) {
      await delay(random() * SHORT_HOLD_MS)
      // The transactions that the service is confirming: the first of the pool.
      const id = storm.inFlight[Math.floor(random() * Math.min(POOL_SIZE, storm.inFlight.length))]
      if (id === undefined || number >= storm.inFlight.length) continue
      try {
        await lockBackwards(connection, id, random() < 0.02 ? LONG_HOLD_MS : SHORT_HOLD_MS, random() < 0.5)
      } catch (error) {
        const { errno } = error as { errno?: number }
        if (errno === 1213) storm.deadlocks += 1
        else if (errno === 1205) storm.timeouts += 1
        else throw error
      }
      await connection.query('ROLLBACK')
    }
  } finally {
    await connection.end()
  }
}

async function lockBackwards(
  connection: Connection,
  transactionId: number,
  holdMs: number,
  isHeavy: boolean,
): Promise<void> {
  await connection.query('START TRANSACTION')
  // The server aborts the transaction that wrote less: half of the time this makes it the service's.
  if (isHeavy)
    await connection.query(
      'INSERT INTO provider_events (provider, event_id, event_type, outcome, received_at) VALUES ?',
      [heavyRows()],
    )
  await connection.query('SELECT id FROM transactions WHERE id = ? FOR UPDATE', [transactionId])
  await delay(holdMs)
  await connection.query(
    'UPDATE end_users u JOIN transactions t ON t.end_user_id = u.id SET u.version = u.version + 1 WHERE t.id = ?',
    [transactionId],
  )
  await delay(holdMs)
}

function heavyRows(): unknown[][] {
  return Array.from({ length: 60 }, () => ['rival', randomHex(16), 'weight', 'noted', systemClock.now()])
}

/** Each payment has all of its rows, once. */
async function checkWhole(ctx: Context, payments: number): Promise<void> {
  const [row]: Record<string, string>[] = await query(
    ctx.db,
    `SELECT (SELECT COUNT(*) FROM transactions WHERE status = 'completed' AND flag_reason IS NULL) AS completed,
       (SELECT COUNT(*) FROM provider_events) AS events_heard,
       (SELECT COUNT(*) FROM payments) AS payments,
       (SELECT COUNT(*) FROM payment_applications) AS effects,
       (SELECT COUNT(*) FROM events WHERE event_type = 'subscription.updated') AS updates,
       (SELECT SUM(revision) FROM subscriptions) AS revisions`,
  )
  const wrong = Object.entries(row!).filter(([, count]) => Number(count) !== payments)
  if (wrong.length > 0) throw new Error(`of ${payments} payments there are ${JSON.stringify(row)}`)
  await requireCleanLedger(ctx, 'after the storm')
}
