import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { int } from '#db/columns.ts'
import { shape } from '#db/table.ts'
import { onEntry, poolUse } from '#http/entry-queue.ts'
import { testDatabase } from '../support/database.ts'
import { takeConnections, type HeldConnection } from '../support/held-connections.ts'
import { until } from '../support/until.ts'

const ONE = shape({ one: int() })
const LATE = new Error('late')
const KNOWN = { standing: 'known', patienceMs: 60_000, late: () => LATE } as const
const STRANGER = { ...KNOWN, standing: 'stranger' } as const
const NOTIFIER = { ...KNOWN, standing: 'notifier' } as const

describe('the queue of requests for their first connection', () => {
  let held: HeldConnection[] = []

  afterEach(() => {
    for (const connection of held.splice(0)) connection.release()
  })

  const pool = () => testDatabase().db.pool
  const waiting = () => poolUse(testDatabase().db.pool).waiting
  const holdAll = async (): Promise<void> => void (held = await takeConnections(testDatabase().db))

  it('serves requests that have begun first', async () => {
    const order: string[] = []
    await holdAll()
    const newcomers = ['first', 'second'].map((name) =>
      onEntry(pool(), KNOWN, async (db) => {
        order.push(name)
        await db.one(ONE, 'SELECT 1 AS one')
      }),
    )
    const begun = testDatabase()
      .db.query('SELECT 1')
      .then(() => order.push('begun'))
    held.pop()!.release()
    await Promise.all([begun, ...newcomers])
    expect(order).to.deep.equal(['begun', 'first', 'second'])
  })

  it('serves known callers and strangers in the order of their requests', async () => {
    const order: string[] = []
    await holdAll()
    const asked = [STRANGER, KNOWN, STRANGER, KNOWN].map((request, index) =>
      onEntry(pool(), request, async (db) => {
        order.push(`${index} ${request.standing}`)
        await db.one(ONE, 'SELECT 1 AS one')
      }),
    )
    held.pop()!.release()
    await Promise.all(asked)
    expect(order).to.deep.equal(['0 stranger', '1 known', '2 stranger', '3 known'])
  })

  it('serves notifiers first, one at a time and within the share of strangers', async () => {
    const order: string[] = []
    await holdAll()
    const asked = [KNOWN, STRANGER, NOTIFIER, NOTIFIER].map((request, index) =>
      onEntry(pool(), request, async (db) => {
        order.push(`${index} begins`)
        await db.one(ONE, 'SELECT 1 AS one')
        order.push(`${index} ends`)
      }),
    )
    for (const connection of held.splice(0)) connection.release()
    await Promise.all(asked)
    expect(order.indexOf('2 begins')).to.equal(0)
    expect(order.indexOf('3 begins')).to.be.greaterThan(order.indexOf('2 ends'))
    expect(order.indexOf('1 begins')).to.be.lessThan(order.indexOf('3 begins'))
  })

  it('gives strangers at most two of six connections, while known callers overtake them', async () => {
    let inside = 0
    let most = 0
    const open = Promise.withResolvers<null>()
    const strangers = Array.from({ length: 50 }, () =>
      onEntry(pool(), STRANGER, async (db) => {
        inside += 1
        most = Math.max(most, inside)
        await open.promise
        await db.one(ONE, 'SELECT 1 AS one')
        inside -= 1
      }),
    )
    const known = Array.from({ length: 50 }, () => onEntry(pool(), KNOWN, (db) => db.one(ONE, 'SELECT 1 AS one')))
    expect(await Promise.all(known)).to.have.length(50)
    expect(inside).to.equal(2)
    expect(waiting()).to.equal(48)
    open.resolve(null)
    await Promise.all(strangers)
    expect(most).to.equal(2)
  })

  it('does nothing for a request that timed out, not even later', async () => {
    await holdAll()
    let reads = 0
    const late = onEntry(pool(), { ...KNOWN, patienceMs: 100 }, () => Promise.resolve((reads += 1)))
    expect(await late.catch((error: unknown) => error)).to.equal(LATE)
    expect(waiting()).to.equal(0)
    const patient = onEntry(pool(), KNOWN, (db) => db.one(ONE, 'SELECT 1 AS one'))
    held.pop()!.release()
    await patient
    expect(reads).to.equal(0)
  })

  it('does not time out requests while the process is too busy to serve them', async () => {
    await holdAll()
    const patient = onEntry(pool(), { ...KNOWN, patienceMs: 250 }, (db) => db.one(ONE, 'SELECT 1 AS one'))
    const endMs = performance.now() + 400
    while (performance.now() < endMs);
    // After this, every timer that was due has run.
    await new Promise((resolve) => setTimeout(resolve, 1))
    held.pop()!.release()
    await patient
  })

  it('continues after a read that fails', async () => {
    await holdAll()
    const failed = onEntry(pool(), STRANGER, (db) => db.one(ONE, 'SELECT nonsense'))
    const next = [STRANGER, STRANGER, KNOWN].map((request) =>
      onEntry(pool(), request, (db) => db.one(ONE, 'SELECT 1 AS one')),
    )
    held.pop()!.release()
    expect(await failed.catch((error: unknown) => error)).to.be.instanceOf(Error)
    await Promise.all(next)
    await until(() => waiting() === 0)
  })
})
