import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { customers } from '#customers/store.ts'
import { API_ROUTES } from '#daemon/app.ts'
import { commitTokens, insertCommitToken } from '#commands/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { Context } from '#context.ts'
import { answerOnce } from '#http/idempotency.ts'
import { insertIdempotencyKey, idempotencyKeys } from '#http/store.ts'
import { plans } from '#plans/store.ts'
import { sha256Hex } from '#shared/crypto.ts'
import { messageOf } from '#shared/errors.ts'
import { addMs, HOUR_MS, type RealTime } from '#shared/time.ts'
import { countStatements } from '../budgets/counted.ts'
import { openLossyDatabase, type Fate, type LossyDatabase, type LossyServer } from '../db/lossy-server.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { whileLacking } from '../support/broken-tables.ts'
import { testDatabase } from '../support/database.ts'
import { expectFieldError, expectError } from '../support/expect-error.ts'
import { aCustomer, anApp, aPlan, aSubscription, MONTHLY, type TestApp } from '../support/factories.ts'
import { startRival } from '../support/held-connections.ts'
import { startIdentityClients } from '../support/identity-clients.ts'
import { until } from '../support/until.ts'

const CUSTOMERS = '/api/v1/customers'
const AN = { name: 'An', email: 'an@example.com' }
const BO = { name: 'Bo', email: 'bo@example.com' }

let service: TestService
let app: TestApp
let seller: SellerClient
describe('repeated requests', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
  })

  afterEach(() => service.stop())

  describe('Idempotency-Key', () => {
    it('returns the first answer again for the same body, and does nothing twice', async () => {
      const first = await post(AN, 'k1')
      service.ctx.clock.advance('5m')
      const second = await post(AN, 'k1')
      expect(first.status).to.equal(201)
      expect(second.status).to.equal(201)
      expect(second.text).to.equal(first.text)
      expect(second.headers['content-type']).to.equal(first.headers['content-type'])
      expect(first.headers).not.to.have.property('idempotent-replayed')
      expect(second.headers['idempotent-replayed']).to.equal('true')
      expect(await numberOfCustomers()).to.equal(1)
    })

    it('marks a repeated refusal, too, and no answer without a key', async () => {
      const [first, second] = [await post({ ...AN, name: '' }, 'k1'), await post({ ...AN, name: '' }, 'k1')]
      expect([first.status, second.status]).to.deep.equal([400, 400])
      expect(first.headers).not.to.have.property('idempotent-replayed')
      expect(second.headers['idempotent-replayed']).to.equal('true')
      expect((await seller.post(CUSTOMERS, AN)).headers).not.to.have.property('idempotent-replayed')
    })

    it('answers 409 idempotency_conflict for another body, even if it only differs in whitespace', async () => {
      await post(AN, 'k1')
      expectError(await post(BO, 'k1'), 409, 'idempotency_conflict')
      const spaced = await seller.post(CUSTOMERS, null, {
        raw: `${JSON.stringify(AN)} `,
        headers: { 'Idempotency-Key': 'k1' },
      })
      expectError(spaced, 409, 'idempotency_conflict')
      expect(spaced.headers).to.not.have.property('retry-after')
      expect(await numberOfCustomers()).to.equal(1)
    })

    it('belongs to one app and path', async () => {
      const plan = { code: 'premium', name: 'Premium', prices: [MONTHLY] }
      const other = service.seller(await anApp(service.ctx))
      const answers = [
        await post(AN, 'k1'),
        await post(BO, 'k2'),
        await other.post(CUSTOMERS, BO, { headers: { 'Idempotency-Key': 'k1' } }),
        await seller.post('/api/v1/plans', plan, { headers: { 'Idempotency-Key': 'k1' } }),
      ]
      expect(answers.map(({ status }) => status)).to.deep.equal([201, 201, 201, 201])
    })

    it('is kept for 24 hours', async () => {
      const first = await post(AN, 'k1')
      service.ctx.clock.advance('24h')
      expect((await post(AN, 'k1')).text).to.equal(first.text)
      service.ctx.clock.advance('1s')
      const anew = await post(BO, 'k1')
      expect(anew.status).to.equal(201)
      expect(anew.body.data.name).to.equal('Bo')
      expect((await post(BO, 'k1')).text).to.equal(anew.text)
      expect(await numberOfCustomers()).to.equal(2)
    })

    it('returns a refusal again, too, with its original request id', async () => {
      const first = await post({ name: 'An' }, 'k1')
      const second = await post({ name: 'An' }, 'k1')
      expectFieldError(first, 'email')
      expect(second.text).to.equal(first.text)
      expect(second.headers['x-request-id']).to.equal(second.body.error.request_id)
    })

    it('does not keep a 5xx answer: the retry runs', async () => {
      await whileLacking(service.ctx.db, customers, async () => {
        expectError(await post(AN, 'k1'), 500, 'internal_error')
      })
      expect((await post(AN, 'k1')).status).to.equal(201)
      expect(await numberOfCustomers()).to.equal(1)
    })

    it('answers 409 with Retry-After while the first request runs, and the first answer afterwards', async () => {
      const plan = { code: 'premium', name: 'Premium', prices: [MONTHLY] }
      const send = () => seller.post('/api/v1/plans', plan, { headers: { 'Idempotency-Key': 'k1' } })
      // Holds the plan code, so that the first request waits in the middle of its work.
      const holder = await startRival(service.ctx.db)
      const at = service.ctx.clock.now()
      const held = { appId: app.app.id, code: plan.code, name: 'x', description: null, status: 'active' } as const
      await holder.insert(plans, { ...held, createdAt: at, updatedAt: at })
      const first = send()
      await untilKeyIsClaimed()
      const [second, otherBody] = [
        await send(),
        await seller.post('/api/v1/plans', { ...plan, name: 'B' }, { headers: { 'Idempotency-Key': 'k1' } }),
      ]
      await holder.rollback()
      expectError(second, 409, 'idempotency_conflict')
      expect(second.headers['retry-after']).to.equal('1')
      expectError(otherBody, 409, 'idempotency_conflict')
      const done = await first
      expect(done.status).to.equal(201)
      expect((await send()).text).to.equal(done.text)
    })

    it('lets one of ten concurrent requests through', async () => {
      const answers = await Promise.all(Array.from({ length: 10 }, () => post(AN, 'k1')))
      const made = answers.filter(({ status }) => status === 201)
      expect(made.length).to.be.at.least(1)
      expect(new Set(made.map(({ text }) => text))).to.have.property('size', 1)
      for (const answer of answers) if (answer.status !== 201) expectError(answer, 409, 'idempotency_conflict')
      expect(await numberOfCustomers()).to.equal(1)
    })

    it('whose first request died without an answer lets the next one with the same body run', async () => {
      const { ctx } = service
      const at = ctx.clock.now()
      const died = (idempotencyKey: string, leaseUntil: RealTime) =>
        inTransaction(ctx, (tx) =>
          insertIdempotencyKey(tx, {
            appId: app.app.id,
            pathHash: sha256Hex(CUSTOMERS),
            idempotencyKey,
            requestHash: sha256Hex(`\n${JSON.stringify(AN)}`),
            leaseToken: idempotencyKey,
            leaseUntil,
            answerStatus: null,
            answerBody: null,
            createdAt: at,
          }),
        )
      await died('dead', addMs(at, -1000))
      await died('alive', addMs(at, 1000))
      expectError(await post(AN, 'alive'), 409, 'idempotency_conflict')
      expectError(await post(BO, 'dead'), 409, 'idempotency_conflict')
      expect((await post(AN, 'dead')).status).to.equal(201)
      service.ctx.clock.advance('2s')
      expect((await post(AN, 'alive')).status).to.equal(201)
    })

    it('whose first request still runs stays taken, whatever the clock of another daemon says', async () => {
      const { ctx } = service
      const { clock } = ctx
      const daemon = (offsetMs: number): Context => ({
        ...ctx,
        clock: { now: () => addMs(clock.now(), offsetMs), database: clock },
      })
      const request = {
        appId: app.app.id,
        path: CUSTOMERS,
        key: 'k',
        subject: '',
        body: Buffer.from('{}'),
        requestId: 'r',
      }
      const work =
        (text: string, after = Promise.resolve()) =>
        () =>
          after.then(() => ({ status: 201, body: Buffer.from(text) }))
      let finish = (): void => undefined
      const finished = new Promise<void>((resolve) => (finish = resolve))
      const first = answerOnce(daemon(-5 * HOUR_MS), request, work('first', finished))
      await untilKeyIsClaimed()
      for (const hours of [0, 5, 30, -30]) {
        const refused = await answerOnce(daemon(hours * HOUR_MS), request, work('another')).catch(
          (thrown: unknown) => thrown,
        )
        expect(refused, `${hours} h off`).to.include({ code: 'idempotency_conflict' })
      }
      finish()
      expect((await first).body.toString()).to.equal('first')
      expect((await answerOnce(daemon(30 * HOUR_MS), request, work('another'))).body.toString()).to.equal('first')
    })

    it('that a later request took over from one that stood still keeps that one from writing anything', async () => {
      const { ctx } = service
      const body = Buffer.from('{}')
      const request = { appId: app.app.id, path: CUSTOMERS, key: 'k', subject: '', body, requestId: 'r' }
      const stands = Promise.withResolvers<undefined>()
      const answers = (text: string, begins?: Promise<undefined>): ReturnType<typeof answerOnce> =>
        answerOnce(ctx, request, async (keep) => {
          await begins
          const answer = { status: 201, body: Buffer.from(text) }
          await inTransaction(ctx, async (tx) => {
            await insertCommitToken(tx, text, tx.now)
            await keep(tx, answer)
          })
          return answer
        })
      const first = answers('first', stands.promise)
      await untilKeyIsClaimed()
      ctx.clock.advance('21s')
      expect((await answers('second')).body.toString()).to.equal('second')
      stands.resolve(undefined)
      expect((await first).body.toString()).to.equal('second')
      expect(await ctx.db.count(commitTokens, "WHERE token = 'first'")).to.equal(0)
    })

    it('keeps an answer that was committed, also where the request fails after that', async () => {
      const body = Buffer.from('{}')
      const request = { appId: app.app.id, path: CUSTOMERS, key: 'k', subject: '', body, requestId: 'r' }
      const answer = { status: 201, body: Buffer.from('committed') }
      const failing = answerOnce(service.ctx, request, async (keep) => {
        await inTransaction(service.ctx, (tx) => keep(tx, answer))
        throw new Error('after the commit')
      })
      expect(await failing.catch(messageOf)).to.equal('after the commit')
      const again = await answerOnce(service.ctx, request, () => Promise.reject(new Error('it ran again')))
      expect(again).to.deep.equal({ ...answer, isReplayed: true })
    })

    it('has its answer committed with the work, on every call that accepts a key', async () => {
      await aSubscription(service.ctx, app, await aPlan(service.ctx, app, { code: 'first' }))
      const customer = await aCustomer(service.ctx, app, AN)
      const other = await aPlan(service.ctx, app, { code: 'other' })
      const [price] = other.prices
      const urls = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
      const calls: readonly (readonly ['post' | 'put', string, object])[] = [
        ['post', '/api/v1/plans', { code: 'new', name: 'New', prices: [MONTHLY] }],
        ['post', `/api/v1/plans/plan_${other.id}/prices`, { ...MONTHLY, amount: 5000 }],
        ['post', CUSTOMERS, AN],
        [
          'post',
          '/api/v1/checkout-sessions',
          { external_ref: 'user-2', mode: 'subscription', price_id: `price_${price!.id}`, ...urls },
        ],
        ['put', '/api/v1/subscriptions/user-1/plan', { price_id: `price_${price!.id}` }],
        ['post', '/api/v1/promotions', { code: 'SPRING', percent: 20 }],
        ['put', '/api/v1/subscriptions/user-1/customer', { customer_id: `cus_${customer.id}` }],
      ]
      const keyed = API_ROUTES.filter(({ method, path }) => /POST|PUT/.test(method) && !path.endsWith('/test-clock'))
      expect(calls).to.have.length(keyed.length)
      const statements = await countStatements(service.ctx)
      try {
        for (const [method, path, body] of calls) {
          const send = () => seller[method](path, body, { headers: { 'Idempotency-Key': path } })
          const first = await send()
          expect(first.status, first.text).to.be.oneOf([200, 201])
          const stored = statements.seen.findLastIndex((sql) => sql.includes('idempotency_keys SET answer_'))
          expect(statements.seen[stored - 1], path)
            .to.be.a('string')
            .that.does.not.match(/^START/)
          expect(statements.seen[stored + 1], path).to.equal('COMMIT')
          expect((await send()).text, path).to.equal(first.text)
        }
      } finally {
        await statements.close()
      }
    })

    it('is 1 to 255 printable ASCII characters, else 400 invalid_request', async () => {
      for (const key of ['!', 'a b', '~'.repeat(255), '{"x":"y"}', "'; DROP TABLE plans; --"]) {
        expect((await post(AN, key)).status, key).to.equal(201)
      }
      for (const key of ['', 'a'.repeat(256), 'caf\u00e9', 'a\tb'])
        expectFieldError(await post(AN, key), 'Idempotency-Key')
    })

    it('is compared exactly', async () => {
      const first = await post(AN, 'Key')
      const others = [await post(AN, 'key'), await post(AN, 'KEY'), await post(AN, 'Key.')]
      const ids = [first, ...others].map(({ body }) => body.data.id)
      expect(new Set(ids)).to.have.property('size', 4)
    })

    it('also applies to PUT, but not to GET and PATCH', async () => {
      const headers = { 'Idempotency-Key': 'k1' }
      await aSubscription(service.ctx, app, await aPlan(service.ctx, app))
      const [an, bo] = [await aCustomer(service.ctx, app, AN), await aCustomer(service.ctx, app, BO)]
      const attach = (id: number) =>
        seller.put('/api/v1/subscriptions/user-1/customer', { customer_id: `cus_${id}` }, { headers })
      expect((await attach(an.id)).status).to.equal(200)
      expectError(await attach(bo.id), 409, 'idempotency_conflict')
      for (const name of ['Chi', 'Dung']) {
        const answer = await seller.patch(`${CUSTOMERS}/cus_${an.id}`, { name }, { headers })
        expect(answer.body.data.name).to.equal(name)
        expect((await seller.get(`${CUSTOMERS}/cus_${an.id}`, { headers })).body.data.name).to.equal(name)
      }
    })

    it('on a checkout opens one payment', async () => {
      const plan = await aPlan(service.ctx, app)
      const body = {
        external_ref: 'user-1',
        mode: 'subscription',
        price_id: `price_${plan.prices[0]!.id}`,
        success_url: 'https://shop.example/ok',
        cancel_url: 'https://shop.example/no',
      }
      const send = () => seller.post('/api/v1/checkout-sessions', body, { headers: { 'Idempotency-Key': 'k1' } })
      const [first, second] = [await send(), await send()]
      expect(first.status).to.equal(201)
      expect(second.text).to.equal(first.text)
      expect((await seller.get('/api/v1/transactions')).body.data).to.have.length(1)
    })

    it('never returns an answer to an unauthenticated caller', async () => {
      await post(AN, 'k1')
      const headers = { 'Idempotency-Key': 'k1', 'X-Signature': '0'.repeat(64) }
      expectError(await seller.post(CUSTOMERS, AN, { headers }), 401, 'unauthorized')
    })

    it('never returns one end user’s answer to another', async () => {
      const clients = await startIdentityClients()
      try {
        const client = await clients.app(service.ctx)
        const send = async (sub: string) =>
          service.call('POST', CUSTOMERS, {
            headers: { ...(await clients.headers(service.ctx, client, sub)), 'Idempotency-Key': 'k1' },
            raw: JSON.stringify(AN),
          })
        const first = await send('user-1')
        expect(first.status).to.equal(201)
        expect((await send('user-1')).text).to.equal(first.text)
        expect((await send('user-2')).body.data.id).not.to.equal(first.body.data.id)
      } finally {
        await clients.stop()
      }
    })
  })

  describe('Idempotency-Key over a database connection that breaks', () => {
    let line: LossyServer
    let lossy: LossyDatabase

    beforeEach(async () => {
      lossy = await openLossyDatabase()
      line = lossy.line
      // The service reads its context for each request.
      Object.assign(service.ctx, { db: lossy.db })
    })

    afterEach(async () => {
      Object.assign(service.ctx, { db: testDatabase().db })
      await lossy.close()
    })

    for (const fate of ['lost', 'answer lost'] as const) {
      it(`does its work once and reports it, whichever of its statements is ${fate}`, async () => {
        await breakAtEach(fate, { statement: /./, isGoneForGood: false })
      })

      it(`does its work once and reports it, if a COMMIT is ${fate} and the database is gone afterwards`, async () => {
        await breakAtEach(fate, { statement: /^COMMIT/, isGoneForGood: true })
      })
    }

    /** Breaks the connection at the first such statement of a request, then at the second of another, and so on; repeats each request. */
    async function breakAtEach(
      fate: Fate,
      { statement, isGoneForGood }: { statement: RegExp; isGoneForGood: boolean },
    ) {
      for (let breaksAt = 1, hasBroken = true; hasBroken; breaksAt += 1) {
        let seen = 0
        line.fateOf = (text) => {
          const isMeant = statement.test(text)
          if (isMeant) seen += 1
          return (isMeant && seen === breaksAt) || (isGoneForGood && seen >= breaksAt) ? fate : 'pass'
        }
        const key = `${fate} ${breaksAt}`
        const first = await post({ ...AN, name: key }, key)
        hasBroken = seen >= breaksAt
        line.fateOf = () => 'pass'
        // Without the database the key could not be released.
        service.ctx.clock.advance('21s')
        const second = await post({ ...AN, name: key }, key)
        expect(second.status, `${key}: ${second.text}`).to.equal(201)
        if (first.status === 201) expect(second.text, key).to.equal(first.text)
        else expect(first.status, `${key}: ${first.text}`).to.equal(503)
        expect(await lossy.db.count(customers, 'WHERE name = ?', [key]), key).to.equal(1)
      }
    }
  })

  function post(body: object, key: string) {
    return seller.post(CUSTOMERS, body, { headers: { 'Idempotency-Key': key } })
  }

  async function numberOfCustomers(): Promise<number> {
    return (await seller.get(CUSTOMERS)).body.data.length
  }

  function untilKeyIsClaimed(): Promise<void> {
    return until(async () => (await service.ctx.db.count(idempotencyKeys, '')) === 1)
  }
})
