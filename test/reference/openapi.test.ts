import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectralCore from '@stoplight/spectral-core'
import { oas } from '@stoplight/spectral-rulesets'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { API_ROUTES } from '#daemon/app.ts'
import { openApiOf, type Json, type OpenApi } from '#reference/openapi.ts'
import { ERROR_STATUS } from '#shared/errors.ts'
import { EVENTS } from '#webhooks/events.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { startScenario, type Scenario } from '../support/scenario.ts'

const { Spectral } = spectralCore

describe('the OpenAPI document', () => {
  const SERVER = 'https://paygate.seller.example'
  const api = openApiOf(API_ROUTES, SERVER)
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )

  it('has every call of the API, and the body of every call that takes one', () => {
    expect(operations.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`)).to.have.members(
      API_ROUTES.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, '{}')}`),
    )
    for (const { method, path, operation } of operations) {
      expect(operation.requestBody !== undefined, `${method} ${path}`).to.equal(method !== 'GET')
      expect(path.match(/\{\w+\}/g)?.length ?? 0, path).to.equal(
        operation.parameters.filter((parameter) => parameter['in'] === 'path').length,
      )
    }
  })

  it('has every error code, and every event of the webhooks', () => {
    expect(at(api, 'components.schemas.ErrorBody.properties.error.properties.code.enum')).to.have.members(
      Object.keys(ERROR_STATUS),
    )
    expect(Object.keys(api.webhooks)).to.have.members(Object.keys(EVENTS))
  })

  it('passes the rules that Redocly recommends', async () => {
    const config = await createConfig({ extends: ['recommended'] })
    const problems = await lintFromString({ source: JSON.stringify(api), absoluteRef: 'openapi.json', config })
    expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).to.deep.equal([])
  })

  it('passes the rules that Spectral recommends', async () => {
    const spectral = new Spectral()
    // Redocly and a test below check the examples of bodies too, in a quarter of the time.
    const rules = { 'oas3-valid-media-example': 'off' } as const
    spectral.setRuleset({ extends: [[{ extends: [], ...oas }, 'recommended']], rules })
    const problems = await spectral.run(JSON.parse(JSON.stringify(api)) as Json)
    expect(problems.map(({ code, path, message }) => `${code} ${path.join('.')}: ${message}`)).to.deep.equal([])
  })

  it('has one type for each event, in webhooks and in lists', () => {
    const bodies = Object.values(api.webhooks).map(
      ({ post }) =>
        (post.requestBody as { content: Record<string, { schema: Json }> }).content['application/json']!.schema,
    )
    expect(bodies.map(({ $ref }) => $ref)).to.include('#/components/schemas/TransactionCompletedEvent')
    expect(at(api, 'components.schemas.Event.allOf.0.oneOf')).to.deep.equal(bodies)
  })

  it('has examples that fit their schemas', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema(api, 'api')
    const contents = contentsOf(api)
    expect(contents.length).to.be.greaterThan(40)
    for (const { place, schema, values } of contents) {
      expect(values, place).not.to.have.length(0)
      const check = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as Json)
      for (const value of values) expect(check(value), `${place}: ${ajv.errorsText(check.errors)}`).to.equal(true)
    }
  })

  describe('on a running daemon', () => {
    let scenario: Scenario

    beforeEach(async () => {
      scenario = await startScenario({ methods: ['test'] })
    })

    afterEach(() => scenario.service.stop())

    it('is served at GET /openapi.json, for pages of any origin', async () => {
      const { status, headers, body } = await scenario.service.call<typeof api>('GET', '/openapi.json')
      expect(status).to.equal(200)
      expect(headers['access-control-allow-origin']).to.equal('*')
      const address = scenario.service.url
      expect(body).to.deep.equal(JSON.parse(JSON.stringify(api).replaceAll(SERVER, address)))
      expect(body.servers).to.deep.equal([{ url: address }])
      expect(body.info.version).to.equal(packageJson.version)
    })

    it('has bodies that are accepted, each with the success that it names', async () => {
      const plan = await scenario.plan('basic', {
        amount: 99000,
        currency: 'VND',
        interval_unit: 'month',
        interval_count: 1,
      })
      const { body: customer } = await scenario.seller.post('/api/v1/customers', {
        name: 'An',
        email: 'an@example.com',
      })
      await scenario.pay(await scenario.checkout({ external_ref: 'user-42', price_id: plan.prices[0] }))
      const ids: Record<string, string> = {
        plan_1: plan.id,
        price_1: plan.prices[0] ?? '',
        cus_1: customer.data.id,
      }
      const withIds = (text: string): string => text.replace(/\b(plan|price|cus)_1\b/g, (id) => ids[id] ?? id)
      // What archives the price comes last: it is sold before.
      const bodies = operations
        .flatMap(({ method, path, operation }) =>
          bodiesOf(operation.requestBody).map((body) => ({ method, path, body, operation })),
        )
        .sort(
          (one, other) =>
            Number(one.operation.operationId === 'updatePrice') - Number(other.operation.operationId === 'updatePrice'),
        )
      // A checkout and a promotion have two forms.
      expect(bodies.length).to.equal(operations.filter(({ method }) => method !== 'GET').length + 2)
      const { body: promotion } = await scenario.seller.post('/api/v1/promotions', { code: 'ANY', percent: 10 })
      for (const { method, path, body, operation } of bodies) {
        const target = path
          .replace('/customers/{id}', `/customers/${customer.data.id}`)
          .replace('/promotions/{id}', `/promotions/${promotion.data.id}`)
          .replace('{id}', plan.id)
          .replace('{price_id}', plan.prices[0] ?? '')
          .replace('{external_ref}', 'user-42')
        const answer = await scenario.seller[verbOf(method)](target, JSON.parse(withIds(JSON.stringify(body))))
        expect(Object.keys(operation.responses), `${method} ${target}: ${answer.text}`).to.include(
          String(answer.status),
        )
        expect(answer.status, `${method} ${target}: ${answer.text}`).to.be.lessThan(300)
      }
    })
  })
})

function verbOf(method: string): 'post' | 'put' | 'patch' {
  return method === 'POST' ? 'post' : method === 'PUT' ? 'put' : 'patch'
}

/** A value inside the document, by its dotted path. */
function at(api: OpenApi, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Json)[name], api)
}

interface Content {
  readonly place: string
  readonly schema: Json
  readonly values: unknown[]
}

/** Every body and answer in the document, with its examples. */
function contentsOf(value: unknown, place = ''): Content[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value as Json).flatMap(([name, inner]) =>
    name === 'application/json'
      ? [{ place, schema: (inner as { schema: Json }).schema, values: examplesOf(inner as Json) }]
      : contentsOf(inner, `${place}/${name}`),
  )
}

function examplesOf({ example, examples = {} }: Json): unknown[] {
  const named = Object.values(examples as Record<string, { value: unknown }>).map(({ value }) => value)
  return example === undefined ? named : [example, ...named]
}

function bodiesOf(body: Json | undefined): unknown[] {
  return body === undefined ? [] : examplesOf((body['content'] as Record<string, Json>)['application/json'] ?? {})
}
