import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { createSandbox } from 'sinon'
import { signRequest } from '#apps/call-signature.ts'
import { rotateSecret } from '#apps/rotate-secret.ts'
import { secretPlace, updateAppRow } from '#apps/store.ts'
import { inTransaction } from '#commands/transaction.ts'
import { unixSeconds } from '#shared/time.ts'
import { startService, type Response, type TestService } from '../support/api.ts'
import { expectError } from '../support/expect-error.ts'
import { anApp, type TestApp } from '../support/factories.ts'
import { head, sendRaw } from '../support/raw-http.ts'
import { setDisabled } from '../support/operators.ts'

const PLANS = '/api/v1/plans?status=active'
const CUSTOMERS = '/api/v1/customers'
const CUSTOMER = Buffer.from('{"name":"An","email":"an@example.com"}')

let service: TestService
let app: TestApp
const sandbox = createSandbox()
describe('signed requests', () => {
  beforeEach(async () => {
    service = await startService()
    // Sandbox apps get explanations instead: explain-refusal.test.ts.
    app = await anApp(service.ctx, { sandbox: false })
  })

  afterEach(async () => {
    sandbox.restore()
    await service.stop()
  })

  describe('signatures of HMAC apps', () => {
    const SECRET = 'sk_test_secret'
    const VECTORS = [
      {
        method: 'GET',
        target: PLANS,
        body: '',
        signature: '79734b58b3c202061a2f729913a689b6ad3c0fbe8ce96d66d8a2f6c456ee3232',
      },
      {
        method: 'POST',
        target: CUSTOMERS,
        body: '{"name":"An"}',
        signature: 'c91d38be3e7f037eb0692a6582952ca96a67ee67bdc3a38c40672493a9ba6e16',
      },
    ]

    it('agree with the published vectors', () => {
      for (const { method, target, body, signature } of VECTORS) {
        expect(signRequest(SECRET, '1767225600', { method, target, body: Buffer.from(body) })).to.equal(signature)
      }
    })

    it('of the published vectors are accepted over HTTP', async () => {
      const { ctx } = service
      ctx.clock.set('2026-01-01 00:00:00')
      const apiSecret = ctx.keyring.seal(SECRET, secretPlace('api_secret', app.apiKey))
      await inTransaction(ctx, (tx) => updateAppRow(tx, app.app.id, { apiSecret }))
      const [plans, customers] = await Promise.all(
        VECTORS.map(({ method, target, body, signature }) =>
          service.call(method, target, {
            raw: body,
            headers: {
              'X-App-Key': app.apiKey,
              'X-Timestamp': '1767225600',
              'X-Signature': signature,
              'Content-Type': 'application/json',
            },
          }),
        ),
      )
      expect(plans!.status).to.equal(200)
      expect(customers!.body.error).to.include({ code: 'invalid_request', field: 'email' })
    })

    it('cover method, path, query and body exactly as sent', async () => {
      const sent = '/api/v1/customers?email=%61n%40example.com&merchant_customer_id=%E1%BA%BF+'
      expect((await signed('GET', sent)).status).to.equal(200)
      const others: [signed: string, method: string, target: string, body: string][] = [
        ['the decoded path', 'GET', '/api/v1/customers?email=an@example.com&merchant_customer_id=ế ', ''],
        ['no query', 'GET', '/api/v1/customers', ''],
        [
          'the query in another order',
          'GET',
          '/api/v1/customers?merchant_customer_id=%E1%BA%BF+&email=%61n%40example.com',
          '',
        ],
        ['another method', 'POST', sent, ''],
        ['the method in lower case', 'get', sent, ''],
        ['another path', 'GET', sent.replace('customers', 'plans'), ''],
        ['a body that was not sent', 'GET', sent, '{}'],
      ]
      for (const [what, method, target, body] of others) {
        const signature = sign(now(), method, target, Buffer.from(body))
        const answer = await call('GET', sent, Buffer.alloc(0), { 'X-Signature': signature })
        expect(answer.status, what).to.equal(401)
      }
    })

    it('cover the bytes of the body: re-serialised JSON, another encoding or a byte order mark does not match', async () => {
      const spaced = Buffer.from('{ "name": "Nguy\u1ec5n", "email": "an@example.com" }')
      expect((await signed('POST', CUSTOMERS, spaced)).status).to.equal(201)
      const variants = [
        Buffer.from(JSON.stringify(JSON.parse(spaced.toString()))),
        Buffer.from('{ "name": "Nguy\\u1ec5n", "email": "an@example.com" }'),
        Buffer.from(`\ufeff${spaced.toString()}`),
        Buffer.from(spaced.toString().normalize('NFD')),
        Buffer.concat([spaced, Buffer.from('\n')]),
        Buffer.alloc(0),
      ]
      for (const variant of variants) {
        const signature = sign(now(), 'POST', CUSTOMERS, spaced)
        expectError(await call('POST', CUSTOMERS, variant, { 'X-Signature': signature }), 401, 'unauthorized')
      }
      expect((await signed('POST', CUSTOMERS, variants[2])).status, 'with its own signature').to.equal(201)
    })

    it('are refused with the same 401 unauthorized, whatever their length, case and alphabet', async () => {
      const right = sign(now(), 'GET', PLANS, Buffer.alloc(0))
      const wrong = [
        ...Array.from({ length: 201 }, (_, length) => 'a'.repeat(length)),
        ...Array.from({ length: 64 }, (_, length) => right.slice(0, length)),
        right.toUpperCase(),
        `${right}0`,
        `0x${right.slice(2)}`,
        `${right},${right}`,
        `sha256=${right}`,
        `${right.slice(0, 63)}${right.endsWith('0') ? '1' : '0'}`,
        Buffer.from(right, 'hex').toString('base64'),
        'g'.repeat(64),
        '\u00e9'.repeat(64),
        '[object Object]',
        'null',
      ]
      const answers = await Promise.all(
        wrong.map((signature) => call('GET', PLANS, Buffer.alloc(0), { 'X-Signature': signature })),
      )
      expectSameRefusal(answers)
      expect((await call('GET', PLANS, Buffer.alloc(0), { 'X-Signature': right })).status).to.equal(200)
    })

    it('are refused the same way if key, timestamp or signature is missing or wrong', async () => {
      const signature = sign(now(), 'GET', PLANS, Buffer.alloc(0))
      const other = await anApp(service.ctx, { sandbox: false })
      const all = { 'X-App-Key': app.apiKey, 'X-Timestamp': now(), 'X-Signature': signature }
      const without = (name: string) => Object.fromEntries(Object.entries(all).filter(([key]) => key !== name))
      const sets: Record<string, string>[] = [
        {},
        ...Object.keys(all).map(without),
        { ...all, 'X-App-Key': 'pk_live_unknown' },
        { ...all, 'X-App-Key': other.apiKey },
        { ...all, 'X-App-Key': app.apiKey.toUpperCase() },
        { ...all, 'X-App-Key': `${app.apiKey}x` },
        { ...all, 'X-App-Key': 'k'.repeat(5000) },
        { ...all, 'X-App-Key': String(app.app.id) },
        { ...all, 'X-Signature': sign(now(), 'GET', PLANS, Buffer.alloc(0), other.secret) },
        { ...without('X-Signature'), Authorization: `Bearer ${signature}` },
        { ...without('X-Signature'), Authorization: `Bearer ${app.secret}` },
      ]
      expectSameRefusal(await Promise.all(sets.map((headers) => service.call('GET', PLANS, { headers }))))
    })

    it('and tokens of an impossible form are refused without a database query', async () => {
      const right = {
        'X-App-Key': app.apiKey,
        'X-Timestamp': now(),
        'X-Signature': sign(now(), 'GET', PLANS, Buffer.alloc(0)),
      }
      const { 'X-Signature': signature, ...unsigned } = right
      const bearer = (token: string) => ({ ...unsigned, Authorization: `Bearer ${token}` })
      const sets: Record<string, string>[] = [
        {},
        unsigned,
        ...[
          '',
          'x',
          'pk_live_unknown',
          `${app.apiKey}0`,
          app.apiKey.toUpperCase(),
          app.apiKey.replace('live', 'prod'),
        ].map((key) => ({ ...right, 'X-App-Key': key })),
        ...['', 'now', `${now()}.0`, `-${now()}`, '9'.repeat(13), String(Number(now()) - 301)].map((timestamp) => ({
          ...right,
          'X-Timestamp': timestamp,
        })),
        ...['', signature.slice(1), `${signature}0`, signature.toUpperCase(), 'g'.repeat(64)].map((text) => ({
          ...right,
          'X-Signature': text,
        })),
        ...['', 'x', 'a.b', 'a.b.c.d', 'a..c', '.b.c', 'a.b.', 'a.b.c=', 'a.b.c d', 'a.b.ü'].map((token) =>
          bearer(token),
        ),
        { ...unsigned, Authorization: 'Basic a.b.c' },
      ]
      const asked = spyOnDatabase()
      expectSameRefusal(await Promise.all(sets.map((headers) => service.call('GET', PLANS, { headers }))))
      for (const token of ['a', 'a'.repeat(63), 'a'.repeat(65), 'A'.repeat(64), 'g'.repeat(64), `${'a'.repeat(64)}%20`])
        for (const path of [`/checkout/${token}`, `/checkout/${token}/status`, `/renew/${token}`])
          expect((await service.call('GET', path)).status, path).to.equal(404)
      expect(asked.callCount).to.equal(0)
      expect((await service.call('GET', PLANS, { headers: right })).status).to.equal(200)
      expectError(await service.call('GET', PLANS, { headers: bearer('a.b.c') }), 401, 'unauthorized')
      expect(asked.callCount).to.be.greaterThan(1)
    })

    it('are valid for 300 seconds either way', async () => {
      const seconds = unixSeconds(service.ctx.clock.now())
      for (const offset of [-300, -1, 0, 1, 300]) {
        expect((await signedAt(String(seconds + offset))).status, String(offset)).to.equal(200)
      }
      const texts = [-301, 301, -86_400, 86_400].map((offset) => String(seconds + offset))
      texts.push(
        '',
        '0',
        '-1',
        `${seconds}.0`,
        `${seconds}.5`,
        `+${seconds}`,
        ` ${seconds}0`,
        `${seconds}000`,
        `${seconds}e0`,
      )
      texts.push(
        `0x${seconds.toString(16)}`,
        'NaN',
        'Infinity',
        'now',
        '2026-03-01 10:00:00',
        '9'.repeat(400),
        `${seconds}, ${seconds}`,
      )
      expectSameRefusal(await Promise.all(texts.map(signedAt)))
    })

    it('are checked before the app’s state: a disabled app answers 403 app_disabled only to a valid signature', async () => {
      await setDisabled(service.ctx, 'tester', app.app, true)
      expectError(await signed('GET', PLANS), 403, 'app_disabled')
      expectError(await call('GET', PLANS, Buffer.alloc(0), { 'X-Signature': '0'.repeat(64) }), 401, 'unauthorized')
      await setDisabled(service.ctx, 'tester', app.app, false)
      expect((await signed('GET', PLANS)).status).to.equal(200)
    })

    it('with a rotated secret are refused at once', async () => {
      expect((await signed('GET', PLANS)).status).to.equal(200)
      const { api_secret } = await perform(service.ctx, operator('tester'), rotateSecret, {}, { app: app.app })
      expectError(await signed('GET', PLANS), 401, 'unauthorized')
      const signature = sign(now(), 'GET', PLANS, Buffer.alloc(0), api_secret)
      expect((await call('GET', PLANS, Buffer.alloc(0), { 'X-Signature': signature })).status).to.equal(200)
    })

    it('are never logged, nor are secrets and bodies', async () => {
      const signature = sign(now(), 'POST', CUSTOMERS, CUSTOMER)
      await signed('POST', CUSTOMERS, CUSTOMER)
      await call('POST', CUSTOMERS, Buffer.from('{"name":"Canary"'), {})
      await call('POST', CUSTOMERS, CUSTOMER, { 'X-Signature': 'f'.repeat(64) })
      const log = service.ctx.logged.join('')
      expect(log).to.contain('request')
      for (const text of [app.secret, signature, 'f'.repeat(64), 'an@example.com', 'Canary']) {
        expect(log.includes(text), text).to.equal(false)
      }
    })
  })

  describe('signed requests as bytes on a socket', () => {
    it('are accepted chunked, in pieces, and after Expect: 100-continue', async () => {
      const chunked = `5\r\n${CUSTOMER.subarray(0, 5).toString()}\r\n${(CUSTOMER.length - 5).toString(16)}\r\n${CUSTOMER.subarray(5).toString()}\r\n0\r\n\r\n`
      const chunkedHead = head(`POST ${CUSTOMERS}`, [...signatureOf(CUSTOMER), ['Transfer-Encoding', 'chunked']])
      expect((await sendRaw(service.url, chunkedHead, chunked)).status).to.equal(201)
      const plain = head(`POST ${CUSTOMERS}`, [...signatureOf(CUSTOMER), ['Content-Length', String(CUSTOMER.length)]])
      expect(
        (await sendRaw(service.url, plain.slice(0, 40), plain.slice(40), CUSTOMER.subarray(0, 9), CUSTOMER.subarray(9)))
          .status,
      ).to.equal(201)
      const expecting = [
        ...signatureOf(CUSTOMER),
        ['Content-Length', String(CUSTOMER.length)],
        ['Expect', '100-continue'],
      ] as const
      expect((await sendRaw(service.url, head(`POST ${CUSTOMERS}`, expecting), CUSTOMER)).status).to.equal(201)
    })

    it('are refused with 401 if one of the three headers is repeated', async () => {
      for (const doubled of ['X-App-Key', 'X-Timestamp', 'X-Signature']) {
        const fields = signatureOf(CUSTOMER)
        const again = fields.find(([name]) => name === doubled)!
        for (const twice of [
          [...fields, again],
          [[doubled.toLowerCase(), 'x'] as const, ...fields],
        ]) {
          const bytes = head(`POST ${CUSTOMERS}`, [...twice, ['Content-Length', String(CUSTOMER.length)]])
          expectError(await sendRaw(service.url, bytes, CUSTOMER), 401, 'unauthorized')
        }
      }
    })

    it('are never read from headers that contain line breaks', async () => {
      const [key, timestamp, [, signature]] = signatureOf(CUSTOMER) as [Field, Field, Field]
      const length: Field = ['Content-Length', String(CUSTOMER.length)]
      const values = [
        `\r\n ${signature}`,
        `${signature}\r\n `,
        `${signature}\n`,
        `${signature}\r`,
        `${signature.slice(0, 32)}\r\n\t${signature.slice(32)}`,
        `${signature}\0`,
      ]
      for (const value of values) {
        const bytes = head(`POST ${CUSTOMERS}`, [
          ['Content-Type', 'application/json'],
          key,
          timestamp,
          ['X-Signature', value],
          length,
        ])
        const { status } = await sendRaw(service.url, bytes, CUSTOMER)
        // Node's parser refuses most of these; whitespace around a value is not part of it (RFC 9112, 5.1).
        expect(status, JSON.stringify(value)).to.be.oneOf([400, 401, 201])
        if (status === 201) expect(value.trim()).to.equal(signature)
      }
    })

    it('that are too large are answered 413 payload_too_large before anything is checked, however they are sent', async () => {
      const large = Buffer.alloc(100 * 1024 + 1, 32)
      const fields = signatureOf(large)
      const withLength = head(`POST ${CUSTOMERS}`, [...fields, ['Content-Length', String(large.length)]])
      expectError(await sendRaw(service.url, withLength, large), 413, 'payload_too_large')
      const chunked = head(`POST ${CUSTOMERS}`, [...fields, ['Transfer-Encoding', 'chunked']])
      const chunk = `${large.length.toString(16)}\r\n${large.toString()}\r\n0\r\n\r\n`
      expectError(await sendRaw(service.url, chunked, chunk), 413, 'payload_too_large')
      // A proxy sends the whole body before it reads the answer: closing earlier would reset the connection.
      const longer = Buffer.alloc(5 * 1024 * 1024, 32)
      const long = head(`POST ${CUSTOMERS}`, [...fields, ['Content-Length', String(longer.length)]])
      let wasReset = false
      const answer = await sendRaw(service.url, { onReset: () => (wasReset = true) }, long, longer)
      expectError(answer, 413, 'payload_too_large')
      expect(wasReset).to.equal(false)
      const announced = head(`POST ${CUSTOMERS}`, [...fields, ['Content-Length', '99999999999']])
      expectError(await sendRaw(service.url, announced), 413, 'payload_too_large')
    })

    it('of exactly 100 KB are accepted', async () => {
      const body = Buffer.concat([CUSTOMER, Buffer.alloc(100 * 1024 - CUSTOMER.length, 32)])
      expect((await signed('POST', CUSTOMERS, body)).status).to.equal(201)
    })
  })

  function spyOnDatabase() {
    return sandbox.spy(service.ctx.db.pool, 'take')
  }

  type Field = readonly [name: string, value: string]

  function now(): string {
    return String(unixSeconds(service.ctx.clock.now()))
  }

  function sign(timestamp: string, method: string, target: string, body: Buffer, secret = app.secret): string {
    return signRequest(secret, timestamp, { method, target, body })
  }

  function signatureOf(body: Buffer): Field[] {
    return [
      ['X-App-Key', app.apiKey],
      ['X-Timestamp', now()],
      ['X-Signature', sign(now(), 'POST', CUSTOMERS, body)],
      ['Content-Type', 'application/json'],
    ]
  }

  function call(method: string, target: string, body: Buffer, headers: Record<string, string>): Promise<Response> {
    const fields = { 'X-App-Key': app.apiKey, 'X-Timestamp': now(), 'Content-Type': 'application/json' }
    return service.call(method, target, { raw: body, headers: { ...fields, ...headers } })
  }

  function signed(method: string, target: string, body = Buffer.alloc(0)): Promise<Response> {
    return call(method, target, body, { 'X-Signature': sign(now(), method, target, body) })
  }

  function signedAt(timestamp: string): Promise<Response> {
    const signature = sign(timestamp, 'GET', PLANS, Buffer.alloc(0))
    return call('GET', PLANS, Buffer.alloc(0), { 'X-Timestamp': timestamp, 'X-Signature': signature })
  }

  /** All answers are 401 and differ only in their request ids. */
  function expectSameRefusal(answers: readonly Response[]): void {
    const bodies = new Set<string>()
    for (const answer of answers) {
      expectError(answer, 401, 'unauthorized')
      bodies.add(answer.text.replace(answer.body.error.request_id, ''))
    }
    expect([...bodies]).to.have.length(1)
  }
})
