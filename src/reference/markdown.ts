import { markdownTable } from './markdown-table.ts'
import type { Json, OpenApi, Operation } from './openapi.ts'

/** The object that a part of the reference describes. The other parts have none. */
const OBJECT_OF: Readonly<Record<string, string>> = {
  Plans: 'Plan',
  Promotions: 'Promotion',
  Customers: 'Customer',
  Checkout: 'CheckoutSession',
  Subscriptions: 'Subscription',
  Transactions: 'Transaction',
  Events: 'Event',
}

/** The part of JSON Schema that our schemas use. */
interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly format?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly examples?: readonly unknown[]
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}

type Schemas = Readonly<Record<string, Schema>>

/** What the page has and the document has not. */
export interface Extras {
  /** Markdown that stands before the calls. */
  readonly before: string
  /** Markdown that follows a call, such as `GET /api/v1/plans`. */
  readonly after: (call: string, operation: Operation) => string
}

/** The reference of the API in Markdown: objects, calls, errors and webhooks. */
export function referenceOf({ info, tags, paths, webhooks, components }: OpenApi, extras?: Extras): string {
  const schemas = components.schemas as Schemas
  const calls = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ call: `${method.toUpperCase()} ${path}`, operation })),
  )
  const parts = tags.flatMap(({ name, description }) => [
    `## ${name}`,
    description,
    ...objectOf(schemas, OBJECT_OF[name]),
    ...calls
      .filter(({ operation }) => operation.tags.includes(name))
      .flatMap((entry) => [...callOf(schemas, entry), ...(extras ? [extras.after(entry.call, entry.operation)] : [])]),
  ])
  const events = Object.values(webhooks).flatMap(({ post }) => eventOf(schemas, post))
  return [info.description, ...(extras ? [extras.before] : []), ...parts, ...events].join('\n\n')
}

function objectOf(schemas: Schemas, name: string | undefined): string[] {
  const schema = schemas[name ?? '']
  if (name === undefined || !schema) return []
  return [
    `### The ${spaced(name)} object`,
    schema.description ?? '',
    fieldTable(schemas, 'field', fieldsOf(schemas, schema)),
    json(schema.examples?.[0]),
  ]
}

/** A row for each field; `head` is the title of their column. */
function fieldTable(schemas: Schemas, head: string, fields: readonly Field[]): string {
  const rows = fields.map(({ path, schema }) => [path, typeOf(schemas, schema), aboutOf(schema)])
  return markdownTable([head, 'type', ''], rows)
}

function callOf(schemas: Schemas, { call, operation }: { call: string; operation: Operation }): string[] {
  const { summary, description, parameters, requestBody, responses, security } = operation
  const isForAll = (security as unknown[]).length > 1
  const query = parameters.filter((parameter) => parameter['in'] === 'query')
  return [
    `### ${summary}`,
    `\`${call}\` · ${isForAll ? "servers and end users' clients" : 'servers'}`,
    ...(description === undefined ? [] : [description]),
    ...(query.length === 0 ? [] : [queryTable(schemas, query)]),
    ...(requestBody === undefined ? [] : bodyOf(schemas, requestBody)),
    answerOf(responses),
  ]
}

function queryTable(schemas: Schemas, parameters: readonly Json[]): string {
  const rows = parameters.map(({ name, description, schema }) => [
    `\`${String(name)}\``,
    typeOf(schemas, schema as Schema),
    aboutOf({ ...(schema as Schema), ...(typeof description === 'string' ? { description } : {}) }),
  ])
  return markdownTable(['query', 'type', ''], rows)
}

function bodyOf(schemas: Schemas, body: Json): string[] {
  const { schema, examples = {} } = contentOf(body)
  const whole = resolved(schemas, schema)
  const forms = whole.oneOf ?? [whole]
  return [
    ...forms.flatMap((form) => [...titleOf(form), inputTable(schemas, form)]),
    ...Object.values(examples).map(({ value }) => json(value)),
  ]
}

/** The fields of a request body. The column `required` is left out if no field is. */
function inputTable(schemas: Schemas, form: Schema): string {
  const fields = fieldsOf(schemas, form)
  if (!fields.some(({ isRequired }) => isRequired)) return fieldTable(schemas, 'field', fields)
  const rows = fields.map(({ path, schema: field, isRequired }) => [
    path,
    typeOf(schemas, field),
    isRequired ? 'yes' : '',
    aboutOf(field),
  ])
  return markdownTable(['field', 'type', 'required', ''], rows)
}

/** What makes one form of a body different from the others: `mode` is `payment`. */
function titleOf({ properties = {} }: Schema): string[] {
  const choice = Object.entries(properties).find(([, { const: only }]) => only !== undefined)
  return choice ? [`If \`${choice[0]}\` is \`${String(choice[1].const)}\`:`] : []
}

function answerOf(responses: Record<string, Json>): string {
  const [status = '', success = {}] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? []
  const data = contentOf(success).schema.properties?.['data'] ?? {}
  const refusals = Object.values(responses).flatMap(({ $ref }) =>
    typeof $ref === 'string' ? nameOf($ref).split('_or_') : [],
  )
  return `Returns ${answeredType(data)} with status ${status}. Errors: ${refusals.map((code) => `\`${code}\``).join(', ')}.`
}

function answeredType({ $ref, items, properties }: Schema): string {
  if ($ref !== undefined) return `the ${spaced(nameOf($ref))}`
  if (items?.$ref !== undefined) return `a list of ${spaced(nameOf(items.$ref))}s`
  return Object.entries(properties ?? {})
    .map(([name, { items: inner }]) => `${inner?.$ref === undefined ? '' : 'the list '}\`${name}\``)
    .join(' and ')
}

function eventOf(schemas: Schemas, { summary, description, requestBody }: Operation): string[] {
  const { schema, example } = contentOf(requestBody ?? {})
  const { data = {} } = resolved(schemas, schema).properties ?? {}
  const fields = fieldsOf(schemas, data)
  return [
    `### \`${summary}\``,
    description ?? '',
    ...(fields.length === 0 ? [] : [fieldTable(schemas, 'field of `data`', fields)]),
    json(example),
  ]
}

/** The content of a request or response body. */
interface Content {
  readonly schema: Schema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

function contentOf(body: Json): Content {
  return (body['content'] as Record<string, Content>)['application/json'] ?? { schema: {} }
}

interface Field {
  readonly path: string
  readonly schema: Schema
  readonly isRequired: boolean
}

/** The fields and their nested fields, `prices[].amount`. */
function fieldsOf(schemas: Schemas, schema: Schema, prefix = ''): Field[] {
  const { properties = {}, required = [] } = flattened(schemas, schema)
  return Object.entries(properties).flatMap(([name, field]) => {
    const inner = insideOf(field)
    const path = `${prefix}${name}`
    return [
      { path: `\`${path}\``, schema: field, isRequired: required.includes(name) },
      ...(inner === null ? [] : fieldsOf(schemas, inner.schema, `${path}${inner.suffix}.`)),
    ]
  })
}

function insideOf(field: Schema): { schema: Schema; suffix: string } | null {
  const given = withoutNull(field)
  if (given.properties || given.$ref !== undefined) return { schema: given, suffix: '' }
  const item = given.items
  return item && (item.properties || item.$ref !== undefined) ? { schema: item, suffix: '[]' } : null
}

/** Of a schema of something or null, that of the thing. */
function withoutNull(schema: Schema): Schema {
  return schema.anyOf?.find(({ type }) => type !== 'null') ?? schema
}

function typeOf(schemas: Schemas, schema: Schema): string {
  const { anyOf, $ref, const: only, enum: values, type, items } = schema
  if (anyOf) return [...new Set(anyOf.map((one) => typeOf(schemas, one)))].join(' or ')
  if ($ref !== undefined) return 'object'
  if (only !== undefined) return `\`${JSON.stringify(only)}\``
  if (values) return values.map((value) => `\`${String(value)}\``).join(', ')
  if (items) return `array of ${typeOf(schemas, items)}s`
  return typeof type === 'string' ? type : (type ?? ['any']).join(' or ')
}

function aboutOf(schema: Schema): string {
  return [schema.description, limitsOf(withoutNull(schema))]
    .filter((text) => text !== undefined && text !== '')
    .join(' ')
}

const MAX_NUMBER = Number.MAX_SAFE_INTEGER

function limitsOf({ minimum, maximum, maxLength, minItems, maxItems }: Schema): string {
  if (maxLength !== undefined) return `At most ${maxLength} characters.`
  if (maxItems !== undefined) return minItems ? `${minItems} to ${maxItems}.` : `At most ${maxItems}.`
  if (minimum !== undefined && maximum !== undefined && maximum < MAX_NUMBER) return `${minimum} to ${maximum}.`
  return minimum !== undefined && minimum > -MAX_NUMBER ? `At least ${minimum}.` : ''
}

/** The schema as one object: all parts together, and of several forms what each of them has. */
function flattened(schemas: Schemas, schema: Schema): Schema {
  const { allOf, oneOf, ...whole } = resolved(schemas, schema)
  if (oneOf) return commonOf(oneOf.map((form) => flattened(schemas, form)))
  const parts = [...(allOf ?? []).map((part) => flattened(schemas, part)), whole]
  return {
    properties: Object.assign({}, ...parts.map(({ properties }) => properties)) as Record<string, Schema>,
    required: parts.flatMap(({ required = [] }) => required),
  }
}

/** A field that is one word in each form is one of these words. */
function commonOf(forms: readonly Schema[]): Schema {
  const [{ properties = {}, required = [] } = {}] = forms
  const fieldOf = (name: string, first: Schema): Schema => {
    const fields = forms.map((form) => form.properties?.[name] ?? {})
    if (first.const !== undefined) return { enum: fields.map((field) => field.const) }
    return first.properties ? { type: 'object', description: 'As in the webhook of this type.' } : first
  }
  return {
    properties: Object.fromEntries(Object.entries(properties).map(([name, first]) => [name, fieldOf(name, first)])),
    required,
  }
}

function resolved(schemas: Schemas, schema: Schema): Schema {
  return schema.$ref === undefined ? schema : (schemas[nameOf(schema.$ref)] ?? {})
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1)
}

/** `CheckoutSession` as words. */
function spaced(name: string): string {
  return name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter}`).toLowerCase()
}

function json(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``
}
