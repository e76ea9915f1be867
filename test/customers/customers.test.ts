import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createCustomer } from '#customers/create-customer.ts'
import { updateCustomer } from '#customers/update-customer.ts'
import { listAuditEntries } from '#commands/store.ts'
import type { Customer } from '../../client/src/types.ts'
import { startService, type SellerClient, type TestService } from '../support/api.ts'
import { expectFieldError, expectError } from '../support/expect-error.ts'
import { aCustomer, anApp, type TestApp } from '../support/factories.ts'
import { startIdentityClients } from '../support/identity-clients.ts'

const PATH = '/api/v1/customers'
const WHOLE = {
  name: 'An Nguyễn',
  email: 'An.Nguyen+billing@Example.com',
  merchant_customer_id: 'crm 42/ä',
  cc_emails: ['Team@example.com', 'boss@example.com'],
  bcc_emails: ['archive@example.com'],
  locale: 'vi',
}

let service: TestService
let app: TestApp
let seller: SellerClient
describe('customers', () => {
  beforeEach(async () => {
    service = await startService()
    app = await anApp(service.ctx)
    seller = service.seller(app)
  })

  afterEach(() => service.stop())

  describe('POST /api/v1/customers', () => {
    it('answers 201 with the whole customer, each text exactly as sent', async () => {
      const answer = await seller.post(PATH, WHOLE)
      expect(answer.status).to.equal(201)
      const { id } = answer.body.data
      expect(id).to.match(/^cus_[1-9]\d*$/)
      const at = '2026-03-01 10:00:00'
      expect(answer.body).to.deep.equal({ success: true, data: { id, ...WHOLE, created_at: at, updated_at: at } })
      expect((await seller.get(`${PATH}/${id}`)).body).to.deep.equal(answer.body)
    })

    it('requires only a name and an e-mail address', async () => {
      const bare = { name: 'An', email: 'an@example.com' }
      const nulls = { merchant_customer_id: null, cc_emails: null, bcc_emails: null, locale: null }
      for (const body of [bare, { ...bare, ...nulls }]) {
        const answer = await seller.post(PATH, body)
        expect(answer.status).to.equal(201)
        expect(answer.body.data).to.deep.include({
          ...bare,
          merchant_customer_id: null,
          cc_emails: [],
          bcc_emails: [],
          locale: 'en',
        })
      }
    })

    it('accepts the same e-mail address and merchant id again', async () => {
      const [first, second] = [await seller.post(PATH, WHOLE), await seller.post(PATH, WHOLE)]
      expect(second.status).to.equal(201)
      expect(second.body.data.id).to.not.equal(first.body.data.id)
    })

    it('accepts the longest texts and ten addresses in each list', async () => {
      const addresses = Array.from({ length: 10 }, (_, index) => `${'a'.repeat(60)}${index}@${'b'.repeat(60)}.example`)
      const body = {
        ...WHOLE,
        name: '💳'.repeat(191),
        merchant_customer_id: 'ế'.repeat(191),
        cc_emails: addresses,
        bcc_emails: addresses,
      }
      const answer = await seller.post(PATH, body)
      expect(answer.status).to.equal(201)
      expect(answer.body.data).to.deep.include(body)
    })

    it('answers 400 invalid_request that names the invalid field', async () => {
      const eleven = Array<string>(11).fill('a@example.com')
      const cases: [field: string | null, body: unknown][] = [
        ['name', { email: 'an@example.com' }],
        ['name', { ...WHOLE, name: '' }],
        ['name', { ...WHOLE, name: null }],
        ['name', { ...WHOLE, name: 'a'.repeat(192) }],
        ['name', { ...WHOLE, name: 'An\r\nBcc: x@example.com' }],
        ['email', { name: 'An' }],
        ['email', { ...WHOLE, email: '' }],
        ['email', { ...WHOLE, email: 'an' }],
        ['email', { ...WHOLE, email: 'an@example' }],
        ['email', { ...WHOLE, email: 'An <an@example.com>' }],
        ['email', { ...WHOLE, email: 'an@example.com, bo@example.com' }],
        ['email', { ...WHOLE, email: 'an@example.com\r\nBcc: x@example.com' }],
        ['email', { ...WHOLE, email: ` an@example.com` }],
        ['email', { ...WHOLE, email: `${'a'.repeat(250)}@example.com` }],
        ['email', { ...WHOLE, email: ['an@example.com'] }],
        ['merchant_customer_id', { ...WHOLE, merchant_customer_id: '' }],
        ['merchant_customer_id', { ...WHOLE, merchant_customer_id: 42 }],
        ['merchant_customer_id', { ...WHOLE, merchant_customer_id: 'a'.repeat(192) }],
        ['cc_emails', { ...WHOLE, cc_emails: 'a@example.com' }],
        ['cc_emails', { ...WHOLE, cc_emails: eleven }],
        ['cc_emails.1', { ...WHOLE, cc_emails: ['a@example.com', 'b'] }],
        ['bcc_emails', { ...WHOLE, bcc_emails: eleven }],
        ['bcc_emails.0', { ...WHOLE, bcc_emails: [null] }],
        ['locale', { ...WHOLE, locale: 'fr' }],
        ['locale', { ...WHOLE, locale: 'EN' }],
        ['id', { ...WHOLE, id: 'cus_1' }],
        ['phone', { ...WHOLE, phone: '1' }],
        [null, []],
        [null, 'An'],
      ]
      for (const [field, body] of cases) expectFieldError(await seller.post(PATH, body), field)
      expect((await seller.get(PATH)).body.data).to.deep.equal([])
    })
  })

  describe('an e-mail address', () => {
    it('has any dot-atom before the @, and is found by it', async () => {
      for (const localPart of ['r&d', "o'neil", "!#$%&'*+-/=?^_`{|}~", '=1', 'a.b+c']) {
        const email = `${localPart}@shop.example`
        const { body, text } = await seller.post(PATH, { ...WHOLE, email, cc_emails: [email] })
        expect([body.data?.email, body.data?.cc_emails], text).to.deep.equal([email, [email]])
        // As URLs have it: they encode an apostrophe, too.
        const written = encodeURIComponent(email).replaceAll("'", '%27')
        const { data } = (await seller.get(`${PATH}?email=${written}`)).body
        expect(data.map(({ id }) => id)).to.deep.equal([body.data.id])
      }
    })

    it('has no quotes, blanks, brackets, separators or other characters before the @, and no lone dot', async () => {
      const localParts = ['"a b"', 'a b', 'a,b', 'a;b', 'a:b', 'a<b', 'a>b', 'a(b)', 'a[b', 'a\\b', 'a@b', 'ä', 'a\nb']
      for (const localPart of [...localParts, '', '.a', 'a.', 'a..b'])
        expectFieldError(await seller.post(PATH, { ...WHOLE, email: `${localPart}@shop.example` }), 'email')
    })

    it('has any host name after the @, in the ASCII form of other scripts too', async () => {
      const label = 'b'.repeat(63)
      for (const host of [
        'shop.xn--p1ai',
        'xn--e1afmkfd.XN--P1AI',
        'xn--fiqs8s.cn',
        'a-b.c1.museum',
        `${label}.${label}`,
      ])
        expect((await seller.post(PATH, { ...WHOLE, email: `an@${host}` })).status, host).to.equal(201)
    })

    it('has no name after the @ that no host can have', async () => {
      const hosts = [
        'shop',
        'shop.c',
        'shop.c1',
        'shop.xn--',
        '-b.co',
        'b-.co',
        'b_c.co',
        'b..co',
        'b.co.',
        '[192.0.2.1]',
        '192.0.2.1',
      ]
      for (const host of [...hosts, `${'b'.repeat(64)}.co`, `b.${'c'.repeat(64)}`])
        expectFieldError(await seller.post(PATH, { ...WHOLE, email: `an@${host}` }), 'email')
    })
  })

  describe('GET /api/v1/customers/{id}', () => {
    it("answers 404 not_found for an unknown id, another app's customer, and anything that is not a customer id", async () => {
      const { id } = await aCustomer(service.ctx, app)
      const foreign = await aCustomer(service.ctx, await anApp(service.ctx))
      for (const text of [
        `cus_${foreign.id}`,
        'cus_999999999',
        `${id}`,
        `cus_0${id}`,
        'cus_x',
        `plan_${id}`,
        `CUS_${id}`,
      ]) {
        expectError(await seller.get(`${PATH}/${text}`), 404, 'not_found')
        expectError(await seller.patch(`${PATH}/${text}`, { name: 'Bo' }), 404, 'not_found')
      }
    })
  })

  describe('GET /api/v1/customers', () => {
    it('lists only the app’s customers, newest first', async () => {
      const first = await aCustomer(service.ctx, app)
      const second = await aCustomer(service.ctx, app)
      service.ctx.clock.advance('1s')
      const third = await aCustomer(service.ctx, app)
      await aCustomer(service.ctx, await anApp(service.ctx))
      const answer = await seller.get(PATH)
      expect(answer.status).to.equal(200)
      expect(ids(answer.body)).to.deep.equal([third, second, first].map(({ id }) => `cus_${id}`))
      expect(answer.body.next_cursor).to.equal(null)
      expect(answer.body.data[0]).to.deep.include({ name: 'An Nguyen', email: 'an@example.com', cc_emails: [] })
    })

    it('filters by merchant_customer_id and email, compared exactly', async () => {
      const one = await aCustomer(service.ctx, app, { merchant_customer_id: 'crm 1&2', email: 'one+x@example.com' })
      const two = await aCustomer(service.ctx, app, { merchant_customer_id: 'crm 1&2', email: 'two@example.com' })
      await aCustomer(service.ctx, app, { merchant_customer_id: 'CRM 1&2', email: 'Two@example.com' })
      await aCustomer(service.ctx, await anApp(service.ctx), {
        merchant_customer_id: 'crm 1&2',
        email: 'two@example.com',
      })
      const list = async (query: Record<string, string>) =>
        ids((await seller.get(`${PATH}?${new URLSearchParams(query).toString()}`)).body)
      expect(await list({ merchant_customer_id: 'crm 1&2' })).to.deep.equal([`cus_${two.id}`, `cus_${one.id}`])
      expect(await list({ email: 'two@example.com' })).to.deep.equal([`cus_${two.id}`])
      expect(await list({ email: 'one+x@example.com', merchant_customer_id: 'crm 1&2' })).to.deep.equal([
        `cus_${one.id}`,
      ])
      expect(await list({ email: 'one+x@example.com', merchant_customer_id: 'crm' })).to.deep.equal([])
    })

    it('pages through all of them, even if many were created at the same instant', async () => {
      const made: string[] = []
      for (let index = 0; index < 7; index += 1) {
        made.unshift(`cus_${(await aCustomer(service.ctx, app)).id}`)
        if (index === 2) service.ctx.clock.advance('1s')
      }
      const seen: string[][] = []
      let cursor = ''
      for (;;) {
        const { body } = await seller.get(`${PATH}?limit=3${cursor}`)
        seen.push(ids(body))
        if (body.next_cursor === null) break
        cursor = `&cursor=${body.next_cursor}`
        // New customers do not shift the pages.
        await aCustomer(service.ctx, app)
      }
      expect(seen).to.deep.equal([made.slice(0, 3), made.slice(3, 6), made.slice(6)])
    })

    it('returns 20 by default, and 100 at most', async () => {
      await Promise.all(Array.from({ length: 101 }, () => aCustomer(service.ctx, app)))
      const sizes = []
      for (const query of ['', '?limit=1', '?limit=100'] as const)
        sizes.push(ids((await seller.get(`${PATH}${query}`)).body).length)
      expect(sizes).to.deep.equal([20, 1, 100])
    })

    it('answers 400 invalid_request for a bad limit, cursor or filter', async () => {
      const cases: [field: string, query: string][] = [
        ...['0', '101', '-1', '1.5', 'ten', '', '01', '%2B1'].map((limit): [string, string] => [
          'limit',
          `limit=${limit}`,
        ]),
        ['limit', 'limit=1&limit=2'],
        ...['', 'x', 'MTIz', '%00', 'bnVsbA', Buffer.from('1.12').toString('base64')].map(
          (cursor): [string, string] => ['cursor', `cursor=${encodeURIComponent(cursor)}`],
        ),
        ['email', 'email=an'],
        ['merchant_customer_id', 'merchant_customer_id='],
        ['merchant_customer_id', `merchant_customer_id=${'a'.repeat(192)}`],
      ]
      for (const [field, query] of cases) expectFieldError(await seller.get(`${PATH}?${query}`), field)
    })
  })

  describe('PATCH /api/v1/customers/{id}', () => {
    it('changes only the fields of the body', async () => {
      const { id } = (await seller.post(PATH, WHOLE)).body.data
      service.ctx.clock.advance('1h')
      const answer = await seller.patch(`${PATH}/${id}`, { email: 'new@example.com', cc_emails: ['x@example.com'] })
      expect(answer.status).to.equal(200)
      expect(answer.body.data).to.deep.equal({
        id,
        ...WHOLE,
        email: 'new@example.com',
        cc_emails: ['x@example.com'],
        created_at: '2026-03-01 10:00:00',
        updated_at: '2026-03-01 11:00:00',
      })
      expect((await seller.get(`${PATH}/${id}`)).body).to.deep.equal(answer.body)
    })

    it('with null clears merchant_customer_id and the lists, and sets the locale to en', async () => {
      const { id } = (await seller.post(PATH, WHOLE)).body.data
      const nulls = { merchant_customer_id: null, cc_emails: null, bcc_emails: null, locale: null }
      const answer = await seller.patch(`${PATH}/${id}`, nulls)
      expect(answer.status).to.equal(200)
      expect(answer.body.data).to.deep.include({
        name: WHOLE.name,
        email: WHOLE.email,
        merchant_customer_id: null,
        cc_emails: [],
        bcc_emails: [],
        locale: 'en',
      })
    })

    it('answers 400 invalid_request for an empty body, and for values that are refused at creation', async () => {
      const { id } = (await seller.post(PATH, WHOLE)).body.data
      expectFieldError(await seller.patch(`${PATH}/${id}`, {}), null)
      const cases: [field: string, body: object][] = [
        ['name', { name: null }],
        ['name', { name: '' }],
        ['email', { email: null }],
        ['email', { email: 'x' }],
        ['cc_emails.0', { cc_emails: ['x'] }],
        ['locale', { locale: '' }],
        ['created_at', { created_at: '2026-01-01 00:00:00' }],
      ]
      for (const [field, body] of cases) expectFieldError(await seller.patch(`${PATH}/${id}`, body), field)
      expect((await seller.get(`${PATH}/${id}`)).body.data).to.deep.include(WHOLE)
    })

    it("does not change another app's customer", async () => {
      const other = await anApp(service.ctx)
      const foreign = await aCustomer(service.ctx, other)
      expectError(await seller.patch(`${PATH}/cus_${foreign.id}`, { name: 'Stolen' }), 404, 'not_found')
      expect((await service.seller(other).get(`${PATH}/cus_${foreign.id}`)).body.data.name).to.equal('An Nguyen')
    })
  })

  describe('customers of identity-token apps', () => {
    it('can be created by their clients; reading, listing and changing them answers 403 forbidden', async () => {
      const clients = await startIdentityClients()
      try {
        const client = await clients.app(service.ctx)
        const headers = await clients.headers(service.ctx, client, 'user-1')
        const own = { ...WHOLE, cc_emails: [], bcc_emails: [] }
        const made = await service.call('POST', PATH, { headers, raw: JSON.stringify(own) })
        expect(made.status).to.equal(201)
        const one = `${PATH}/${made.body.data.id}`
        expectError(await service.call('GET', one, { headers }), 403, 'forbidden')
        expectError(await service.call('GET', PATH, { headers }), 403, 'forbidden')
        expectError(await service.call('PATCH', one, { headers, raw: '{"name":"Bo"}' }), 403, 'forbidden')
      } finally {
        await clients.stop()
      }
    })
  })

  describe('customer commands', () => {
    it('are written to the audit log with their caller: an operator or a server', async () => {
      const { ctx } = service
      const { id } = await perform(
        ctx,
        operator('ann'),
        createCustomer,
        { name: 'An', email: 'an@example.com' },
        { app: app.app },
      )
      await perform(ctx, operator('ann'), updateCustomer, { name: 'Bo' }, { app: app.app, customerId: id })
      await seller.patch(`${PATH}/cus_${id}`, { name: 'Chi' })
      const [byApi, update, create, ...rest] = await listAuditEntries(ctx.db, { subject: `customer ${id}`, limit: 10 })
      expect(rest).to.deep.equal([])
      expect(byApi).to.include({ actor: `server app ${app.app.id}`, action: 'customer.update' })
      expect(create).to.include({ actor: 'ann', action: 'customer.create', appId: app.app.id, beforeState: null })
      expect(update).to.include({ actor: 'ann', action: 'customer.update' })
      expect(update!.beforeState).to.include({ name: 'An' })
      expect(update!.afterState).to.include({ name: 'Bo' })
    })
  })

  function ids(body: { data: Customer[] }): string[] {
    return body.data.map(({ id }) => id)
  }
})
