import { expect } from 'chai'
import type { JWTPayload } from 'jose'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { customers } from '#customers/store.ts'
import { operator } from '#commands/caller.ts'
import { importSubscriptions } from '#subscriptions/import-subscriptions.ts'
import { getSubscription, subscriptions } from '#subscriptions/store.ts'
import { startService, type Response, type TestService } from '../support/api.ts'
import { expectFieldError } from '../support/expect-error.ts'
import { aCustomer, anOwnCustomer, aPlan, aSubscription, paid, priceId, type TestApp } from '../support/factories.ts'
import { startIdentityClients, type IdentityClients } from '../support/identity-clients.ts'
import { attachCustomer } from '../support/operators.ts'

const AN = { name: 'An', email: 'an@example.com' }
const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }

/** R11 and R12: which customers an end user's client can create and name. */
describe('the customers of an end user', () => {
  let service: TestService
  let clients: IdentityClients
  let app: TestApp
  let price: string

  beforeEach(async () => {
    service = await startService()
    clients = await startIdentityClients()
    app = await clients.app(service.ctx)
    const plan = await aPlan(service.ctx, app)
    price = priceId(plan)
    await aSubscription(service.ctx, app, plan)
  })

  afterEach(async () => {
    await service.stop()
    await clients.stop()
  })

  const call = async <Path extends string>(
    method: string,
    path: Path,
    body: object,
    { sub = 'user-1', claims = {}, through = app }: { sub?: string; claims?: JWTPayload; through?: TestApp } = {},
  ) =>
    service.call(method, `/api/v1${path}`, {
      headers: await clients.headers(service.ctx, through, sub, claims),
      raw: JSON.stringify(body),
    })
  const make = (body: object, options?: Parameters<typeof call>[3]) => call('POST', '/customers', body, options)
  const attach = (customer: string) => call('PUT', '/subscriptions/user-1/customer', { customer_id: customer })
  const checkout = (customer: string) =>
    call('POST', '/checkout-sessions', {
      external_ref: 'user-1',
      mode: 'subscription',
      price_id: price,
      customer_id: customer,
      ...URLS,
    })
  const answerOf = ({ status, text }: Response) => `${status} ${text.replace(/req_[0-9a-f]{32}/, 'req')}`

  it("another end user's customer looks like an unknown one, in checkouts and attachments, and changes nothing", async () => {
    const { id } = (await make(AN, { sub: 'victim' })).body.data
    for (const name of [attach, checkout]) {
      const answer = await name(id)
      expectFieldError(answer, 'customer_id')
      expect(answerOf(answer)).to.equal(answerOf(await name('cus_999999999')))
    }
    const { customerId } = await getSubscription(service.ctx.db, app.app.id, 'user-1')
    expect(customerId).to.equal(null)
  })

  it('its own customers are accepted in both', async () => {
    const { id } = (await make(AN)).body.data
    expect((await checkout(id)).status).to.equal(201)
    const attached = await attach(id)
    expect(attached.status, attached.text).to.equal(200)
    expect(attached.body.data.customer_id).to.equal(id)
  })

  it('a customer that belongs to no end user cannot be named by a client, even if the subscription has it', async () => {
    const { id } = await aCustomer(service.ctx, app)
    await attachCustomer(service.ctx, 'linh', app.app, id)
    expectFieldError(await attach(`cus_${id}`), 'customer_id')
    expectFieldError(await checkout(`cus_${id}`), 'customer_id')
  })

  it("operators attach any customer of the app, also another end user's", async () => {
    const { id } = await anOwnCustomer(service.ctx, app, 'user-2')
    expect((await attachCustomer(service.ctx, 'linh', app.app, id)).customerId).to.equal(id)
  })

  it('a paid checkout attaches its customer', async () => {
    const { id } = await anOwnCustomer(service.ctx, app, 'user-1')
    await paid(service.ctx, app, { price_id: price, customer_id: `cus_${id}` })
    expect((await getSubscription(service.ctx.db, app.app.id, 'user-1')).customerId).to.equal(id)
  })

  it('have no cc_emails and no bcc_emails; only an empty list and null are accepted', async () => {
    for (const field of ['cc_emails', 'bcc_emails']) {
      for (const value of [['x@example.com'], ['no address'], 'x@example.com', [null], {}])
        expectFieldError(await make({ ...AN, [field]: value }), field)
    }
    for (const value of [[], null]) {
      const answer = await make({ ...AN, cc_emails: value, bcc_emails: value })
      expect(answer.status, answer.text).to.equal(201)
      expect(answer.body.data).to.deep.include({ cc_emails: [], bcc_emails: [] })
    }
  })

  it('have the verified e-mail address of the token, ignoring case, or any address if the token has none', async () => {
    const verified = (email: unknown, isVerified: unknown = true) => ({
      claims: { email, email_verified: isVerified } as JWTPayload,
    })
    expectFieldError(await make(AN, verified('bo@example.com')), 'email')
    expectFieldError(await make(AN, verified('bo@example.com', 'true')), 'email')
    expectFieldError(await make({ ...AN, email: 'an@example.com.evil.example' }, verified('an@example.com')), 'email')
    // The Kelvin sign, whose lower case is a k.
    expectFieldError(await make({ ...AN, email: 'k@example.com' }, verified('\u212a@example.com')), 'email')
    expect((await make({ ...AN, email: 'AN@example.com' }, verified('An@Example.com'))).status).to.equal(201)
    expect((await make(AN, verified('an@example.com', 'true'))).status).to.equal(201)
    for (const isVerified of [false, 'false', null]) {
      const answer = await make(AN, { ...verified('bo@example.com', isVerified), sub: `user-${String(isVerified)}` })
      expect(answer.status, String(isVerified)).to.equal(201)
    }
    expect((await make(AN, { claims: { email: 'bo@example.com' }, sub: 'user-2' })).status).to.equal(201)
    expect((await make(AN, verified(undefined))).status).to.equal(201)
  })

  it('have a name that contains no web address', async () => {
    for (const name of ['https://evil.example', 'Pay HTTP://evil.example', 'ftp://x', 'see WwW.evil.example', '://'])
      expectFieldError(await make({ ...AN, name }), 'name')
    for (const name of ['An www Nguyen', 'An: Nguyen / Ltd.'])
      expect((await make({ ...AN, name })).status).to.equal(201)
  })

  it('are limited to five per end user and app', async () => {
    for (let index = 0; index < 5; index += 1) expect((await make(AN)).status).to.equal(201)
    const sixth = await make(AN)
    expectFieldError(sixth, null)
    expect(sixth.body.error.message).to.include('5 customers')
    expect((await make(AN, { sub: 'USER-1' })).status).to.equal(201)
    expect((await make(AN, { through: await clients.app(service.ctx) })).status).to.equal(201)
  })

  it('are exactly five after thirty concurrent requests', async () => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => make(AN)))
    const counts = [201, 400].map((status) => answers.filter((answer) => answer.status === status).length)
    expect(counts, answers.find(({ status }) => status >= 500)?.text).to.deep.equal([5, 25])
    const rows = await service.ctx.db.all(customers, 'WHERE app_id = ?', [app.app.id])
    expect(rows.map(({ endUser }) => endUser)).to.deep.equal(Array<string>(5).fill('user-1'))
    expect(new Set(rows.map(({ endUserSlot }) => endUserSlot))).to.have.length(5)
  })

  it("an import attaches a customer of its end user or of no end user, not one that another's client created", async () => {
    const { ctx } = service
    const other = await anOwnCustomer(ctx, app, 'user-7', { name: 'Fool', email: 'bo@example.com' })
    const own = await anOwnCustomer(ctx, app, 'user-9', { email: 'chi@example.com' })
    const lines = [
      'external_ref,price_id,current_period_end,customer_email',
      `user-8,${price},2026-04-01 00:00:00,bo@example.com`,
      `user-9,${price},2026-04-01 00:00:00,chi@example.com`,
    ]
    await importSubscriptions(ctx, operator('linh'), app.app, lines.join('\n'), { dryRun: false })
    const rows = await ctx.db.all(subscriptions, "WHERE external_ref <> 'user-1' ORDER BY id")
    const [eight, nine] = rows.map(({ customerId }) => customerId)
    expect(eight).not.to.equal(other.id)
    expect(nine).to.equal(own.id)
  })
})
