import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { systemClock } from '#shared/time.ts'
import { startService } from '../support/api.ts'
import type { TestService } from '../support/api.ts'
import { expectRefusal } from '../support/expect-fault.ts'
import { anApp } from '../support/factories.ts'

describe('health and metrics', () => {
  let service: TestService

  afterEach(() => service.stop())

  it('GET /healthz answers 200 while the process is up', async () => {
    service = await startService()
    expect(await service.call('GET', '/healthz')).to.deep.include({ status: 200, body: { status: 'up' } })
  })

  it('GET /readyz answers 200 where the database can be reached and its schema is current, else 503', async () => {
    service = await startService()
    // The database's clock is the real one.
    Object.assign(service.ctx, { clock: systemClock })
    expect(await service.call('GET', '/readyz')).to.deep.include({ status: 200, body: { status: 'ready' } })
    const { db } = service.ctx
    await db.query("UPDATE schema_migrations SET name = CONCAT('x', name)")
    try {
      const answer = await service.call('GET', '/readyz')
      expect(answer.status).to.equal(503)
      expect(answer.body.status).to.equal('not_ready')
      expect(answer.body.reason).to.contain('billing-cli migrate')
      expect((await service.call('GET', '/healthz')).status).to.equal(200)
    } finally {
      await db.query('UPDATE schema_migrations SET name = SUBSTRING(name, 2)')
    }
    expect((await service.call('GET', '/readyz')).status).to.equal(200)
  })

  it('GET /readyz warns of a clock that differs from the database’s, and stays ready', async () => {
    service = await startService()
    const { status, body } = await service.call('GET', '/readyz')
    expect({ status, said: body.status }).to.deep.equal({ status: 200, said: 'ready' })
    expect(body.warning).to.match(/^the database is \d+\.\d s ahead of this machine: set both by NTP/)
  })

  it('GET /metrics answers in Prometheus text, counts requests by route, and holds no path, key or secret', async () => {
    service = await startService()
    const app = await anApp(service.ctx)
    await service.seller(app).get('/api/v1/plans/plan_424242')
    await service.call('GET', '/checkout/0123456789abcdef')
    const { status, headers, text } = await service.call('GET', '/metrics')
    expect(status).to.equal(200)
    expect(headers['content-type']).to.match(/^text\/plain/)
    expect(text).to.contain('route="/api/v1/plans/:id"')
    for (const canary of ['plan_424242', '0123456789abcdef', app.apiKey, app.secret]) {
      expect(text.includes(canary), canary).to.equal(false)
    }
  })

  it('GET /metrics is for loopback alone, and for those who send BILLING_METRICS_TOKEN', async () => {
    service = await startService({ BILLING_METRICS_TOKEN: 'token-of-at-least-16' })
    const from = (headers: Record<string, string>) => service.call('GET', '/metrics', { headers })
    const forwarded = { 'X-Forwarded-For': '203.0.113.9' }
    expect((await from({})).status).to.equal(200)
    expectRefusal(await from(forwarded), 403, 'forbidden')
    expectRefusal(await from({ ...forwarded, Authorization: 'Bearer wrong' }), 403, 'forbidden')
    expect((await from({ ...forwarded, Authorization: 'Bearer token-of-at-least-16' })).status).to.equal(200)
  })

  for (const [proxies, client] of [
    ['0', '127.0.0.1'],
    ['1', '203.0.113.9'],
    ['2', '203.0.113.8'],
  ] as const) {
    it(`the log names the client as ${proxies} trusted proxies tell it`, async () => {
      service = await startService({ BILLING_TRUST_PROXY: proxies })
      const forwarded = { 'X-Forwarded-For': '198.51.100.1, 203.0.113.8, 203.0.113.9' }
      await service.call('GET', '/healthz', { headers: forwarded })
      const [request] = service.ctx.logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request')
      expect(request.client).to.equal(client)
    })
  }
})
