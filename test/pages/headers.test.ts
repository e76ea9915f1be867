import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { formSource } from '#http/html.ts'
import { MONTHLY } from '../support/factories.ts'
import type { Response } from '../support/api.ts'
import { startScenario, type Scenario } from '../support/scenario.ts'
import { startBankScenario } from './bank-scenario.ts'
import { attributes } from './read-page.ts'

const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }

function policyOf(page: Response): Record<string, string> {
  const directives = String(page.headers['content-security-policy']).split('; ')
  return Object.fromEntries(
    directives.map((directive) => {
      const [name = '', ...sources] = directive.split(' ')
      return [name, sources.join(' ')]
    }),
  )
}

describe('the headers of hosted pages', () => {
  let scenario: Scenario
  afterEach(() => scenario.service.stop())

  const get = (url: string) => scenario.service.call('GET', url)

  it('allow nothing from outside, no frame, no referrer, no caching, no cookie, on every response', async () => {
    scenario = await startBankScenario()
    const plan = await scenario.plan('premium', MONTHLY)
    const open = await scenario.checkout({ price_id: plan.prices[0]! })
    const paid = await scenario.checkout({ price_id: plan.prices[0]!, external_ref: 'user-2' })
    await scenario.pay(paid)
    const answers = [
      await get(open.checkout_url),
      await get(`${open.checkout_url}/bank`),
      await get(`${open.checkout_url}/qr.svg`),
      await get(`${open.checkout_url}/status`),
      await get(paid.checkout_url),
      await get(`/checkout/${'0'.repeat(64)}`),
      await scenario.service.call('POST', `${open.checkout_url}/resolve`, {
        headers: FORM,
        raw: 'payment_method=cash',
      }),
      await scenario.service.call('POST', `${open.checkout_url}/resolve`, {
        headers: FORM,
        raw: 'payment_method=test',
      }),
    ]
    expect(answers.map(({ status }) => status)).to.deep.equal([200, 200, 200, 200, 303, 404, 400, 303])
    for (const answer of answers) {
      expect(policyOf(answer)).to.include({
        'default-src': "'none'",
        'style-src': "'self'",
        'script-src': "'self'",
        'img-src': "'self' data:",
        'connect-src': "'self'",
        'frame-ancestors': "'none'",
        'base-uri': "'none'",
      })
      expect(answer.headers['referrer-policy']).to.equal('no-referrer')
      expect(answer.headers['x-content-type-options']).to.equal('nosniff')
      expect(answer.headers['cache-control']).to.equal('no-store')
      expect(answer.headers['x-request-id']).to.match(/^req_/)
      expect(answer.headers).not.to.have.property('set-cookie')
    }
  })

  it('let a form lead to the seller, and to a provider only if one is offered', async () => {
    scenario = await startScenario()
    const plan = await scenario.plan('premium', MONTHLY)
    const body = { price_id: plan.prices[0]!, success_url: 'http://localhost:3000/thanks?a=1' }
    const { checkout_url } = await scenario.checkout(body)
    expect(policyOf(await get(checkout_url))['form-action']).to.equal("'self' http://localhost:3000")
    await scenario.service.stop()
    scenario = await startBankScenario()
    const dong = await scenario.checkout({ price_id: (await scenario.plan('premium', MONTHLY)).prices[0]! })
    expect(policyOf(await get(dong.checkout_url))['form-action']).to.equal("'self' https://shop.example https:")
  })

  it('let a form lead to the stand-in of a provider in development', async () => {
    scenario = await startBankScenario({}, { BILLING_PAYOS_API_BASE: 'http://127.0.0.1:4242' })
    const { checkout_url } = await scenario.checkout({ price_id: (await scenario.plan('premium', MONTHLY)).prices[0]! })
    const sources = policyOf(await get(checkout_url))['form-action']!.split(' ')
    expect(sources).to.include('http://127.0.0.1:4242')
  })

  it('are not broken by an address that the policy cannot contain', async () => {
    expect(formSource('https://shop.example:8443/a?b')).to.equal('https://shop.example:8443')
    expect(formSource('https://a;sandbox/ok')).to.equal('https:')
    expect(formSource("https://a'b.example/ok")).to.equal('https:')
    expect(formSource('http://[::1]:3000/ok')).to.equal('http:')
    scenario = await startScenario()
    const price = (await scenario.plan('premium', MONTHLY)).prices[0]!
    const { checkout_url } = await scenario.checkout({ price_id: price, success_url: 'https://a;sandbox/ok' })
    const policy = policyOf(await get(checkout_url))
    expect(policy).not.to.have.property('sandbox')
    expect(policy['form-action']).to.equal("'self' https:")
  })

  it('let browsers cache stylesheet and script permanently, under names that change with their content', async () => {
    scenario = await startScenario()
    const page = await get(
      (await scenario.checkout({ price_id: (await scenario.plan('p', MONTHLY)).prices[0]! })).checkout_url,
    )
    const [style, script] = [attributes(page, 'link', 'href')[1]!, attributes(page, 'script', 'src')[0]!]
    for (const [path, type] of [
      [style, 'text/css; charset=utf-8'],
      [script, 'text/javascript; charset=utf-8'],
    ] as const) {
      expect(path).to.match(/^\/assets\/[0-9a-f]{16}\.(css|js)$/)
      const file = await get(path)
      expect([file.status, file.headers['content-type']]).to.deep.equal([200, type])
      expect(file.headers['cache-control']).to.equal('public, max-age=31536000, immutable')
    }
    expect((await get('/assets/0123456789abcdef.css')).status).to.equal(404)
    expect((await get('/assets/..%2f..%2fpackage.json')).status).to.equal(404)
  })

  it('go with links that stay below the path of the base address', async () => {
    scenario = await startScenario()
    const { checkout_url } = await scenario.checkout({ price_id: (await scenario.plan('p', MONTHLY)).prices[0]! })
    Object.assign(scenario.service.ctx.config, { baseUrl: 'https://pay.example/billing' })
    const page = await get(checkout_url)
    expect(attributes(page, 'form', 'action')[0]).to.match(/^\/billing\/checkout\/[0-9a-f]{64}\/resolve$/)
    expect(attributes(page, 'link', 'href')[1]).to.match(/^\/billing\/assets\//)
  })
})
