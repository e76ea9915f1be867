import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { openRateLimit, type RateLimit } from '#http/rate-limit.ts'
import { AppError } from '#shared/errors.ts'
import { startService, type Response, type SellerClient, type TestService } from '../support/api.ts'
import { expectError } from '../support/expect-error.ts'
import { anApp } from '../support/factories.ts'
import { startIdentityClients } from '../support/identity-clients.ts'
import { until } from '../support/until.ts'

describe('the rate limit', () => {
  let service: TestService
  let seller: SellerClient

  beforeEach(async () => {
    service = await startService({ BILLING_RATE_LIMIT_PER_SECOND: '3' })
    seller = service.seller(await anApp(service.ctx))
  })

  afterEach(() => service.stop())

  it('allows a burst of twice the limit, then answers 429 rate_limited with Retry-After', async () => {
    const answers = await burst(7)
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([...Array<number>(6).fill(200), 429])
    const refused = answers.find(({ status }) => status === 429)!
    expectError(refused, 429, 'rate_limited')
    expect(refused.headers['retry-after']).to.match(/^[12]$/)
  })

  it('is told in RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, by errors too', async () => {
    const limits = ({ headers }: Response) =>
      ['limit', 'remaining', 'reset'].map((name) => headers[`ratelimit-${name}`] as string | undefined)
    const answers: Response[] = []
    for (const path of ['/api/v1/plans', '/api/v1/plans/plan_9', '/api/v1/plans?x=1'])
      answers.push(await seller.get(path))
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 404, 400])
    expect(answers.map((answer) => limits(answer).slice(0, 2))).to.deep.equal([
      ['6', '5'],
      ['6', '4'],
      ['6', '3'],
    ])
    for (const answer of answers) expect(limits(answer)[2]).to.match(/^[12]$/)
    const refused = (await burst(7)).find(({ status }) => status === 429)!
    expect(limits(refused).slice(0, 2)).to.deep.equal(['6', '0'])
    expect(limits(refused)[2]).to.equal(refused.headers['retry-after'])
  })

  it('allows the app’s requests again after a while', async () => {
    await burst(7)
    await until(async () => (await seller.get('/api/v1/plans')).status === 200)
  })

  it('applies to each app separately', async () => {
    await burst(7)
    const other = service.seller(await anApp(service.ctx))
    expect((await other.get('/api/v1/plans')).status).to.equal(200)
  })

  it('cannot be exhausted by callers who only know the public key', async () => {
    const forged = { headers: { 'X-Signature': '0'.repeat(64) } }
    const answers = await Promise.all(Array.from({ length: 30 }, () => seller.get('/api/v1/plans', forged)))
    for (const answer of answers) expectError(answer, 401, 'unauthorized')
    expect((await seller.get('/api/v1/plans')).status).to.equal(200)
  })

  it('is off if it is 0', async () => {
    const unlimited = await startService({ BILLING_RATE_LIMIT_PER_SECOND: '0' })
    try {
      const client = unlimited.seller(await anApp(unlimited.ctx))
      const answers = await Promise.all(Array.from({ length: 50 }, () => client.get('/api/v1/plans')))
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
      expect(answers[0]!.headers).not.to.have.property('ratelimit-limit')
    } finally {
      await unlimited.stop()
    }
  })

  it('applies to each end user of an identity-token app separately, at a fifth: one cannot exhaust it for the others', async () => {
    const limited = await startService({ BILLING_RATE_LIMIT_PER_SECOND: '10' })
    const clients = await startIdentityClients()
    try {
      const client = await clients.app(limited.ctx)
      const callerOf = async (sub: string) => {
        const headers = await clients.headers(limited.ctx, client, sub)
        return () => limited.call('GET', '/api/v1/plans', { headers })
      }
      const [flooder, another] = await Promise.all([callerOf('flooder'), callerOf('another')])
      let refused: Response | undefined
      while (!refused) {
        const flood = await Promise.all(Array.from({ length: 50 }, flooder))
        refused = flood.find(({ status }) => status !== 200)
      }
      expectError(refused, 429, 'rate_limited')
      expect(refused.headers['retry-after']).to.match(/^[12]$/)
      expect(refused.headers).to.include({ 'ratelimit-limit': '10', 'ratelimit-remaining': '0' })
      const allowed = await another()
      expect(allowed.status).to.equal(200)
      expect(allowed.headers).to.include({ 'ratelimit-limit': '10', 'ratelimit-remaining': '9' })
    } finally {
      await limited.stop()
      await clients.stop()
    }
  })

  it('counts and names itself in the 403 of a client that may not make the call', async () => {
    const limited = await startService({ BILLING_RATE_LIMIT_PER_SECOND: '10' })
    const clients = await startIdentityClients()
    try {
      const headers = await clients.headers(limited.ctx, await clients.app(limited.ctx), 'user-1')
      const forbidden = () => limited.call('POST', '/api/v1/plans', { headers, raw: '{}' })
      const answer = await forbidden()
      expectError(answer, 403, 'forbidden')
      expect(answer.headers).to.include({ 'ratelimit-limit': '10', 'ratelimit-remaining': '9' })
      expect(answer.headers['ratelimit-reset']).to.match(/^[12]$/)
      const flood = await Promise.all(Array.from({ length: 50 }, forbidden))
      expect(flood.filter(({ status }) => status === 429)).not.to.deep.equal([])
    } finally {
      await limited.stop()
      await clients.stop()
    }
  })

  function burst(size: number) {
    return Promise.all(Array.from({ length: size }, () => seller.get('/api/v1/plans')))
  }
})

describe('the allowance of one end user', () => {
  /** How many of the concurrent requests are allowed. */
  const passed = async (limit: RateLimit, subject: string, requests: number, appId = 1): Promise<number> => {
    const outcomes = await Promise.allSettled(Array.from({ length: requests }, () => limit.take(appId, subject)))
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') continue
      expect(outcome.reason).to.be.instanceOf(AppError).and.include({ code: 'rate_limited' })
      expect((outcome.reason as AppError).headers['Retry-After']).to.match(/^[12]$/)
    }
    return outcomes.filter(({ status }) => status === 'fulfilled').length
  }

  it('is a fifth of the app, in bursts of twice that; a server has all of it', async () => {
    const limit = openRateLimit(100)
    expect(await passed(limit, 'user-1', 41)).to.equal(40)
    expect(await passed(limit, 'user-2', 41)).to.equal(40)
    expect(await passed(limit, 'user-1', 41, 2), 'of another app').to.equal(40)
    expect(await passed(openRateLimit(100), '', 201)).to.equal(200)
  })

  it('is at least five a second, and never more than the app’s limit', async () => {
    expect(await passed(openRateLimit(10), 'user-1', 11)).to.equal(10)
    expect(await passed(openRateLimit(24), 'user-1', 11)).to.equal(10)
    expect(await passed(openRateLimit(3), 'user-1', 11)).to.equal(6)
  })

  it('is counted separately: requests refused to one end user do not count against the app', async () => {
    const limit = openRateLimit(100)
    expect(await passed(limit, 'flooder', 1000)).to.equal(40)
    const others = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((sub) => passed(limit, sub, 40)))
    expect(others.reduce((sum, count) => sum + count)).to.equal(160)
  })

  it('is unlimited if the limit is 0', async () => {
    expect(await passed(openRateLimit(0), 'user-1', 1000)).to.equal(1000)
  })
})
