import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { openDatabase, type OpenDatabase } from '#db/connect.ts'
import { lossyServer, type LossyServer } from '../db/lossy-server.ts'
import { testDatabase } from '../support/database.ts'
import { expectError } from '../support/expect-error.ts'
import { MONTHLY } from '../support/factories.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

const LONGEST_MS = 12_000

describe('a database that stops answering', () => {
  let lines: LossyServer[]
  let frozen: OpenDatabase
  let scenario: Scenario

  beforeEach(async () => {
    scenario = await startScenario()
    lines = []
  })

  /** One server, or several hosts that all freeze. */
  const openBehind = async (hosts: number) => {
    const { socketPath, name } = testDatabase()
    for (let host = 0; host < hosts; host += 1) lines.push(await lossyServer(socketPath, true))
    const addresses = lines.map(({ port }) => `127.0.0.1:${port}`).join(',')
    frozen = await openDatabase({ databaseUrl: `mysql://root@${addresses}/${name}`, home: '' })
    Object.assign(scenario.service.ctx, { db: frozen.db })
  }
  const freeze = (isFrozen: boolean) => lines.forEach((line) => (line.isFrozen = isFrozen))

  afterEach(async () => {
    Object.assign(scenario.service.ctx, { db: testDatabase().db })
    await Promise.all(lines.map((line) => line.close()))
    await frozen.close().catch(() => undefined)
    await scenario.service.stop()
  })

  it('lets every call be answered 503 with Retry-After within 12 s, and serves again once it answers', () =>
    answersInTime(1))

  it('does so, too, where it has several hosts and all of them stop', () => answersInTime(3))

  async function answersInTime(hosts: number): Promise<void> {
    await openBehind(hosts)
    const { seller, service } = scenario
    const price = (await scenario.plan('pro', MONTHLY)).prices[0]!
    const checkout = await scenario.checkout({ price_id: price })
    const plan = (code: string) => ({ code, name: 'Pro', prices: [MONTHLY] })
    const calls = {
      read: () => seller.get('/api/v1/plans'),
      change: () => seller.post('/api/v1/plans', plan('frozen')),
      keyed: () => seller.post('/api/v1/plans', plan('keyed'), { headers: { 'Idempotency-Key': 'k1' } }),
      page: () => service.call('GET', checkout.checkout_url),
      pay: () =>
        service.call('POST', `${checkout.checkout_url}/resolve`, {
          raw: JSON.stringify({ payment_method: 'test' }),
          headers: { 'Content-Type': 'application/json' },
        }),
      ready: () => service.call('GET', '/readyz'),
    }
    freeze(true)
    // The second round meets no connection that was open before.
    for (const round of ['with connections that were open', 'with new connections']) {
      const answers = await Promise.all(
        Object.entries(calls).map(async ([name, call]) => {
          const startedMs = performance.now()
          const answer = await call()
          return { name, answer, ms: performance.now() - startedMs }
        }),
      )
      for (const { name, answer, ms } of answers) {
        expect(answer.status, `${name} ${round}: ${answer.text}`).to.equal(503)
        expect(ms, `${name} ${round}`).to.be.below(LONGEST_MS)
        if (name === 'change') expectError(answer, 503, 'service_unavailable')
        if (name !== 'ready') expect(answer.headers['retry-after'], `${name} ${round}`).to.equal('1')
      }
    }
    freeze(false)
    expect((await calls.change()).status).to.equal(201)
    expect((await calls.read()).status).to.equal(200)
  }
})
