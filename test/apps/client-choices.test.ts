import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { getApp } from '#apps/store.ts'
import { updateApp } from '#apps/update-app.ts'
import { listAuditEntries } from '#commands/store.ts'
import { startService, type Response, type TestService } from '../support/api.ts'
import { testContext } from '../support/context.ts'
import { expectFieldError, expectError, refusalOf } from '../support/expect-error.ts'
import { anApp, aPlan, priceId, type TestApp } from '../support/factories.ts'
import { startIdentityClients, type IdentityClients } from '../support/identity-clients.ts'

const URLS = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
const PURCHASE = { external_ref: 'user-1', mode: 'payment', plan_ref: 'book', amount: 1, currency: 'VND', ...URLS }

/** R13 and R14: the amount and the addresses that an end user's client may choose. */
describe('what a client may choose in a checkout', () => {
  let service: TestService
  let clients: IdentityClients
  let app: TestApp
  let subscribe: object

  beforeEach(async () => {
    service = await startService()
    clients = await startIdentityClients()
    app = await clients.app(service.ctx)
    const price = priceId(await aPlan(service.ctx, app))
    subscribe = { external_ref: 'user-1', mode: 'subscription', price_id: price, ...URLS }
  })

  afterEach(async () => {
    await service.stop()
    await clients.stop()
  })

  const open = async (body: object): Promise<Response> =>
    service.call('POST', '/api/v1/checkout-sessions', {
      headers: await clients.headers(service.ctx, app, 'user-1'),
      raw: JSON.stringify(body),
    })
  const update = async (input: object, updated: TestApp = app) =>
    perform(service.ctx, operator('linh'), updateApp, input, { app: await getApp(service.ctx.db, updated.app.id) })

  describe('the amount', () => {
    it('is 403 forbidden in mode payment, until an operator allows it and after it is taken back', async () => {
      expectError(await open(PURCHASE), 403, 'forbidden')
      await update({ client_amounts: true })
      const allowed = await open(PURCHASE)
      expect(allowed.status, allowed.text).to.equal(201)
      await update({ client_amounts: false })
      expectError(await open(PURCHASE), 403, 'forbidden')
      expect((await open(subscribe)).status, 'a price of the app').to.equal(201)
    })

    it("can be chosen by a seller's server", async () => {
      const seller = service.seller(await anApp(service.ctx))
      expect((await seller.post('/api/v1/checkout-sessions', PURCHASE)).status).to.equal(201)
    })
  })

  describe('the addresses to return to', () => {
    it('have one of the origins that an operator named, in both modes', async () => {
      await update({ client_amounts: true, return_origins: ['https://shop.example', 'https://shop.example:8443'] })
      const others = [
        'https://evil.example/ok',
        'http://shop.example/ok',
        'https://shop.example:444/ok',
        'https://shop.example.evil.example/ok',
        'https://evil.example/https://shop.example',
        'https://evil.example\\@shop.example/ok',
        'https://sub.shop.example/ok',
      ]
      for (const body of [subscribe, PURCHASE]) {
        for (const field of ['success_url', 'cancel_url'])
          for (const url of others) expectFieldError(await open({ ...body, [field]: url }), field)
        for (const url of ['https://shop.example', 'HTTPS://Shop.Example:443/a?b#c', 'https://shop.example:8443/'])
          expect((await open({ ...body, success_url: url })).status, url).to.equal(201)
      }
    })

    it('are unrestricted without a list, and again when the list is cleared', async () => {
      expect((await open({ ...subscribe, success_url: 'https://a.example/' })).status).to.equal(201)
      await update({ return_origins: ['https://shop.example'] })
      expectFieldError(await open({ ...subscribe, success_url: 'https://a.example/' }), 'success_url')
      await update({ return_origins: null })
      expect((await open({ ...subscribe, success_url: 'https://a.example/' })).status).to.equal(201)
    })
  })

  describe('app update', () => {
    it('accepts only origins, and stores them as browsers write them', async () => {
      const given = ['https://Shop.example', 'https://shop.example:443', 'https://bücher.example', 'https://[::1]:8443']
      const { returnOrigins } = await update({ return_origins: given })
      expect(returnOrigins).to.deep.equal([
        'https://shop.example',
        'https://xn--bcher-kva.example',
        'https://[::1]:8443',
      ])
    })

    const wrong = [
      'shop.example',
      'https://shop.example/',
      'https://shop.example/ok',
      'https://shop.example?x',
      'https://shop.example#x',
      'https://user@shop.example',
      'https://*.shop.example',
      'https://shop.example:99999',
      'https:shop.example',
      'http://shop.example',
      'app://reader',
      'javascript:alert(1)',
      'null',
      '*',
      '',
      ' ',
    ]
    it('refuses what is not an origin, names it, and changes nothing', async () => {
      for (const value of wrong) {
        const error = await refusalOf(update({ return_origins: ['https://shop.example', value] }))
        expect(error, value).to.include({ code: 'invalid_request', field: 'return_origins' })
        expect(error.message).to.include(`"${value}"`)
      }
      for (const value of [[], 'https://shop.example', Array<string>(21).fill('https://shop.example')])
        expect((await refusalOf(update({ return_origins: value }))).field).to.equal('return_origins')
      expect((await getApp(service.ctx.db, app.app.id)).returnOrigins).to.equal(null)
    })

    it('accepts http only on loopback in development', async () => {
      const production = testContext({}, { env: 'production' })
      for (const origin of ['http://localhost:3000', 'http://127.0.0.1:8080', 'http://[::1]:8080']) {
        expect((await update({ return_origins: [origin] })).returnOrigins).to.deep.equal([origin])
        const error = await refusalOf(
          perform(production, operator('linh'), updateApp, { return_origins: [origin] }, { app: app.app }),
        )
        expect(error.field).to.equal('return_origins')
      }
    })

    it('refuses both for an app whose server signs, which they would not limit', async () => {
      const server = await anApp(service.ctx)
      for (const [field, value] of [
        ['client_amounts', true],
        ['client_amounts', false],
        ['return_origins', ['https://shop.example']],
        ['return_origins', null],
      ] as const) {
        const error = await refusalOf(update({ [field]: value }, server))
        expect(error).to.include({ code: 'invalid_request', field })
        expect(error.message).to.include('identity-token apps')
      }
    })

    it('writes both to the audit log', async () => {
      await update({ client_amounts: true, return_origins: ['https://shop.example'] })
      const [entry] = await listAuditEntries(service.ctx.db, { subject: `app ${app.app.id}`, limit: 1 })
      expect(entry).to.include({ actor: 'linh', action: 'app.update' })
      expect(entry!.beforeState).to.deep.include({ client_amounts: false, return_origins: null })
      expect(entry!.afterState).to.deep.include({ client_amounts: true, return_origins: ['https://shop.example'] })
    })
  })
})
