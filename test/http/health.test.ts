import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { openDatabase } from '#db/connect.ts'
import { systemClock } from '#shared/time.ts'
import { startService, type TestService } from '../support/api.ts'
import { expectError } from '../support/expect-error.ts'
import { moveToOwnServer, testDatabase } from '../support/database.ts'
import { anApp } from '../support/factories.ts'
import { head, sendRaw } from '../support/raw-http.ts'
import { until } from '../support/until.ts'

interface Readiness {
  readonly status: string
  readonly reason: string
  readonly warning: string
}

describe('health and metrics', () => {
  let service: TestService

  afterEach(() => service.stop())

  it('GET /healthz answers 200 while the process is up', async () => {
    service = await startService()
    expect(await service.call('GET', '/healthz')).to.deep.include({ status: 200, body: { status: 'up' } })
  })

  it('GET /readyz answers 200 if the database is reachable and its schema is current, else 503', async () => {
    service = await startService()
    // The database's clock is the real one.
    Object.assign(service.ctx, { clock: systemClock })
    expect(await service.call('GET', '/readyz')).to.deep.include({ status: 200, body: { status: 'ready' } })
    const { db } = service.ctx
    await db.query("UPDATE migrations SET name = CONCAT('x', name)")
    try {
      // An answer may be a second old.
      await until(async () => (await service.call('GET', '/readyz')).status === 503)
      const answer = await service.call<Readiness>('GET', '/readyz')
      expect(answer.body.status).to.equal('not_ready')
      expect(answer.body.reason).to.contain('billing-cli migrate')
      expect((await service.call('GET', '/healthz')).status).to.equal(200)
    } finally {
      await db.query('UPDATE migrations SET name = SUBSTRING(name, 2)')
    }
    await until(async () => (await service.call('GET', '/readyz')).status === 200)
  })

  it('GET /readyz warns of a database that is read-only, from which reads go on', async () => {
    const moveBack = await moveToOwnServer()
    try {
      service = await startService()
      await service.ctx.db.query('SET GLOBAL read_only = 1')
      const { status, body } = await service.call<Readiness>('GET', '/readyz')
      expect(status).to.equal(200)
      expect(body.warning).to.equal('the database is read-only: changes are answered 503')
    } finally {
      await moveBack()
    }
  })

  it('GET /readyz answers 503 if the database is unreachable, without details', async () => {
    service = await startService()
    const unreachable = await openDatabase({ databaseUrl: testDatabase().url, home: '' })
    await unreachable.close()
    Object.assign(service.ctx, { db: unreachable.db })
    const { status, body } = await service.call<Readiness>('GET', '/readyz')
    expect(status).to.equal(503)
    expect(body).to.deep.equal({ status: 'not_ready', reason: 'the database cannot be reached' })
  })

  it('GET /readyz answers 503 on a member of a group without a majority, and asks nothing of a server without a group', async () => {
    service = await startService()
    const { db } = service.ctx
    const asked: string[] = []
    const member = (cluster: 'group' | null) => ({
      cluster,
      command: (sql: string) => {
        asked.push(sql)
        return Promise.resolve(['ONLINE', 'UNREACHABLE', 'UNREACHABLE'].map((state) => ({ state, isSelf: 0 })))
      },
    })
    const serveBy = (cluster: 'group' | null) =>
      Object.assign(service.ctx, {
        db: { ...db, pool: { take: () => Promise.resolve(member(cluster)), release: () => undefined } },
      })
    serveBy(null)
    expect((await service.call('GET', '/readyz')).status).to.equal(200)
    expect(asked).to.deep.equal([])
    serveBy('group')
    await until(async () => (await service.call('GET', '/readyz')).status === 503)
    const { body } = await service.call<Readiness>('GET', '/readyz')
    expect(body.reason).to.equal('the database is cut off from the majority of its group')
    Object.assign(service.ctx, { db })
  })

  it('GET /readyz warns of a clock that differs from the database’s, and stays ready', async () => {
    service = await startService()
    const { status, body } = await service.call<Readiness>('GET', '/readyz')
    expect({ status, said: body.status }).to.deep.equal({ status: 200, said: 'ready' })
    expect(body.warning).to.match(/^the database is \d+\.\d s ahead of this machine: set both by NTP/)
  })

  it('GET /metrics answers in the Prometheus text format, counts requests by route, and contains no path, key or secret', async () => {
    service = await startService()
    const app = await anApp(service.ctx)
    await service.seller(app).get('/api/v1/plans/plan_424242')
    await service.call('GET', '/checkout/0123456789abcdef')
    const { status, headers, text } = await service.call('GET', '/metrics')
    expect(status).to.equal(200)
    expect(headers['content-type']).to.match(/^text\/plain/)
    expect(text).to.contain('route="/api/v1/plans/:id"')
    for (const leak of ['plan_424242', '0123456789abcdef', app.apiKey, app.secret]) {
      expect(text.includes(leak), leak).to.equal(false)
    }
  })

  const TOKEN = 'token-of-at-least-16'
  const FORWARDED = { 'X-Forwarded-For': '203.0.113.9' }
  const rules: [settings: Record<string, string>, headers: Record<string, string>, status: number][] = [
    [{}, {}, 200],
    [{}, FORWARDED, 403],
    [{}, { Forwarded: 'for=203.0.113.9' }, 403],
    [{ BILLING_METRICS_TOKEN: TOKEN }, {}, 403],
    [{ BILLING_METRICS_TOKEN: TOKEN }, FORWARDED, 403],
    [{ BILLING_METRICS_TOKEN: TOKEN }, { Authorization: 'Bearer wrong' }, 403],
    [{ BILLING_METRICS_TOKEN: TOKEN }, { Authorization: `Basic ${TOKEN}` }, 403],
    [{ BILLING_METRICS_TOKEN: TOKEN }, { Authorization: `Bearer ${TOKEN}` }, 200],
    [{ BILLING_METRICS_TOKEN: TOKEN }, { ...FORWARDED, Authorization: `Bearer ${TOKEN}` }, 200],
    [{ BILLING_TRUST_PROXY: '1' }, {}, 403],
    [{ BILLING_TRUST_PROXY: '1' }, { Authorization: 'Bearer ' }, 403],
    [{ BILLING_TRUST_PROXY: '1', BILLING_METRICS_TOKEN: TOKEN }, {}, 403],
    [{ BILLING_TRUST_PROXY: '1', BILLING_METRICS_TOKEN: TOKEN }, { Authorization: `Bearer ${TOKEN}` }, 200],
  ]
  for (const [settings, headers, status] of rules) {
    const set = Object.keys(settings).join(' and ') || 'no setting'
    const sent = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    it(`GET /metrics from loopback with ${set}: ${sent.join(', ') || 'nothing'} is answered ${status}`, async () => {
      service = await startService(settings)
      const answer = await service.call('GET', '/metrics', { headers })
      if (status === 200) expect(answer).to.include({ status })
      else expectError(answer, status, 'forbidden')
    })
  }

  it('GET /metrics exists under this path only; every other spelling answers 404', async () => {
    service = await startService()
    const get = (target: string) => sendRaw(service.url, head(`GET ${target}`, []))
    const spellings = ['/metrics/', '/Metrics', '/METRICS', '//metrics', '/metrics//', '/metrics%20', '/%6detrics']
    spellings.push('/./metrics', '/x/../metrics', '/metrics;x', '/metrics#x', `${service.url}/metrics`)
    spellings.push('http://localhost/metrics', 'http:///metrics', '/metrics%00', '/metrics%2f')
    for (const target of spellings) expect((await get(target)).status, target).to.equal(404)
    expect((await get('/metrics')).status).to.equal(200)
    expect((await get('/metrics?x=1')).status).to.equal(200)
  })

  for (const [proxies, client] of [
    ['0', '127.0.0.1'],
    ['1', '203.0.113.9'],
    ['2', '203.0.113.8'],
  ] as const) {
    it(`the log names the client that ${proxies} trusted proxies report`, async () => {
      service = await startService({ BILLING_TRUST_PROXY: proxies })
      const forwarded = { 'X-Forwarded-For': '198.51.100.1, 203.0.113.8, 203.0.113.9' }
      await service.call('GET', '/healthz', { headers: forwarded })
      const logged = service.ctx.logged.map((line) => JSON.parse(line) as { msg: string; client?: string })
      expect(logged.find(({ msg }) => msg === 'request')?.client).to.equal(client)
    })
  }
})
