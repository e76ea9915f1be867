import { expect } from 'chai'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { z } from 'zod'
import { API_ROUTES } from '#daemon/app.ts'
import { startService, type Response, type SellerClient, type TestService } from '../support/api.ts'
import {
  aCheckout,
  aCustomer,
  anApp,
  aPlan,
  aPromotion,
  aSubscription,
  FREE_TRIAL,
  MONTHLY,
  priceId,
  tokenOf,
} from '../support/factories.ts'
import { refusalOf } from '../support/expect-error.ts'
import { mutationsOf, type BodyRules } from '../support/hostile-values.ts'

type Body = Parameters<typeof mutationsOf>[0]

/** A call with a valid body. `$plan`, `$price` and `$customer` stand for ids of the app. */
interface Call extends BodyRules {
  readonly route: string
  /** Distinguishes calls of one route. */
  readonly kind?: string
  readonly body: Body
}

const PRICE = { name: 'Monthly', ...MONTHLY, trial: { ...FREE_TRIAL } }
const CUSTOMER = {
  name: 'An',
  email: 'an@example.com',
  merchant_customer_id: 'crm-1',
  cc_emails: ['cc@example.com'],
  bcc_emails: ['bcc@example.com'],
  locale: 'vi',
}
const CHECKOUT = {
  external_ref: 'user-9',
  success_url: 'https://shop.example/ok',
  cancel_url: 'https://shop.example/no',
  customer_id: '$customer',
  payment_method: 'test',
  expires_in: 1800,
  metadata: { order: 'A-1042' },
}
const PROMOTION = {
  plan_codes: ['$code'],
  every_period: false,
  valid_until: '2027-01-31 00:00:00',
  max_uses: 10,
  once_per_user: true,
  on_page: false,
}
const PROMOTED = Object.keys(PROMOTION)
const LIFTED = ['plan_codes', 'valid_until', 'max_uses']
const CLEARED = ['merchant_customer_id', 'cc_emails', 'bcc_emails', 'locale']

const CALLS: readonly Call[] = [
  {
    route: 'POST /api/v1/plans',
    body: { code: 'fresh', name: 'Fresh', description: 'All of it', prices: [{ ...MONTHLY }, PRICE] },
    optional: ['description', 'prices.*.name', 'prices.*.trial'],
    nullable: ['description', 'prices.*.name', 'prices.*.trial'],
    mayBeEmpty: ['description'],
  },
  {
    route: 'PATCH /api/v1/plans/:id',
    body: { name: 'Fresh', description: 'All of it', status: 'active' },
    optional: ['name', 'description', 'status'],
    nullable: ['description'],
    mayBeEmpty: ['description'],
  },
  {
    route: 'POST /api/v1/plans/:id/prices',
    body: PRICE,
    optional: ['name', 'trial'],
    nullable: ['name', 'trial'],
  },
  {
    route: 'PATCH /api/v1/plans/:id/prices/:priceId',
    body: { name: 'Monthly', status: 'active' },
    optional: ['name', 'status'],
    nullable: ['name'],
  },
  {
    route: 'POST /api/v1/promotions',
    kind: 'of a percentage',
    body: { code: 'TET', percent: 20, ...PROMOTION },
    optional: ['percent', ...PROMOTED],
    nullable: ['percent', ...LIFTED],
  },
  {
    route: 'POST /api/v1/promotions',
    kind: 'of an amount',
    body: { code: 'TET', amount: 30_000, currency: 'VND', ...PROMOTION },
    optional: ['amount', 'currency', ...PROMOTED],
    nullable: ['amount', 'currency', ...LIFTED],
  },
  {
    route: 'PATCH /api/v1/promotions/:id',
    body: { status: 'active', valid_until: '2027-01-31 00:00:00', max_uses: 10 },
    optional: ['status', 'valid_until', 'max_uses'],
    nullable: ['valid_until', 'max_uses'],
  },
  { route: 'POST /api/v1/customers', body: CUSTOMER, optional: CLEARED, nullable: CLEARED },
  {
    route: 'PATCH /api/v1/customers/:id',
    body: CUSTOMER,
    optional: ['name', 'email', ...CLEARED],
    nullable: CLEARED,
  },
  {
    route: 'POST /api/v1/checkout-sessions',
    kind: 'in mode subscription',
    body: { ...CHECKOUT, mode: 'subscription', price_id: '$price', skip_trial: false, promotion_code: 'OFFER' },
    optional: [
      'customer_id',
      'payment_method',
      'expires_in',
      'skip_trial',
      'promotion_code',
      'metadata',
      'metadata.order',
    ],
    nullable: [],
    mayBeEmpty: ['metadata', 'metadata.order'],
  },
  {
    route: 'POST /api/v1/checkout-sessions',
    kind: 'in mode payment',
    body: { ...CHECKOUT, mode: 'payment', plan_ref: 'book', plan_name: 'Book', amount: 5000, currency: 'VND' },
    optional: ['customer_id', 'payment_method', 'expires_in', 'plan_name', 'metadata', 'metadata.order'],
    nullable: [],
    mayBeEmpty: ['metadata', 'metadata.order'],
  },
  { route: 'PUT /api/v1/subscriptions/:externalRef/plan', body: { price_id: '$price' }, optional: [], nullable: [] },
  {
    route: 'PUT /api/v1/subscriptions/:externalRef/customer',
    body: { customer_id: '$customer' },
    optional: [],
    nullable: [],
  },
  {
    route: 'POST /api/v1/test-clock',
    kind: 'by seconds',
    body: { advance_seconds: 5 },
    optional: ['advance_seconds'],
    nullable: [],
  },
  {
    route: 'POST /api/v1/test-clock',
    kind: 'by a time',
    body: { now: '2027-01-01 00:00:00' },
    optional: ['now'],
    nullable: [],
  },
]

/** A text that cannot be a promotion's code is one that no promotion has. */
const UNKNOWN_CODE = 'promotion_not_valid'

let service: TestService
let seller: SellerClient
let ids: Record<'plan' | 'price' | 'customer' | 'promotion' | 'code', string>
describe('hostile values', () => {
  beforeEach(async () => {
    service = await startService()
    const app = await anApp(service.ctx)
    seller = service.seller(app)
    const plan = await aPlan(service.ctx, app)
    const customer = await aCustomer(service.ctx, app)
    const promotion = await aPromotion(service.ctx, app, { code: 'OFFER' })
    ids = {
      plan: `plan_${plan.id}`,
      price: priceId(plan),
      customer: `cus_${customer.id}`,
      promotion: `promo_${promotion.id}`,
      code: plan.code,
    }
    await aSubscription(service.ctx, app, plan)
  })

  afterEach(() => service.stop())

  describe('an invalid value of a field', () => {
    it('is tried on every call with a body', () => {
      const writes = API_ROUTES.filter(({ method }) => method !== 'GET').map(({ method, path }) => `${method} ${path}`)
      expect([...new Set(CALLS.map(({ route }) => route))].sort()).to.deep.equal(writes.sort())
    })

    it('is tried on every field of each body', () => {
      for (const { method, path, body } of API_ROUTES.filter((route) => route.body !== null)) {
        const route = `${method} ${path}`
        const tried = new Set(
          CALLS.filter((call) => call.route === route).flatMap((call) => Object.keys(call.body as object)),
        )
        expect([...tried], route).to.have.members(namesOf(body))
      }
    })

    for (const call of CALLS) {
      it(`of ${[call.route, call.kind].join(' ').trim()} answers 400 and names the field`, async () => {
        const mutations = mutationsOf(call.body, call)
        expect(mutations.length).to.be.greaterThan(15)
        await eachOf(mutations, async ({ field, raw, what }) => {
          const answer = await send(call.route, raw)
          const shown = `${field} = ${what}: ${answer.status} ${answer.text.slice(0, 300)}`
          expect(answer.status, shown).to.equal(400)
          const codes = ['invalid_request', 'price_not_found', ...(field === 'promotion_code' ? [UNKNOWN_CODE] : [])]
          expect(answer.body.error.code, shown).to.be.oneOf(codes)
          expect(isAbout(answer.body.error.field, field), shown).to.equal(true)
          expect(answer.body.error.message, shown).to.contain(answer.body.error.field)
        })
        const good = await send(call.route, JSON.stringify(call.body))
        expect(good.status, `the unchanged body: ${good.text}`).to.be.oneOf([200, 201])
      })
    }

    it('is a name that changes the direction of the text beside it, or breaks its line', async () => {
      const turning = ['\u061c', '\u2028', '\u2029', '\u202a', '\u202e', '\u2066', '\u2069', '\u0085', '\n']
      const payment = { ...CHECKOUT, mode: 'payment', plan_ref: 'book', amount: 5000, currency: 'VND' }
      const calls = [
        ['POST /api/v1/plans', 'name', (name: string) => ({ code: 'fresh', name, prices: [{ ...MONTHLY }] })],
        ['PATCH /api/v1/plans/:id', 'name', (name: string) => ({ name })],
        ['POST /api/v1/plans/:id/prices', 'name', (name: string) => ({ ...PRICE, name })],
        ['POST /api/v1/customers', 'name', (name: string) => ({ ...CUSTOMER, name })],
        ['PATCH /api/v1/customers/:id', 'name', (name: string) => ({ name })],
        ['POST /api/v1/checkout-sessions', 'plan_name', (name: string) => ({ ...payment, plan_name: name })],
      ] as const
      for (const [route, field, bodyOf] of calls) {
        for (const character of turning) {
          const answer = await send(route, JSON.stringify(bodyOf(`Pro${character}moc.live`)))
          const shown = `${route} ${JSON.stringify(character)}: ${answer.text}`
          expect([answer.status, answer.body.error?.field], shown).to.deep.equal([400, field])
        }
        // A mark that right-to-left names need.
        const good = await send(route, JSON.stringify(bodyOf('מנוי\u200f Pro')))
        expect(good.status, `${route} ${good.text}`).to.be.oneOf([200, 201])
      }
      for (const name of ['Shop\u202e', 'Shop\u2067'])
        expect((await refusalOf(anApp(service.ctx, { name }))).message).to.match(/^name: must not contain/)
    })

    it('changes no prototype', () => {
      expect(({} as { polluted?: unknown }).polluted).to.equal(undefined)
      expect(Object.keys(Object.prototype)).to.deep.equal([])
    })
  })

  describe('any JSON at all', () => {
    for (const route of new Set(CALLS.map((call) => call.route))) {
      it(`as the body of ${route} answers in the envelope, never 5xx`, async () => {
        const samples = fc.sample(fc.json({ maxDepth: 4 }), { numRuns: 20, seed: 20260301 })
        await eachOf(samples, async (raw) => expectEnvelope(await send(route, raw), raw))
      })
    }

    it('inside good bodies answers in the envelope, never 5xx', async () => {
      const names = fc.constantFrom('prices', 'trial', 'amount', 'currency', 'interval_unit', 'mode', 'name', 'x')
      const bodies = fc.dictionary(
        names,
        fc.oneof(fc.jsonValue(), fc.constant([PRICE]), fc.constantFrom('payment', 'month', 'VND', 1)),
      )
      for (const call of CALLS) {
        await eachOf(fc.sample(bodies, { numRuns: 12, seed: 20260302 }), async (extra) => {
          const raw = JSON.stringify({ ...(call.body as object), ...extra })
          expectEnvelope(await send(call.route, raw), raw)
        })
      }
    })
  })

  describe('hostile addresses', () => {
    const VALUES = [
      '',
      ' ',
      '0',
      '-1',
      '1e3',
      'x',
      '%',
      '%00',
      '%ff',
      '%0d%0aX-Evil: 1',
      '💳',
      "' OR 1=1 --",
      'a'.repeat(3000),
    ]
    const IDS = [
      ...VALUES,
      '%2e%2e%2f',
      'plan_99999999999999999999',
      'plan_9007199254740991',
      'cus_1%00',
      'evt_1',
      '__proto__',
    ]
    const CURSORS = ['0.1', '999999999999999.1', '8640000000000000.1', '1.9007199254740991'].map((text) =>
      Buffer.from(text).toString('base64url'),
    )

    it('as ids in paths answer 400 or 404, never 5xx', async () => {
      const routes = API_ROUTES.filter(({ path }) => path.includes(':'))
      const targets = routes.flatMap(({ method, path }) =>
        IDS.map((text) => ({ method, target: asSent(path.replace(/:\w+/g, text)) })),
      )
      await eachOf(targets, async ({ method, target }) => {
        const answer = await (method === 'GET' ? seller.get(target) : seller[verb(method)](target, { x: 1 }))
        expect(answer.status, `${method} ${target}`).to.be.oneOf([400, 404, 405])
      })
    })

    it('as query values answer 200, or 400 that names the value, never 5xx', async () => {
      const names = [
        'status',
        'limit',
        'cursor',
        'email',
        'merchant_customer_id',
        'external_ref',
        'flagged',
        '__proto__',
      ]
      const lists = API_ROUTES.filter(({ method, path }) => method === 'GET' && !path.includes(':'))
      for (const { path, words } of lists) {
        const taken = Object.keys(words.filter?.shape ?? {})
        const queries = names.flatMap((name) => [
          // A name that the list does not take is refused whatever its value is.
          ...(taken.includes(name) ? [...VALUES, ...CURSORS] : ['x']).map((value) => ({
            name,
            query: `${name}=${value}`,
          })),
          { name, query: `${name}=1&${name}=1` },
          { name, query: `${name}[]=x&${name}[a]=x` },
        ])
        await eachOf(queries, async ({ name, query }) => {
          const answer = await seller.get(asSent(`${path}?${query}`))
          expect(answer.status, `${path}?${query} ${answer.text.slice(0, 200)}`).to.be.oneOf([200, 400])
          if (answer.status === 400) expect(answer.body.error.field, query).to.be.oneOf([name, `${name}[]`])
        })
      }
    })
  })

  describe('hostile bodies of hosted pages and notifications', () => {
    const RAWS = [
      '',
      '{',
      '[]',
      'null',
      '"x"',
      '{}',
      '{"payment_method":null}',
      '{"payment_method":["test"]}',
      '{"payment_method":{"x":1}}',
    ]
    RAWS.push(
      '{"payment_method":"constructor"}',
      '{"payment_method":"__proto__"}',
      '{"payment_method":"\\u0000"}',
      '{"x":1}',
      'payment_method=x',
      '\u0000',
    )
    const TYPES = [
      'application/json',
      'application/x-www-form-urlencoded',
      'text/plain',
      'multipart/form-data; boundary=x',
      '',
    ]

    it('answer 4xx, never 5xx', async () => {
      const app = await anApp(service.ctx)
      const token = tokenOf(await aCheckout(service.ctx, app, { price_id: priceId(await aPlan(service.ctx, app)) }))
      const paths = [
        `/checkout/${token}/resolve`,
        '/api/v1/webhooks/card-provider',
        '/api/v1/webhooks/bank-transfer-provider',
      ]
      const calls = paths.flatMap((path) => TYPES.flatMap((type) => RAWS.map((raw) => ({ path, type, raw }))))
      await eachOf(calls, async ({ path, type, raw }) => {
        const answer = await service.call('POST', path, { raw, headers: { 'Content-Type': type } })
        expect(answer.status, `${path} ${type} ${raw} ${answer.text.slice(0, 200)}`).to.be.within(400, 499)
      })
    })
  })

  type WriteVerb = 'post' | 'put' | 'patch'

  function verb(method: string): WriteVerb {
    return method.toLowerCase() as WriteVerb
  }

  function send(route: string, raw: string): Promise<Response> {
    const [method = '', path = ''] = route.split(' ')
    const [, , , objects = ''] = path.split('/')
    const named: Readonly<Record<string, string>> = { customers: ids.customer, promotions: ids.promotion }
    const target = path
      .replace(':priceId', ids.price)
      .replace(':externalRef', 'user-1')
      .replace(':id', named[objects] ?? ids.plan)
    const filled = raw
      .replaceAll('$price', ids.price)
      .replaceAll('$customer', ids.customer)
      .replaceAll('$code', ids.code)
    return seller[verb(method)](target, null, { raw: filled, headers: { 'Content-Type': 'application/json' } })
  }

  /** Twenty at a time, as calls of a busy service come. */
  async function eachOf<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
    for (let index = 0; index < all.length; index += 20) await Promise.all(all.slice(index, index + 20).map(work))
  }

  /** The target as a client sends it: a lone `%` stays, other characters that a URL must not contain are encoded. */
  function asSent(target: string): string {
    const { pathname, search } = new URL(target, 'http://localhost')
    return pathname + search
  }

  /** Whether the named field is the invalid one, or lies inside it. */
  function isAbout(named: string | null, field: string): boolean {
    return named !== null && (named === field || named.startsWith(`${field}.`))
  }

  function expectEnvelope(answer: Response, raw: string): void {
    expect(answer.status, `${raw}: ${answer.text}`).to.be.lessThan(500)
    if (answer.status < 400) return
    expect(answer.body.success).to.equal(false)
    expect(answer.body.error, raw).to.have.all.keys('code', 'message', 'field', 'request_id')
  }
})

/** The fields of a body, of each form that it may have. */
function namesOf(body: unknown): string[] {
  const schemas = body instanceof z.ZodUnion ? body.options : [body]
  return [...new Set(schemas.flatMap((schema) => (schema instanceof z.ZodObject ? Object.keys(schema.shape) : [])))]
}
