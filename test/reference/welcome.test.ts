import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { startService, type TestService } from '../support/api.ts'
import { expectError } from '../support/expect-error.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

describe('GET /', () => {
  let service: TestService

  beforeEach(async () => {
    service = await startService()
  })
  afterEach(() => service.stop())

  it('says in HTML that Paygate runs here, with links to /docs and /healthz that answer', async () => {
    for (const Accept of [BROWSER, '*/*']) {
      const page = await service.call('GET', '/', { headers: { Accept } })
      expect(page.status).to.equal(200)
      expect(page.headers['content-type']).to.equal('text/html; charset=utf-8')
      expect(page.headers['vary']).to.contain('Accept')
      expect(page.text).to.contain('Paygate runs here')
      for (const path of ['/docs', '/healthz']) {
        expect(page.text).to.match(new RegExp(`href="[^"]*${path}"`))
        expect((await service.call('GET', path)).status).to.equal(200)
      }
    }
  })

  it('is 404 not_found to a client that takes JSON', async () => {
    expectError(await service.call('GET', '/', { headers: { Accept: 'application/json' } }), 404, 'not_found')
  })
})
