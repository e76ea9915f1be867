import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { startService } from '../support/api.ts'
import type { SellerClient, TestService } from '../support/api.ts'
import { expectRefusal } from '../support/expect-fault.ts'
import { anApp } from '../support/factories.ts'

describe('the rate limit', () => {
  let service: TestService
  let seller: SellerClient

  beforeEach(async () => {
    service = await startService({ BILLING_RATE_LIMIT_PER_SECOND: '3' })
    seller = service.seller(await anApp(service.ctx))
  })

  afterEach(() => service.stop())

  it('lets a burst of twice the limit through; beyond it answers 429 rate_limited with Retry-After', async () => {
    const answers = await burst(7)
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([...Array<number>(6).fill(200), 429])
    const refused = answers.find(({ status }) => status === 429)!
    expectRefusal(refused, 429, 'rate_limited')
    expect(refused.headers['retry-after']).to.match(/^[12]$/)
  })

  it('lets the app in again after a while', async () => {
    await burst(7)
    const deadline = performance.now() + 10_000
    let status = 429
    while (status === 429 && performance.now() < deadline) {
      ;({ status } = await seller.get('/api/v1/plans'))
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    expect(status).to.equal(200)
  })

  it('counts each app by itself', async () => {
    await burst(7)
    const other = service.seller(await anApp(service.ctx))
    expect((await other.get('/api/v1/plans')).status).to.equal(200)
  })

  it('cannot be used up by those who only know the public key', async () => {
    const forged = { headers: { 'X-Signature': '0'.repeat(64) } }
    const answers = await Promise.all(Array.from({ length: 30 }, () => seller.get('/api/v1/plans', forged)))
    for (const answer of answers) expectRefusal(answer, 401, 'unauthorized')
    expect((await seller.get('/api/v1/plans')).status).to.equal(200)
  })

  it('is off where it is 0', async () => {
    const unlimited = await startService({ BILLING_RATE_LIMIT_PER_SECOND: '0' })
    try {
      const client = unlimited.seller(await anApp(unlimited.ctx))
      const answers = await Promise.all(Array.from({ length: 50 }, () => client.get('/api/v1/plans')))
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
    } finally {
      await unlimited.stop()
    }
  })

  function burst(size: number) {
    return Promise.all(Array.from({ length: size }, () => seller.get('/api/v1/plans')))
  }
})
