import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { z } from 'zod'
import { createApp } from '#apps/create-app.ts'
import { presentApp } from '#apps/present.ts'
import { setRealtime } from '#apps/set-realtime.ts'
import { getApp } from '#apps/store.ts'
import { updateApp } from '#apps/update-app.ts'
import { addBankAccount } from '#bank-accounts/add-bank-account.ts'
import { presentBankAccount } from '#bank-accounts/present-bank-account.ts'
import { findBankAccount } from '#bank-accounts/store.ts'
import { updateBankAccount } from '#bank-accounts/update-bank-account.ts'
import { operator } from '#commands/caller.ts'
import type { Command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import { showCustomer } from '#customers/show-customer.ts'
import { API_ROUTES } from '#daemon/app.ts'
import { presentPlan } from '#plans/present.ts'
import { getPlan } from '#plans/store.ts'
import { presentPromotion } from '#promotions/present.ts'
import { getPromotion } from '#promotions/store.ts'
import { sha256Hex } from '#shared/crypto.ts'
import { parseNumericId } from '#shared/ids.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { startService, type SellerClient, type TestService } from './support/api.ts'
import { aCustomer, anApp, aPlan, aPromotion, FREE_TRIAL, MONTHLY, YEARLY, type TestApp } from './support/factories.ts'
import { aServiceAccountFile } from './support/service-account.ts'

type Fields = Readonly<Record<string, unknown>>

/** A thing that has one of each field: `read` shows it as it is stored. */
interface Thing {
  readonly schema: z.ZodType
  change(body: Fields): Promise<Fields>
  read(): Promise<Fields>
}

/** `sent` has a value of each field of the schema that a new thing does not have; `shown` has those that are shown in another form. */
interface Change {
  readonly sent: Fields
  readonly shown?: Fields
  open(): Promise<Thing>
}

/** As `Change`, of a call that makes the thing. */
interface Creation {
  readonly sent: Fields
  readonly shown?: Fields
  schema(): z.ZodType
  create(body: Fields): Promise<Fields>
}

const LOGO = '<svg xmlns="http://www.w3.org/2000/svg"/>'
const CUSTOMER = {
  name: 'Binh',
  email: 'binh@example.com',
  merchant_customer_id: 'crm-2',
  cc_emails: ['cc@example.com'],
  bcc_emails: ['bcc@example.com'],
  locale: 'vi',
}
const PRICE = { name: 'Weekly', ...MONTHLY, interval_unit: 'week', interval_count: 2, trial: { ...FREE_TRIAL } }

/** Calls with a body that make or change nothing that can be read back field by field. */
const EXEMPT = ['POST /api/v1/checkout-sessions', 'POST /api/v1/test-clock']
const OPERATOR = operator('tester')

let service: TestService
let app: TestApp
let seller: SellerClient

/** By the call of the API, or the name of the operators' command. */
const CHANGES: Readonly<Record<string, Change>> = {
  'PATCH /api/v1/customers/:id': {
    sent: CUSTOMER,
    async open() {
      const { id } = await aCustomer(service.ctx, app)
      const read = () => showCustomer(service.ctx, app.app.id, id)
      return { ...patching('PATCH /api/v1/customers/:id', `/api/v1/customers/cus_${id}`), read }
    },
  },
  'PATCH /api/v1/plans/:id': {
    sent: { name: 'Plus', description: 'All of it', status: 'archived' },
    async open() {
      const { id } = await aPlan(service.ctx, app)
      return { ...patching('PATCH /api/v1/plans/:id', `/api/v1/plans/plan_${id}`), read: () => readPlan(id) }
    },
  },
  'PATCH /api/v1/promotions/:id': {
    sent: { status: 'archived', valid_until: '2027-01-31 00:00:00', max_uses: 10 },
    async open() {
      const { id } = await aPromotion(service.ctx, app)
      const read = () => readPromotion(id)
      return { ...patching('PATCH /api/v1/promotions/:id', `/api/v1/promotions/promo_${id}`), read }
    },
  },
  'PATCH /api/v1/plans/:id/prices/:priceId': {
    sent: { name: 'Monthly', status: 'archived' },
    async open() {
      const { id, prices } = await aPlan(service.ctx, app)
      const path = `/api/v1/plans/plan_${id}/prices/price_${prices[0]!.id}`
      const { schema, change } = patching('PATCH /api/v1/plans/:id/prices/:priceId', path)
      return {
        schema,
        change: async (body) => lastPrice(await change(body)),
        read: async () => lastPrice(await readPlan(id)),
      }
    },
  },
  'app.update': {
    sent: {
      name: 'Phone',
      webhook_url: 'https://shop.example/hooks',
      mail_from: 'pay@shop.example',
      path: 'members/{uid}',
      client_amounts: true,
      return_origins: ['https://shop.example'],
      more_events: ['transaction.flagged'],
      time_zone: 'Asia/Tokyo',
      bank_app_links: false,
      accent: '#0b6b3a',
      support: 'help@shop.example',
      terms_url: 'https://shop.example/terms',
      privacy_url: 'https://shop.example/privacy',
      statement_name: 'SHOP',
      receipts: true,
      logo: Buffer.from(LOGO),
    },
    shown: { logo: sha256Hex(LOGO) },
    async open() {
      const { app: phone } = await anApp(service.ctx, { auth: 'identity' })
      const load = () => getApp(service.ctx.db, phone.id)
      const database = { databaseUrl: 'https://demo.firebaseio.com', serviceAccount: aServiceAccountFile() }
      await perform(service.ctx, OPERATOR, setRealtime, database, { app: await load() })
      const show = (one: typeof phone): Fields => {
        const { realtime, ...fields } = presentApp(one)
        return { ...fields, path: (realtime as { path: string }).path }
      }
      return {
        schema: inputOf(updateApp),
        change: async (body) => show(await perform(service.ctx, OPERATOR, updateApp, body, { app: await load() })),
        read: async () => show(await load()),
      }
    },
  },
  'bank-account.update': {
    sent: { mailbox: 'me@shop.example' },
    async open() {
      const { ctx } = service
      const { id } = await perform(ctx, OPERATOR, addBankAccount, { bank: 'ACB', number: '1', holder: 'AN' }, {})
      return {
        schema: inputOf(updateBankAccount),
        change: async (body) => {
          const changed = await perform(ctx, OPERATOR, updateBankAccount, body, { accountId: id })
          return { ...presentBankAccount(changed, ctx.config) }
        },
        read: () => readBankAccount(id),
      }
    },
  },
}

const CREATIONS: Readonly<Record<string, Creation>> = {
  'POST /api/v1/customers': {
    sent: CUSTOMER,
    schema: () => bodyOf('POST /api/v1/customers'),
    create: async (body) => showCustomer(service.ctx, app.app.id, idOf(await posted('/api/v1/customers', body))),
  },
  'POST /api/v1/plans': {
    sent: { code: 'pro', name: 'Pro', description: 'All of it', prices: [PRICE] },
    // A price is shown with more fields; the next call compares its own.
    shown: { prices: 1 },
    schema: () => bodyOf('POST /api/v1/plans'),
    async create(body) {
      const plan = await readPlan(idOf(await posted('/api/v1/plans', body)))
      return { ...plan, prices: plan.prices.length }
    },
  },
  'POST /api/v1/promotions': {
    sent: {
      code: 'TET',
      // Exactly one of the two is given.
      percent: null,
      amount: 30_000,
      currency: 'VND',
      plan_codes: ['pro'],
      every_period: true,
      valid_until: '2027-01-31 00:00:00',
      max_uses: 10,
      once_per_user: false,
      on_page: true,
    },
    schema: () => bodyOf('POST /api/v1/promotions'),
    async create(body) {
      await aPlan(service.ctx, app, { code: 'pro' })
      return readPromotion(idOf(await posted('/api/v1/promotions', body)))
    },
  },
  'POST /api/v1/plans/:id/prices': {
    sent: PRICE,
    schema: () => bodyOf('POST /api/v1/plans/:id/prices'),
    async create(body) {
      const { id } = await aPlan(service.ctx, app, { prices: [YEARLY] })
      await posted(`/api/v1/plans/plan_${id}/prices`, body)
      return lastPrice(await readPlan(id))
    },
  },
  'app.create': {
    sent: { name: 'Phone', auth: 'identity', sandbox: true, webhook_url: 'https://shop.example/hooks' },
    schema: () => inputOf(createApp),
    async create(body) {
      const { app_id: id } = await perform(service.ctx, OPERATOR, createApp, body, {})
      return presentApp(await getApp(service.ctx.db, id))
    },
  },
  'bank-account.add': {
    sent: { bank: 'acb', number: '99', holder: 'BINH', mailbox: 'me@shop.example' },
    shown: { bank: 'ACB' },
    schema: () => inputOf(addBankAccount),
    async create(body) {
      const { id } = await perform(service.ctx, OPERATOR, addBankAccount, body, {})
      const { account_number: number, account_holder: holder, ...shown } = await readBankAccount(id)
      return { ...shown, number, holder }
    },
  },
}

describe('every field of a body', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
  })

  afterEach(() => service.stop())

  it('is sent by a test, of each call that makes or changes something', () => {
    const calls = API_ROUTES.filter(({ method }) => method === 'POST' || method === 'PATCH')
    const named = calls.map(({ method, path }) => `${method} ${path}`).filter((call) => !EXEMPT.includes(call))
    expect([...Object.keys(CHANGES), ...Object.keys(CREATIONS)]).to.include.members(named)
  })

  for (const [name, tried] of Object.entries(CHANGES)) {
    it(`changes what ${name} shows and stores, and nothing else`, async () => {
      const { sent, shown = {} } = tried
      const thing = await tried.open()
      expect(Object.keys(sent), 'what is sent here').to.have.members(fieldsOf(thing.schema))
      for (const [field, value] of Object.entries(sent)) {
        const before = await thing.read()
        const expected = { ...before, [field]: shown[field] ?? value }
        expect(expected, `${field} has this value before`).not.to.deep.equal(before)
        expect(await thing.change({ [field]: value }), field).to.deep.equal(expected)
        expect(await thing.read(), field).to.deep.equal(expected)
      }
    })
  }

  for (const [name, tried] of Object.entries(CREATIONS)) {
    it(`is stored by ${name}`, async () => {
      expect(Object.keys(tried.sent), 'what is sent here').to.have.members(fieldsOf(tried.schema()))
      expect(await tried.create(tried.sent)).to.deep.include({ ...tried.sent, ...tried.shown })
    })
  }

  it('that a mapping to columns forgets does not compile, and throws', () => {
    const { name, ...others } = { name: 'An', phone: '1' }
    // @ts-expect-error: `phone` is left.
    expect(() => noFieldsLeft(others), name).to.throw('phone')
  })
})

function bodyOf(call: string): z.ZodType {
  const route = API_ROUTES.find(({ method, path }) => `${method} ${path}` === call)
  return route?.body ?? expect.fail(`${call} has no body`)
}

function inputOf(command: Command<never, unknown>): z.ZodType {
  return typeof command.input === 'function' ? command.input(service.ctx.config) : command.input
}

function fieldsOf(schema: z.ZodType): string[] {
  if (!(schema instanceof z.ZodObject)) return expect.fail('the body is no object')
  return Object.keys(schema.shape)
}

function patching(call: string, path: string): Pick<Thing, 'schema' | 'change'> {
  return {
    schema: bodyOf(call),
    async change(body) {
      const answer = await seller.patch(path, body)
      expect(answer.status, answer.text).to.equal(200)
      return answer.body.data as Fields
    },
  }
}

async function posted(path: string, body: Fields): Promise<Fields> {
  const answer = await seller.post(path, body)
  expect(answer.status, answer.text).to.equal(201)
  return answer.body.data as Fields
}

/** The number in `cus_12`. */
function idOf({ id }: Fields): number {
  return parseNumericId(String(id).replace(/^\w+_/, '')) ?? expect.fail(String(id))
}

async function readPlan(planId: number) {
  return presentPlan(await getPlan(service.ctx.db, app.app.id, planId))
}

async function readPromotion(promotionId: number): Promise<Fields> {
  return presentPromotion(await getPromotion(service.ctx.db, app.app.id, promotionId))
}

function lastPrice(plan: Fields): Fields {
  const { prices } = plan as { prices: Fields[] }
  return prices.at(-1) ?? expect.fail('the plan has no price')
}

async function readBankAccount(accountId: number): Promise<Fields> {
  const account = await findBankAccount(service.ctx.db, accountId)
  return account ? { ...presentBankAccount(account, service.ctx.config) } : expect.fail('there is no such account')
}
