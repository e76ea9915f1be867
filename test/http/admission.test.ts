import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { QueryRunner } from 'typeorm'
import { poolUse } from '#db/session.ts'
import { startCardShop } from '../providers/card-shop.ts'
import type { CardShop } from '../providers/card-shop.ts'
import type { Response } from '../support/api.ts'
import { expectRefusal } from '../support/expect-fault.ts'
import { until } from '../support/until.ts'

const AN = { name: 'An', email: 'an@example.com' }

describe('more callers at once than the database takes', () => {
  let shop: CardShop

  beforeEach(async () => {
    shop = await startCardShop()
  })

  afterEach(() => shop.stop())

  it('are served or told 429 rate_limited with Retry-After, never 500', async () => {
    const { client } = shop.first
    const calls = [() => client.post('/api/v1/customers', AN), () => client.get('/api/v1/plans')]
    const free = await takeAllConnections()
    const callers = calls.map((call) => crowd(300, call))
    await until(() => callers.every(({ answers }) => answers.length >= 50))
    await free()
    await Promise.all(callers.map(({ all }) => all))
    const answers = callers.flatMap((each) => each.answers)
    const served = answers.filter(({ status }) => status < 300)
    for (const answer of answers) if (!served.includes(answer)) expectRefusal(answer, 429, 'rate_limited')
    expect(new Set(served.map(({ status }) => status))).to.deep.equal(new Set([200, 201]))
  })

  it('are turned away at once: reads first, then writes, notifications of providers never', async () => {
    const { client } = shop.first
    const card = await shop.open()
    shop.stripe.pay(card.session)
    const event = shop.event(card.session)
    const free = await takeAllConnections()
    try {
      const reads = crowd(150, () => client.get('/api/v1/plans'))
      const pages = crowd(20, () => shop.service.call('GET', `/checkout/${card.token}`))
      await until(() => reads.answers.length >= 50 && pages.answers.length === 20)
      for (const answer of reads.answers) expectRefusal(answer, 429, 'rate_limited')
      expect(reads.answers[0]!.headers['retry-after']).to.equal('1')
      expect(pages.answers[0]).to.include({ status: 429 })
      expect(pages.answers[0]!.text).to.include('Too many requests')

      const writes = crowd(150, () => client.post('/api/v1/customers', AN))
      await until(() => writes.answers.length >= 50)
      for (const answer of writes.answers) expectRefusal(answer, 429, 'rate_limited')

      const before = waiting()
      const notification = shop.notify(event)
      await until(() => waiting() > before)
      await free()
      expect((await notification).body).to.deep.equal({ success: true, data: { status: 'processed' } })
      await Promise.all([reads.all, writes.all])
      expect(reads.answers.filter(({ status }) => status === 200).length).to.be.at.least(50)
      expect(writes.answers.filter(({ status }) => status === 201).length).to.be.at.least(50)
    } finally {
      await free()
    }
  })

  it('leave /healthz and the pages’ files alone', async () => {
    const free = await takeAllConnections()
    try {
      const reads = crowd(150, () => shop.first.client.get('/api/v1/plans'))
      await until(() => reads.answers.length >= 50)
      expect((await shop.service.call('GET', '/healthz')).status).to.equal(200)
      expect((await shop.service.call('GET', '/assets/none.css')).status).to.equal(404)
      await free()
      await reads.all
    } finally {
      await free()
    }
  })

  function waiting(): number {
    return poolUse(shop.service.ctx.db).waiting
  }

  /** Nobody gets a connection until the function that it returns has been called. */
  async function takeAllConnections(): Promise<() => Promise<void>> {
    const taken: QueryRunner[] = []
    do {
      const runner = shop.service.ctx.db.createQueryRunner()
      await runner.connect()
      taken.push(runner)
    } while (poolUse(shop.service.ctx.db).used < 10)
    return async () => {
      await Promise.all(taken.splice(0).map((runner) => runner.release()))
    }
  }
})

/** Calls that are made at once, and the answers that have come so far. */
function crowd(size: number, call: () => Promise<Response>): { answers: Response[]; all: Promise<unknown> } {
  const answers: Response[] = []
  const one = async (): Promise<void> => void answers.push(await call())
  return { answers, all: Promise.all(Array.from({ length: size }, one)) }
}
