import { randomBytes, randomInt } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createSandbox } from 'sinon'
import { customers } from '#customers/store.ts'
import { expectedWaitMs, onEntry } from '#http/entry-queue.ts'
import { isOverload, refuseOverload } from '#http/admission.ts'
import { unixSeconds } from '#shared/time.ts'
import { startCardShop, type CardShop } from '../providers/card-shop.ts'
import type { Response } from '../support/api.ts'
import { expectError } from '../support/expect-error.ts'
import { aCheckout, aPlan, tokenOf } from '../support/factories.ts'
import { takeConnections, type HeldConnection } from '../support/held-connections.ts'
import { startIdentityClients } from '../support/identity-clients.ts'
import { mapConcurrently } from '../support/map-concurrently.ts'
import { until } from '../support/until.ts'

const AN = { name: 'An', email: 'an@example.com' }
const PURCHASE = { mode: 'payment', plan_ref: 'book', amount: 1999, currency: 'USD' } as const
const TRANSFER = { reference: 'FT1', amount: 1999, paymentLinkId: 'link', code: '00' } as const
const PATIENT = { standing: 'known', patienceMs: 60_000, late: () => new Error('late') } as const
/** Connections that stay free while the test holds the others, as with a slow database. */
const LEFT = 3

describe('more concurrent callers than the database serves', () => {
  let shop: CardShop
  let held: HeldConnection[] = []
  const sandbox = createSandbox()

  beforeEach(async () => {
    shop = await startCardShop()
  })

  afterEach(async () => {
    sandbox.restore()
    release()
    await shop.stop()
  })

  it('a burst of 500 concurrent signed reads is answered completely', async () => {
    const { service, first } = shop
    const path = `/api/v1/plans/plan_${(await aPlan(service.ctx, first.app)).id}`
    // Opens the connections first, so that the requests themselves are concurrent.
    await Promise.all(Array.from({ length: 500 }, () => service.call('GET', '/healthz')))
    const answers = await Promise.all(Array.from({ length: 500 }, () => first.client.get(path)))
    expect(countByStatus(answers)).to.deep.equal({ 200: 500 })
  })

  it('get 429 rate_limited with Retry-After if they would wait longer than 2 s, and nothing is done', async () => {
    const { client } = shop.first
    const { service } = shop
    const token = tokenOf(await aCheckout(service.ctx, shop.first.app, PURCHASE))
    // Both callers are known to be genuine from now on.
    expect((await client.get('/api/v1/plans')).status).to.equal(200)
    expect((await service.call('GET', `/checkout/${token}`)).status).to.equal(200)
    await holdAll()
    const answers = await Promise.all([
      ...Array.from({ length: 10 }, () => client.get('/api/v1/plans')),
      ...Array.from({ length: 10 }, () => client.post('/api/v1/customers', AN)),
      service.call('GET', `/checkout/${token}/status`),
      service.call('GET', `/checkout/${'a'.repeat(64)}/status`),
    ])
    const page = await service.call('GET', `/checkout/${token}`)
    release()
    for (const answer of answers) {
      expectError(answer, 429, 'rate_limited')
      expect(answer.headers['retry-after']).to.equal('1')
    }
    expect({ status: page.status, after: page.headers['retry-after'] }).to.deep.equal({ status: 429, after: '1' })
    expect(page.text).to.include('We are very busy right now').and.to.include(`href="/checkout/${token}">Try again</a>`)
    expect(await service.ctx.db.count(customers, '')).to.equal(0)
    expect((await client.get('/api/v1/plans')).status).to.equal(200)
  })

  it('delay a provider’s notification, but it is still accepted', async () => {
    const card = await shop.open()
    shop.stripe.pay(card.session)
    await holdAll()
    const refused = shop.first.client.get('/api/v1/plans')
    const notification = shop.notify(shop.event(card.session))
    expectError(await refused, 429, 'rate_limited')
    release()
    expect((await notification).body).to.deep.equal({ success: true, data: { status: 'processed' } })
  })

  it('are refused at once if the queue moves too slowly, before a signature is checked; a notification is not, nor are the first 500 reads', async () => {
    const { service, first } = shop
    const { ctx } = service
    const card = await shop.open()
    shop.stripe.pay(card.session)
    held = await takeConnections(ctx.db, 1)
    const crowd = Array.from({ length: 400 }, () => onEntry(ctx.db.pool, PATIENT, (db) => db.run('DO SLEEP(0.02)')))
    await until(() => expectedWaitMs(ctx.db.pool) > 1000)
    for (let read = 0; read < 500; read += 1) expect(() => refuseOverload(ctx, true), `read ${read}`).not.to.throw()
    const refused = [
      first.client.get('/api/v1/plans'),
      first.client.post('/api/v1/customers', AN),
      service.call('GET', '/api/v1/plans'),
    ]
    const notification = shop.notify(shop.event(card.session))
    for (const answer of await Promise.all(refused)) {
      expectError(answer, 429, 'rate_limited')
      expect(answer.headers['retry-after']).to.equal('1')
    }
    expect(expectedWaitMs(ctx.db.pool)).to.be.greaterThan(0)
    release()
    expect((await notification).body).to.deep.equal({ success: true, data: { status: 'processed' } })
    await Promise.all(crowd)
    expect((await first.client.get('/api/v1/plans')).status).to.equal(200)
    expect(await ctx.db.count(customers, '')).to.equal(0)
  })

  it('that last, though fewer than 500, are refused reads, so that changes are still accepted', async () => {
    const { ctx } = shop.service
    held = await takeConnections(ctx.db, 1)
    const crowd = Array.from({ length: 200 }, () => onEntry(ctx.db.pool, PATIENT, (db) => db.run('DO SLEEP(0.02)')))
    let calls = 0
    const isRefused = () => {
      calls += 1
      try {
        refuseOverload(ctx, true)
        return false
      } catch {
        return true
      }
    }
    const served = Promise.all(crowd).then(() => 'served')
    expect(await Promise.race([served, until(isRefused).then(() => 'refused')])).to.equal('refused')
    expect(calls).to.be.below(500)
    await served
  })

  it('are refused from an expected wait of 0.3 s for reads, of 0.5 s for changes', () => {
    expect([299, 301].map((ms) => isOverload(ms, true))).to.deep.equal([false, true])
    expect([499, 501].map((ms) => isOverload(ms, false))).to.deep.equal([false, true])
  })

  it('do not affect /healthz and the pages’ files', async () => {
    await holdAll()
    expect((await shop.service.call('GET', '/healthz')).status).to.equal(200)
    expect((await shop.service.call('GET', '/assets/none.css')).status).to.equal(404)
  })

  it('without a key, 132 at once: every signed call and every payer is still served', async () => {
    const { service, first } = shop
    const clients = await startIdentityClients()
    try {
      const { ctx } = service
      const identityApp = await clients.app(ctx)
      const identity = await clients.headers(ctx, identityApp, 'user-1')
      const tokens = await Promise.all(
        Array.from({ length: 4 }, async (_, index) =>
          tokenOf(await aCheckout(ctx, first.app, { ...PURCHASE, external_ref: `user-${index}` })),
        ),
      )
      held = await takeConnections(ctx.db, LEFT)
      const flood = startFlood(22)
      await until(() => flood.kinds.every(({ answers }) => answers.length >= 22))
      const served = await mapConcurrently(Array.from({ length: 8 }), () => first.client.get('/api/v1/plans'))
      const written = await mapConcurrently(Array.from({ length: 4 }), () => first.client.post('/api/v1/customers', AN))
      const asked = await mapConcurrently(Array.from({ length: 4 }), () =>
        service.call('GET', '/api/v1/plans', { headers: identity }),
      )
      const pages = await mapConcurrently(tokens, (token) => service.call('GET', `/checkout/${token}`))
      const statuses = await mapConcurrently(tokens, (token) => service.call('GET', `/checkout/${token}/status`))
      await flood.stop()
      const counted = [served, written, asked, pages, statuses].map((answers) => countByStatus(answers))
      expect(counted).to.deep.equal([{ 200: 8 }, { 201: 4 }, { 200: 4 }, { 200: 4 }, { 200: 4 }])
      for (const { name, status, answers } of flood.kinds) {
        // On a busy machine some wait too long for the database.
        const { 503: late, ...inTime } = countByStatus(answers)
        expect(Object.keys(inTime), `${name}, and ${late ?? 0} late`).to.deep.equal([String(status)])
      }
    } finally {
      await clients.stop()
    }
  })

  it('GET /readyz serves all of them from one reading, at most 1 s old', async () => {
    const made = sandbox.spy(shop.service.ctx.db.pool, 'take')
    await shop.service.call('GET', '/readyz')
    const once = made.callCount
    expect(once).to.be.greaterThan(0)
    const startedMs = performance.now()
    const answers = await Promise.all(Array.from({ length: 100 }, () => shop.service.call('GET', '/readyz')))
    const readings = Math.ceil((performance.now() - startedMs) / 1000) + 1
    expect(countByStatus(answers)).to.deep.equal({ 200: 100 })
    expect(made.callCount).to.be.at.most(once * readings)
    await until(async () => {
      await shop.service.call('GET', '/readyz')
      return made.callCount > once * readings
    })
  })

  async function holdAll(): Promise<void> {
    held = await takeConnections(shop.service.ctx.db)
  }

  function release(): void {
    for (const connection of held.splice(0)) connection.release()
  }

  /** Repeats every kind of unauthenticated call on `each` connections until it is stopped. */
  function startFlood(each: number) {
    const { service, first } = shop
    let isOver = false
    const json = { 'Content-Type': 'application/json' }
    const junk = () => randomBytes(32).toString('hex')
    const now = () => String(unixSeconds(service.ctx.clock.now()))
    const plans = (key: string) =>
      service.call('GET', '/api/v1/plans', {
        headers: { 'X-App-Key': key, 'X-Timestamp': now(), 'X-Signature': junk() },
      })
    const calls: Readonly<Record<string, readonly [number, () => Promise<Response>]>> = {
      'no key, /readyz': [200, () => service.call('GET', '/readyz')],
      'an unknown key': [401, () => plans(`pk_live_${junk().slice(0, 24)}`)],
      'a known key with a wrong signature': [401, () => plans(first.app.apiKey)],
      'an unknown token': [404, () => service.call('GET', `/checkout/${junk()}/status`)],
      'a junk notification of a card': [
        400,
        () =>
          service.call('POST', '/api/v1/webhooks/card-provider', {
            raw: '{"id":"evt_1","type":"x","data":{"object":{}}}',
            headers: { ...json, 'Stripe-Signature': `t=${now()},v1=${junk()}` },
          }),
      ],
      'a junk notification of PayOS': [
        400,
        () =>
          service.call('POST', '/api/v1/webhooks/bank-transfer-provider', {
            raw: JSON.stringify({ data: { ...TRANSFER, orderCode: randomInt(1e9) }, signature: junk() }),
            headers: json,
          }),
      ],
    }
    const kinds = Object.entries(calls).map(([name, [status, call]]) => ({
      name,
      status,
      call,
      answers: [] as Response[],
    }))
    const loops = kinds.flatMap(({ call, answers }) =>
      Array.from({ length: each }, async () => {
        while (!isOver) answers.push(await call())
      }),
    )
    const stop = async (): Promise<void> => {
      isOver = true
      await Promise.all(loops)
    }
    return { kinds, stop }
  }
})

function countByStatus(answers: readonly Response[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
