import { STATUS_CODES } from 'node:http'
import { z } from 'zod'
import type { AppRoute } from '#apps/authenticate.ts'
import { isKeyed } from '#http/route.ts'
import { productVersion } from '#product-version.ts'
import { listProviders } from '#providers/providers.ts'
import { ERROR_CODES, ERROR_STATUS, type ErrorCode } from '#shared/errors.ts'
import { publicId } from '#shared/validate.ts'
import { EVENT_BODIES, eventName } from '#webhooks/event-bodies.ts'
import { EVENTS, type EventType } from '#webhooks/events.ts'
import { ERROR_WORDS } from './error-words.ts'
import { markdownTable } from './markdown-table.ts'
import { INTRODUCTION, WEBHOOK_INTRODUCTION } from './introduction.ts'

/** A JSON Schema of draft 2020-12, or a part of an OpenAPI 3.1 document. */
export interface Json {
  [key: string]: unknown
}

export interface OpenApi extends Json {
  readonly info: { readonly title: string; readonly version: string; readonly description: string } & Json
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Record<string, Record<string, Operation>>
  readonly webhooks: Record<string, { readonly post: Operation }>
  readonly components: { readonly schemas: Record<string, Json> } & Json
}

export interface Operation extends Json {
  readonly operationId: string
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly parameters: readonly Json[]
  readonly requestBody?: Json
  readonly responses: Record<string, Json>
}

/** The parts of the reference, in the order of the paths' first words. */
const TAGS: Readonly<Record<string, readonly [name: string, description: string]>> = {
  plans: ['Plans', 'What is sold: a plan holds several prices.'],
  promotions: ['Promotions', 'Codes that take something off a payment.'],
  customers: ['Customers', 'The people who receive reminders.'],
  'checkout-sessions': ['Checkout', 'Hosted pages where end users pay.'],
  subscriptions: ['Subscriptions', 'Who has access, and until when.'],
  transactions: ['Transactions', 'Requested payments and their outcomes.'],
  events: ['Events', 'The events of the app, and whether they were delivered.'],
  'test-clock': ['Test clock', "A sandbox app's own time."],
}
const WEBHOOKS_TAG = 'Webhooks'

/** The schemas of path parameters. */
const PATH_PARAMETERS: Readonly<Record<string, z.ZodType>> = {
  'plans/:id': publicId('plan'),
  'prices/:priceId': publicId('price'),
  'promotions/:id': publicId('promo'),
  'customers/:id': publicId('cus'),
  'subscriptions/:externalRef': z.string().meta({ maxLength: 191, examples: ['user-42'] }),
  'transactions/:id': z
    .int()
    .positive()
    .meta({ examples: [1] }),
  'events/:id': publicId('evt'),
}

/** Errors that any call may return. */
const ALWAYS: readonly ErrorCode[] = [
  'invalid_request',
  'unauthorized',
  'forbidden',
  'app_disabled',
  'rate_limited',
  'internal_error',
  'service_unavailable',
]

/**
 * The OpenAPI 3.1 document of the sellers' calls and the webhooks, generated from the routes and events themselves. `server` is the base
 * address of the installation.
 */
export function openApiOf(routes: readonly AppRoute[], server: string): OpenApi {
  const schemas = new Schemas()
  const paths: Record<string, Record<string, Operation>> = {}
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, (_, name: string) => `{${snakeCase(name)}}`)
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) }
  }
  const types = Object.keys(EVENTS) as EventType[]
  const webhooks = Object.fromEntries(types.map((type) => [type, { post: webhookOf(type, schemas) }]))
  const tags = [...Object.values(TAGS), [WEBHOOKS_TAG, WEBHOOK_INTRODUCTION] as const]
  return {
    openapi: '3.1.0',
    info: {
      title: 'Paygate API',
      version: productVersion(),
      description: `${INTRODUCTION}\n\n${errorTable()}\n\n${methodTable()}`,
      contact: { name: 'Whoever runs this installation', url: server },
      license: { name: 'UNLICENSED', identifier: 'LicenseRef-UNLICENSED' },
    },
    servers: [{ url: server }],
    tags: tags.map(([name, description]) => ({ name, description })),
    paths,
    webhooks,
    components: {
      securitySchemes: SECURITY,
      headers: HEADERS,
      responses: schemas.responses,
      schemas: { ...schemas.named, ErrorBody: ERROR },
    },
  }
}

function errorTable(): string {
  const rows = Object.entries(ERROR_STATUS).map(([code, status]) => [
    `\`${code}\``,
    String(status),
    ERROR_WORDS[code as ErrorCode],
  ])
  return markdownTable(['code', 'HTTP', 'when'], rows)
}

function methodTable(): string {
  const rows = listProviders().map(({ method, code, texts }) => [texts.en.name, `\`${method}\``, `\`${code}\``])
  return `### Payment methods\n\n${markdownTable(['', '`payment_method`', '`provider_code`'], rows)}`
}

function operationOf(route: AppRoute, schemas: Schemas): Operation {
  const { path, access, status, words } = route
  const [, , , first = ''] = path.split('/')
  const tag = TAGS[first]?.[0]
  if (tag === undefined) throw new Error(`${path} belongs to no part of the reference`)
  return {
    operationId: words.id,
    summary: words.summary,
    ...(words.description === undefined ? {} : { description: words.description }),
    tags: [tag],
    security: access === 'any' ? [SERVER, CLIENT] : [SERVER],
    parameters: parametersOf(route),
    ...(route.body === null ? {} : { requestBody: bodyOf(words.id, route.body, schemas) }),
    responses: { [status]: successOf(route, schemas), ...errorsOf(errorCodesOf(route), schemas.responses) },
  }
}

function parametersOf({ method, path, words }: AppRoute): Json[] {
  const named = Object.entries(PATH_PARAMETERS)
    .filter(([place]) => `${path}/`.includes(`/${place}/`))
    .map(([place, schema]) => {
      const name = snakeCase(place.slice(place.indexOf(':') + 1))
      return { name, in: 'path', required: true, schema: plain(schema, 'input') }
    })
  const filters = Object.entries(words.filter?.shape ?? {}).map(([name, schema]) => {
    const { description, ...rest } = plain(schema as z.ZodType, 'input')
    return { name, in: 'query', required: false, ...(description === undefined ? {} : { description }), schema: rest }
  })
  return [...named, ...filters, ...(isKeyed(method) ? [IDEMPOTENCY_KEY] : [])]
}

function bodyOf(id: string, body: z.ZodType, schemas: Schemas): Json {
  const name = `${id.slice(0, 1).toUpperCase()}${id.slice(1)}Input`
  schemas.named[name] = schemas.of(body, 'input')
  return {
    required: true,
    content: { 'application/json': { schema: referenceTo(name), examples: Object.fromEntries(examplesOf(body)) } },
  }
}

/** Zod omits the examples of schemas with a transform. */
function examplesOf(body: z.ZodType): [string, Json][] {
  const { examples = [] } = (z.globalRegistry.get(body) ?? {}) as { examples?: readonly unknown[] }
  return examples.map((value, index) => [`example${index + 1}`, { value }])
}

function successOf({ method, status, output, isList }: AppRoute, schemas: Schemas): Json {
  const data = schemas.of(output, 'output')
  const nextCursor = {
    type: ['string', 'null'],
    description: 'Pass it as `cursor` to get the next page; null on the last page.',
  }
  const schema = {
    type: 'object',
    required: ['success', 'data', ...(isList ? ['next_cursor'] : [])],
    properties: { success: { const: true }, data, ...(isList ? { next_cursor: nextCursor } : {}) },
  }
  const example = { success: true, data: schemas.exampleOf(data), ...(isList ? { next_cursor: null } : {}) }
  return {
    description: STATUS_CODES[status] ?? '',
    headers: { 'X-Request-Id': REQUEST_ID, ...LIMITS, ...(isKeyed(method) ? REPLAYED : {}) },
    content: { 'application/json': { schema, example } },
  }
}

/** Every error code of a call. */
export function errorCodesOf({ method, path, body, words }: AppRoute): ErrorCode[] {
  return [
    ...ALWAYS,
    ...(path.includes(':') ? (['not_found'] as const) : []),
    ...(body === null ? [] : (['payload_too_large'] as const)),
    ...(isKeyed(method) ? (['idempotency_conflict'] as const) : []),
    ...(words.errors ?? []),
  ]
}

/** A response for each status with its codes; calls with the same codes share it. */
function errorsOf(codes: readonly ErrorCode[], shared: Record<string, Json>): Record<string, Json> {
  const statuses = [...new Set(codes.map((code) => ERROR_STATUS[code]))]
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = codes.filter((code) => ERROR_STATUS[code] === status)
      const name = ofStatus.join('_or_')
      shared[name] = errorOf(status, ofStatus)
      return [status, { $ref: `#/components/responses/${name}` }]
    }),
  )
}

function errorOf(status: number, codes: readonly ErrorCode[]): Json {
  const examples = codes.map((code) => [code, { value: errorExample(code) }] as const)
  const waits = status === 429 || status === 503 || codes.includes('idempotency_conflict')
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_WORDS[code]}`).join('\n\n'),
    headers: {
      'X-Request-Id': REQUEST_ID,
      ...(waits ? { 'Retry-After': headerReference('Retry-After') } : {}),
    },
    content: { 'application/json': { schema: referenceTo('ErrorBody'), examples: Object.fromEntries(examples) } },
  }
}

function errorExample(code: ErrorCode): Json {
  const request_id = `req_${'0'.repeat(31)}1`
  return { success: false, error: { code, message: ERROR_WORDS[code], field: null, request_id } }
}

function webhookOf(type: EventType, schemas: Schemas): Operation {
  const { when, example } = EVENTS[type]
  const body = { id: 'evt_1', event_type: type, app_id: 1, data: example, created_at: '2026-12-01T09:31:12+00:00' }
  return {
    operationId: `on${eventName(type).replace(/Event$/, '')}`,
    summary: type,
    description: when,
    tags: [WEBHOOKS_TAG],
    security: [],
    parameters: WEBHOOK_HEADERS,
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemas.of(EVENT_BODIES[type], 'output'), example: body } },
    },
    responses: {
      '2XX': { description: 'Any 2xx acknowledges the event.' },
      '4XX': { description: 'Anything else is retried.' },
    },
  }
}

/** Collects JSON Schemas with the named parts that they refer to. */
class Schemas {
  readonly named: Record<string, Json> = {}
  /** Error responses, by name. */
  readonly responses: Record<string, Json> = {}

  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const { $defs = {}, ...whole } = JSON.parse(
      JSON.stringify(plain(schema, io)).replaceAll('"#/$defs/', '"#/components/schemas/'),
    ) as Json & { $defs?: Record<string, Json> }
    Object.assign(this.named, $defs)
    return whole
  }

  /** An example response, made of the schemas' examples. */
  exampleOf(schema: Json): unknown {
    const { $ref, examples, type, items, properties } = schema as {
      $ref?: string
      examples?: unknown[]
      type?: unknown
      items?: Json
      properties?: Record<string, Json>
    }
    if ($ref !== undefined) return this.exampleOf(this.named[$ref.slice($ref.lastIndexOf('/') + 1)] ?? {})
    if (examples) return examples[0]
    if (type === 'array' && items) return [this.exampleOf(items)]
    const entries = Object.entries(properties ?? {}).map(([name, property]) => [name, this.exampleOf(property)])
    return Object.fromEntries(entries)
  }
}

/** Responses may get more fields in later versions, so `additionalProperties` is left open. */
function plain(schema: z.ZodType, io: 'input' | 'output'): Json {
  const whole = z.toJSONSchema(schema, {
    io,
    override({ jsonSchema }) {
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    },
  })
  return Object.fromEntries(Object.entries(whole).filter(([key]) => key !== '$schema'))
}

function referenceTo(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

const SERVER = { appKey: [], timestamp: [], signature: [] }
const CLIENT = { appKey: [], identityToken: [] }
const SECURITY = {
  appKey: { type: 'apiKey', in: 'header', name: 'X-App-Key', description: 'The `api_key` of the app.' },
  timestamp: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Timestamp',
    description: 'Unix seconds, within 300 seconds of our clock.',
  },
  signature: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Signature',
    description:
      'Lower-case hex HMAC-SHA256 of `{timestamp}.{METHOD}.{path with query}.{raw body}`, keyed with the `api_secret`.',
  },
  identityToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: "An end user's identity token, for apps of this kind.",
  },
}

const IDEMPOTENCY_KEY: Json = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Makes it safe to repeat the request.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
}

function headerReference(name: string): Json {
  return { $ref: `#/components/headers/${name}` }
}

const REQUEST_ID = headerReference('X-Request-Id')
const LIMITS = Object.fromEntries(
  ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'].map((name) => [name, headerReference(name)]),
)
const REPLAYED = { 'Idempotent-Replayed': headerReference('Idempotent-Replayed') }
const COUNT = { type: 'integer', minimum: 0 }
const HEADERS = {
  'X-Request-Id': { description: 'Quote it when you report a problem.', schema: { type: 'string' } },
  'Retry-After': { description: 'Seconds to wait before the next try.', schema: COUNT },
  'RateLimit-Limit': {
    description: 'How many calls are allowed at once. Absent where no limit is set.',
    schema: COUNT,
  },
  'RateLimit-Remaining': { description: 'How many of them are left.', schema: COUNT },
  'RateLimit-Reset': { description: 'Seconds until all of them are allowed again.', schema: COUNT },
  'Idempotent-Replayed': {
    description: '`true` where the answer is that of an earlier call with the same `Idempotency-Key`.',
    schema: { type: 'string', const: 'true' },
  },
}

const ERROR = {
  type: 'object',
  required: ['success', 'error'],
  properties: {
    success: { const: false },
    error: {
      type: 'object',
      required: ['code', 'message', 'field', 'request_id'],
      properties: {
        code: { type: 'string', enum: ERROR_CODES },
        message: { type: 'string', description: 'For developers, in English. It may change.' },
        field: {
          type: ['string', 'null'],
          description:
            'The dotted path of the invalid field, `prices.0.trial.amount`; cut at 200 characters, ending in `…`.',
        },
        request_id: { type: 'string' },
      },
    },
  },
}

const WEBHOOK_HEADERS: readonly Json[] = [
  ['X-Gateway-Event-Id', 'The `id` of the body.'],
  ['X-Gateway-Event-Type', 'The type of the event.'],
  ['X-Gateway-Attempt', '1 for the first attempt.'],
  ['X-Gateway-Timestamp', 'Unix seconds of this attempt.'],
  ['X-Gateway-Signature', 'Hex HMAC-SHA256 of `{timestamp}.{raw body}`.'],
  ['webhook-id', 'Standard Webhooks: the `id` of the body.'],
  ['webhook-timestamp', 'Standard Webhooks: Unix seconds of this attempt.'],
  ['webhook-signature', 'Standard Webhooks: `v1,` and the base64 HMAC-SHA256 of `{id}.{timestamp}.{raw body}`.'],
].map(([name, description]) => ({ name, in: 'header', required: true, description, schema: { type: 'string' } }))
