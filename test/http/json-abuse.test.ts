import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { startService, type Response, type SellerClient, type TestService } from '../support/api.ts'
import { expectFieldError } from '../support/expect-error.ts'
import { anApp } from '../support/factories.ts'

describe('hostile JSON', () => {
  let service: TestService
  let seller: SellerClient

  beforeEach(async () => {
    service = await startService()
    seller = service.seller(await anApp(service.ctx))
  })

  afterEach(() => service.stop())

  it('nested 100 000 levels deep and never closed is not valid JSON', async () => {
    for (const raw of ['['.repeat(100_000), '{"a":'.repeat(20_000), `{"name":${'['.repeat(100_000)}`]) {
      expectFieldError(await customer(raw), null)
    }
  })

  it('nested 50 000 levels deep is an error of the field that contains it', async () => {
    const deep = '['.repeat(50_000) + ']'.repeat(50_000)
    expectFieldError(await customer(`{"name":${deep},"email":"an@example.com"}`), 'name')
    expectFieldError(await customer(`{"name":"An","email":"an@example.com","cc_emails":${deep}}`), 'cc_emails.0')
    const objects = '{"a":'.repeat(16_000) + '1' + '}'.repeat(16_000)
    expectFieldError(await customer(`{"name":"An","email":"an@example.com","locale":${objects}}`), 'locale')
  })

  it('with a duplicate field is refused, whichever of the two is valid', async () => {
    expectFieldError(await customer('{"name":"An","email":"an@example.com","name":"Bo"}'), 'name')
    expectFieldError(await customer('{"name":"An","email":"an@example.com","n\\u0061me":"An"}'), 'name')
    const price = (fields: string) => `{"currency":"VND","interval_unit":"month","interval_count":1,${fields}}`
    const plan = `{"code":"a","name":"A","prices":[${price('"amount":1')},${price('"amount":1,"amount":2')}]}`
    expectFieldError(await seller.post('/api/v1/plans', null, { raw: plan }), 'prices.1.amount')
  })

  it('is not echoed at any length: the answer contains at most 200 characters of a field name', async () => {
    const repeated = '{"a":1,"a":1}'
    const longName = 'n'.repeat(90_000)
    const bodies: [title: string, raw: string, field: string][] = [
      ['a name twice, 49 000 levels deep', '['.repeat(49_000) + repeated + ']'.repeat(49_000), `${'0.'.repeat(99)}0…`],
      ['a long name twice', `{"${longName.slice(45_000)}":1,"${longName.slice(45_000)}":1}`, `${'n'.repeat(199)}…`],
      ['a long unknown name', `{"name":"An","email":"an@example.com","${longName}":1}`, `${'n'.repeat(199)}…`],
      ['pairs at the cut', `{"name":"An","email":"an@example.com","n${'😀'.repeat(200)}":1}`, `n${'😀'.repeat(198)}…`],
      [
        'a name as long as is repeated',
        `{"name":"An","email":"an@example.com","${'n'.repeat(200)}":1}`,
        'n'.repeat(200),
      ],
    ]
    for (const [title, raw, field] of bodies) {
      const answer = await customer(raw)
      expectFieldError(answer, field)
      expect(Array.from((answer.body.error as { message: string }).message).length, title).to.be.at.most(250)
    }
  })

  it('with __proto__, constructor or prototype has unknown fields', async () => {
    for (const name of ['__proto__', 'constructor', 'prototype', 'hasOwnProperty', '\\u005f_proto__']) {
      const raw = `{"name":"An","email":"an@example.com","${name}":{"isAdmin":true,"locale":"vi"}}`
      expectFieldError(await customer(raw), JSON.parse(`"${name}"`) as string)
    }
    expectFieldError(await customer('{"__proto__":{"name":"An","email":"an@example.com"}}'), 'name')
    expect(({} as { isAdmin?: unknown }).isAdmin).to.equal(undefined)
  })

  it('with numbers beyond what a number can represent is an error of their field', async () => {
    const numbers = [
      '1e400',
      '-1e400',
      '9007199254740992',
      '9007199254740993',
      '1e16',
      '18446744073709551616',
      '1'.repeat(400),
      '1e-400',
      '-0.0',
    ]
    for (const number of numbers) {
      const raw = `{"amount":${number},"currency":"VND","interval_unit":"month","interval_count":1}`
      const plan = `{"code":"a","name":"A","prices":[${raw}]}`
      expectFieldError(await seller.post('/api/v1/plans', null, { raw: plan }), 'prices.0.amount')
    }
  })

  it('with unpaired surrogates and control characters is an error of their field', async () => {
    for (const text of [
      '\\ud800',
      '\\udfff',
      'a\\ud83d',
      '\\ude00\\ud83d',
      '\\u0000',
      '\\u0008',
      '\\u001f',
      '\\u007f',
      '\\u009f',
      '\\n',
    ]) {
      expectFieldError(await customer(`{"name":"An${text}","email":"an@example.com"}`), 'name')
      expectFieldError(await customer(`{"name":"An","email":"an${text}@example.com"}`), 'email')
      expectFieldError(
        await customer(`{"name":"An","email":"an@example.com","merchant_customer_id":"${text}"}`),
        'merchant_customer_id',
      )
    }
  })

  it('keeps every character that a text may contain', async () => {
    const name =
      '\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \u200fabc\u200e \ufffd \ufeff e\u0301 \u{10ffff} <script>"\'\\/&amp;'
    const answer = await seller.post('/api/v1/customers', { name, email: 'an@example.com' })
    expect(answer.status).to.equal(201)
    expect(answer.body.data.name).to.equal(name)
    expect((await seller.get(`/api/v1/customers/${answer.body.data.id}`)).body.data.name).to.equal(name)
  })

  function customer(raw: string): Promise<Response> {
    return seller.post('/api/v1/customers', null, { raw })
  }
})
