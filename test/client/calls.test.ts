import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { API_ROUTES } from '#daemon/app.ts'
import { ApiError, ConnectionError, Paygate, PaygateError } from '../../client/src/index.ts'
import { listen, stopServer } from '../support/http-server.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'

const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }

describe('the client, against the service', () => {
  let scenario: Scenario
  let paygate: Paygate
  const called = new Set<string>()

  beforeEach(async () => {
    scenario = await startScenario({ methods: ['test'] })
    // Its clock is the real one, as the client's is.
    scenario.service.ctx.clock.setToPresent()
    paygate = new Paygate({
      baseUrl: scenario.service.url,
      apiKey: scenario.app.apiKey,
      apiSecret: scenario.app.secret,
      fetch: (url, options) => {
        called.add(`${options?.method ?? 'GET'} ${new URL(url).pathname}`)
        return fetch(url, options)
      },
    })
  })

  afterEach(() => scenario.service.stop())

  it('makes every call of the API for servers', async () => {
    const plan = await paygate.plans.create({
      code: 'premium',
      name: 'Premium',
      prices: [{ amount: 99000, currency: 'VND', interval_unit: 'month', interval_count: 1 }],
    })
    const [price] = plan.prices
    if (!price) throw new Error('the plan has no price')
    expect(await paygate.plans.get(plan.id)).to.deep.equal(plan)
    expect((await paygate.plans.update(plan.id, { name: 'Plus' })).name).to.equal('Plus')
    expect(await paygate.plans.list({ status: 'archived' })).to.deep.equal([])
    const dear = { amount: 990000, currency: 'VND', interval_unit: 'year' as const, interval_count: 1 }
    expect((await paygate.prices.create(plan.id, dear)).prices).to.have.length(2)
    expect((await paygate.prices.update(plan.id, price.id, { name: 'Monthly' })).prices[0]?.name).to.equal('Monthly')

    const promotion = await paygate.promotions.create({ code: 'welcome', percent: 10, on_page: true })
    expect(await paygate.promotions.get(promotion.id)).to.deep.equal(promotion)
    expect((await paygate.promotions.update(promotion.id, { max_uses: 5 })).max_uses).to.equal(5)
    expect((await paygate.promotions.list()).data.map(({ code }) => code)).to.deep.equal(['WELCOME'])

    const customer = await paygate.customers.create({ name: 'An', email: 'an@example.com' })
    expect((await paygate.customers.update(customer.id, { locale: 'vi' })).locale).to.equal('vi')
    expect((await paygate.customers.get(customer.id)).locale).to.equal('vi')
    expect((await paygate.customers.list({ email: 'an@example.com' })).data).to.have.length(1)

    const checkout = await paygate.checkoutSessions.create({
      mode: 'subscription',
      external_ref: 'user/42?a=1',
      price_id: price.id,
      ...URLS,
    })
    await scenario.pay(checkout)
    expect((await paygate.subscriptions.get('user/42?a=1')).status).to.equal('active')
    await paygate.subscriptions.switchPlan('user/42?a=1', { price_id: price.id })
    const attached = await paygate.subscriptions.attachCustomer('user/42?a=1', { customer_id: customer.id })
    expect(attached.customer_id).to.equal(customer.id)

    const { data: listed } = await paygate.subscriptions.list({ status: 'active', plan: plan.code })
    expect(listed).to.deep.equal([{ external_ref: 'user/42?a=1', ...attached }])

    const { data: transactions } = await paygate.transactions.list({ external_ref: 'user/42?a=1', flagged: false })
    expect(await paygate.transactions.get(transactions[0]?.transaction_id ?? 0)).to.deep.equal(transactions[0])
    const { data: events } = await paygate.events.list({ limit: 1 })
    expect(await paygate.events.get(events[0]?.id ?? '')).to.deep.equal(events[0])
    const { now } = await paygate.testClock.get()
    expect((await paygate.testClock.advance({ advance_seconds: 86400 })).now > now).to.equal(true)

    const missing = API_ROUTES.filter(({ method, path }) => {
      const pattern = new RegExp(`^${method} ${path.replace(/:\w+/g, '[^/]+')}$`)
      return ![...called].some((call) => pattern.test(call))
    })
    expect(missing.map(({ method, path }) => `${method} ${path}`)).to.deep.equal([])
  })

  it('has each call in the table of its README', () => {
    const readme = readFileSync(join(import.meta.dirname, '../../client/README.md'), 'utf8')
    const { webhooks, ...parts } = paygate
    expect(readme).to.include(`paygate.webhooks.${Object.keys(webhooks).join()}(`)
    const written = new Map([...readme.matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].map(([, name, calls]) => [name, calls]))
    for (const [name, calls] of Object.entries(parts)) {
      const names = [...(written.get(name) ?? '').matchAll(/`(\w+)(?:\([^`]*\))?`/g)].map(([, call]) => call)
      expect(names, name).to.have.members(Object.keys(calls))
    }
  })

  it('iterates over a list page by page, and returns one page to await', async () => {
    for (const name of ['One', 'Two', 'Three', 'Four', 'Five']) {
      await paygate.customers.create({ name, email: 'an@example.com' })
    }
    const names: string[] = []
    for await (const { name } of paygate.customers.list({ limit: 2 })) names.push(name)
    expect(names).to.deep.equal(['Five', 'Four', 'Three', 'Two', 'One'])
    const { data, next_cursor } = await paygate.customers.list({ limit: 2 })
    expect(data.map(({ name }) => name)).to.deep.equal(['Five', 'Four'])
    const next = await paygate.customers.list({ limit: 2, cursor: next_cursor ?? '' })
    expect(next.data.map(({ name }) => name)).to.deep.equal(['Three', 'Two'])
  })

  it('returns lists that are promises, and that can be iterated, whether they come in pages or as a whole', async () => {
    const prices = [{ amount: 99000, currency: 'VND', interval_unit: 'month' as const, interval_count: 1 }]
    for (const code of ['basic', 'premium']) await paygate.plans.create({ code, name: code, prices })
    const [customers, plans] = [paygate.customers.list(), paygate.plans.list()]
    for (const list of [customers, plans]) {
      expect(list).to.be.instanceOf(Promise)
      expect(list.finally(() => undefined)).to.be.instanceOf(Promise)
    }
    const [page, all] = await Promise.all([customers, plans])
    expect([page.data.length, all.length]).to.deep.equal([0, 2])
    const codes: string[] = []
    for await (const { code } of paygate.plans.list()) codes.push(code)
    expect(codes).to.deep.equal(['premium', 'basic'])
    const refused = await paygate.customers.list({ limit: 1000 }).catch((error: unknown) => error)
    expect((refused as ApiError).field).to.equal('limit')
  })

  it('throws a typed error if the service refuses', async () => {
    const wrong = await paygate.customers.create({ name: 'An', email: 'nobody' }).catch((error: unknown) => error)
    expect(wrong).to.be.instanceOf(ApiError)
    const { status, code, field, requestId, message } = wrong as ApiError
    expect({ status, code, field }).to.deep.equal({ status: 400, code: 'invalid_request', field: 'email' })
    expect(requestId).to.match(/^req_/)
    expect(message).to.include('email')
    const key = { idempotencyKey: 'k-1' }
    await paygate.customers.create({ name: 'An', email: 'an@example.com' }, key)
    const other = await paygate.customers
      .create({ name: 'Bo', email: 'bo@example.com' }, key)
      .catch((error: unknown) => error)
    expect((other as ApiError).code).to.equal('idempotency_conflict')
  })
})

describe('the client, where the connection is unreliable', () => {
  let server: Server
  let url: string
  const seen: { method: string; headers: IncomingHttpHeaders; body: string }[] = []
  let answers: ((response: ServerResponse) => void)[]

  const refuse =
    (status: number, headers: Record<string, string> = {}) =>
    (response: ServerResponse) =>
      void response.writeHead(status, headers).end('<html>bad gateway</html>')
  const accept = (response: ServerResponse): void => {
    response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end('{"success":true,"data":{"now":"2026-12-01 09:30:00"}}')
  }
  const paygate = (options: object = {}): Paygate =>
    new Paygate({ baseUrl: `${url}/`, apiKey: 'pk_test_1', apiSecret: 'sk_test_1', ...options })

  beforeEach(async () => {
    seen.length = 0
    answers = []
    server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        seen.push({ method: request.method ?? '', headers: request.headers, body: Buffer.concat(chunks).toString() })
        ;(answers.shift() ?? accept)(response)
      })
    })
    url = `http://127.0.0.1:${await listen(server)}`
  })

  afterEach(() => stopServer(server))

  it('retries with the same key and a new signature after 429, 5xx, a conflict with a running request, and a lost connection', async () => {
    answers = [
      refuse(429, { 'Retry-After': '0' }),
      refuse(502),
      refuse(409, { 'Retry-After': '0' }),
      (response) => response.destroy(),
    ]
    await paygate({ maxRetries: 4 }).testClock.advance({ advance_seconds: 1 })
    expect(seen).to.have.length(5)
    expect(new Set(seen.map(({ headers }) => headers['idempotency-key'])).size).to.equal(1)
    expect(seen[0]?.headers['idempotency-key']).to.match(/^[\da-f-]{36}$/)
    expect(seen.map(({ body }) => body)).to.deep.equal(seen.map(() => '{"advance_seconds":1}'))
  })

  it('does not retry permanent refusals, nor more often than maxRetries', async () => {
    answers = [refuse(400)]
    const refused = await paygate()
      .testClock.get()
      .catch((error: unknown) => error)
    expect([(refused as ApiError).status, (refused as ApiError).requestId, seen.length]).to.deep.equal([400, null, 1])
    answers = [refuse(409)]
    expect(
      await paygate()
        .testClock.get()
        .catch((error: unknown) => error),
    ).to.be.instanceOf(ApiError)
    expect(seen).to.have.length(2)
    answers = [refuse(503), refuse(503), accept]
    expect(
      await paygate({ maxRetries: 1 })
        .testClock.get()
        .catch((error: unknown) => error),
    ).to.be.instanceOf(ApiError)
    expect(seen).to.have.length(4)
  })

  it('does not wait longer than a minute for the next attempt', async () => {
    answers = [refuse(503, { 'Retry-After': '61' })]
    const refused = await paygate()
      .testClock.get()
      .catch((error: unknown) => error)
    expect([(refused as ApiError).status, seen.length]).to.deep.equal([503, 1])
  })

  it('gives up an attempt that takes too long, and says so', async () => {
    answers = [() => undefined, () => undefined]
    const late = await paygate({ timeoutMs: 1000, maxRetries: 1 })
      .testClock.get()
      .catch((error: unknown) => error)
    expect(late).to.be.instanceOf(ConnectionError)
    expect((late as Error).message).to.equal('GET /test-clock: no answer in 1000 ms')
    expect(seen).to.have.length(2)
  })

  it('follows no redirect: key, signature and body reach no other server', async () => {
    const elsewhere: string[] = []
    const other = createServer((request, response) => {
      elsewhere.push(request.url ?? '')
      accept(response)
    })
    try {
      const location = `http://127.0.0.1:${await listen(other)}/api/v1/test-clock`
      for (const status of [301, 302, 303, 307, 308]) {
        answers = [refuse(status, { location })]
        const error = await paygate()
          .testClock.advance({ advance_seconds: 1 })
          .catch((thrown: unknown) => thrown)
        expect(error).to.be.instanceOf(ApiError)
        const { code, message } = error as ApiError
        expect(code).to.equal('unexpected_response')
        expect(message).to.equal(
          `POST /test-clock: ${url} redirects to ${location}, which is not followed: check baseUrl`,
        )
      }
      expect(seen).to.have.length(5)
      expect(elsewhere).to.deep.equal([])
    } finally {
      await stopServer(other)
    }
  })

  it('refuses an id or external_ref that a URL cannot hold, before anything is sent', async () => {
    const checkout = (external_ref: string): Promise<unknown> =>
      paygate().checkoutSessions.create({ mode: 'subscription', external_ref, price_id: 'price_1', ...URLS })
    for (const part of ['.', '..', '']) {
      for (const call of [
        checkout(part),
        paygate().subscriptions.get(part),
        paygate().subscriptions.attachCustomer(part, { customer_id: 'cus_1' }),
        paygate().subscriptions.switchPlan(part, { price_id: 'price_1' }),
        paygate().plans.get(part),
      ]) {
        const error = await call.catch((thrown: unknown) => thrown)
        expect(error).to.be.instanceOf(PaygateError)
        expect((error as Error).message).to.equal(
          `an external_ref or an id must not be empty, . or ..: it is "${part}"`,
        )
      }
    }
    expect(seen).to.deep.equal([])
  })

  it('refuses an idempotency key that no header can hold, before anything is sent', async () => {
    for (const idempotencyKey of ['đơn-1', 'é', 'a\nb', '']) {
      const call = paygate().customers.create({ name: 'An', email: 'an@example.com' }, { idempotencyKey })
      const error = await call.catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(PaygateError).and.not.instanceOf(ConnectionError)
      expect((error as Error).message)
        .to.include('printable ASCII')
        .and.to.include(`"${idempotencyKey}"`)
    }
    expect(seen).to.deep.equal([])
  })

  it('takes a 200 that is not of the API for what it is, and does not repeat the call', async () => {
    const page = (response: ServerResponse): void =>
      void response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end('<html>welcome</html>')
    const other = (response: ServerResponse): void =>
      void response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"status":"ok"}')
    for (const [answer, type] of [
      [page, 'text/html'],
      [other, 'application/json'],
    ] as const) {
      seen.length = 0
      answers = [answer]
      const error = await paygate()
        .testClock.get()
        .catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(ApiError)
      const { status, code, requestId, message } = error as ApiError
      expect({ status, code, requestId }).to.deep.equal({ status: 200, code: 'unexpected_response', requestId: null })
      expect(message).to.equal(`GET /test-clock: ${url} answered 200 with ${type}, not as the API does: check baseUrl`)
      expect(seen).to.have.length(1)
    }
  })

  it('names an option that is missing or wrong at once, and never the secret', () => {
    const options = { baseUrl: url, apiKey: 'pk_test_1', apiSecret: 'sk_1' }
    const wrong: [object, string][] = [
      [{ baseUrl: undefined }, 'baseUrl'],
      [{ baseUrl: '' }, 'baseUrl'],
      [{ baseUrl: 'billing.example.com' }, 'baseUrl'],
      [{ baseUrl: 'ftp://billing.example.com' }, 'baseUrl'],
      [{ apiKey: undefined }, 'apiKey is missing'],
      [{ apiKey: '' }, 'apiKey is missing'],
      [{ apiSecret: undefined }, 'apiSecret is missing'],
      [{ apiSecret: '' }, 'apiSecret is missing'],
      [{ apiSecret: 'sk_canary\n' }, 'apiSecret holds blanks'],
      [{ apiKey: 'sk_canary' }, 'apiKey is the pk_… of your app: the one given is a sk_…'],
      [{ apiSecret: 'pk_canary' }, 'apiSecret is the sk_… of your app: the one given is a pk_…'],
      [{ apiSecret: 'whsec_canary' }, 'apiSecret is the sk_… of your app: the one given is a whsec_…'],
    ]
    for (const [change, message] of wrong) {
      const make = (): Paygate => new Paygate({ ...options, ...change })
      expect(make, JSON.stringify(change)).to.throw(TypeError, message)
      expect(make).not.to.throw(/canary/)
    }
  })

  it('takes an address with /api/v1 or without it, and says who calls', async () => {
    const paths: string[] = []
    const call = (baseUrl: string): Promise<unknown> => {
      const recorded: typeof fetch = (target, init) => {
        paths.push(new URL(target).pathname)
        return fetch(target, init)
      }
      return paygate({ baseUrl, fetch: recorded }).testClock.get()
    }
    for (const end of ['', '/', '/api/v1', '/api/v1/', '/behind', '/behind/api/v1']) await call(url + end)
    const [own, behind] = ['/api/v1/test-clock', '/behind/api/v1/test-clock']
    expect(paths).to.deep.equal([own, own, own, own, behind, behind])
    expect(new Set(seen.map(({ headers }) => headers['user-agent']))).to.deep.equal(new Set(['paygate-client/0.2']))
  })

  it('gives a single call a time limit of its own', async () => {
    answers = [() => undefined]
    const late = await paygate({ maxRetries: 0 })
      .testClock.get({ timeoutMs: 40 })
      .catch((error: unknown) => error)
    expect((late as Error).message).to.equal('GET /test-clock: no answer in 40 ms')
  })

  it('ends a call early by a signal, also while it waits for the next attempt', async () => {
    const ended = new AbortController()
    answers = [
      (response) => {
        refuse(503, { 'Retry-After': '30' })(response)
        response.once('close', () => ended.abort(new Error('enough')))
      },
    ]
    const error = await paygate()
      .testClock.get({ signal: ended.signal })
      .catch((thrown: unknown) => thrown)
    expect((error as Error).message).to.equal('enough')
    expect(seen).to.have.length(1)
  })
})
