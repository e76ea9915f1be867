type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

/** A body with one value that must be refused. */
export interface Mutation {
  /** The dotted path of the value, as errors name it. */
  readonly field: string
  /** The whole body. */
  readonly raw: string
  readonly what: string
}

const NOT_OBJECTS = ['[]', '"x"', '0', 'true']
const EMPTY = ['""', '" "']
/** Other types, and texts that no database or mail can contain. */
const NOT_TEXTS = [
  '{}',
  '{"toString":"x"}',
  '[]',
  '["x"]',
  '0',
  '1e400',
  'true',
  '"a\\u0000b"',
  '"\\u0085"',
  '"x\\udc00y"',
]
const TOO_LONG = [JSON.stringify('x'.repeat(60_000)), `${'['.repeat(20_000)}${']'.repeat(20_000)}`]
const NOT_INTEGERS = [
  '{}',
  '[]',
  '[1]',
  '"1"',
  '""',
  'true',
  '-1',
  '1.5',
  '1e400',
  '-1e400',
  '9007199254740992',
  '1e21',
]
const NOT_BOOLEANS = ['{}', '[]', '0', '1', '"true"', '""']
const NOT_ARRAYS = ['{}', '{"length":1}', '[null]', '[[]]', '[{}]', '"x"', '0', 'true']

/** Values that no field of the sample's type may have, whatever it means. */
function hostileFor(sample: Json, mayBeEmpty: boolean): string[] {
  if (typeof sample === 'string') return [...NOT_TEXTS, ...TOO_LONG, ...(mayBeEmpty ? [] : EMPTY)]
  if (typeof sample === 'number') return NOT_INTEGERS
  if (typeof sample === 'boolean') return NOT_BOOLEANS
  return Array.isArray(sample)
    ? NOT_ARRAYS
    : [...(mayBeEmpty ? [] : ['{}']), '{"x":1}', '{"__proto__":{"polluted":1}}', ...NOT_OBJECTS]
}

export interface BodyRules {
  /** Fields that may be left out. */
  readonly optional: readonly string[]
  /** Fields that may be null. */
  readonly nullable: readonly string[]
  /** Texts and objects that may be empty. */
  readonly mayBeEmpty?: readonly string[]
}

/** The body with every field, at any depth, replaced by each value that it must refuse, left out where it is required, and with unknown fields. */
export function mutationsOf(body: Json, rules: BodyRules): Mutation[] {
  return fieldsOf(body).flatMap(({ path, value }) => {
    const field = path.join('.')
    const general = path.map((step) => (/^\d+$/.test(step) ? '*' : step)).join('.')
    const hostile = path.length === 0 ? [] : hostileFor(value, rules.mayBeEmpty?.includes(general) ?? false)
    const nulls = path.length === 0 || rules.nullable.includes(general) ? [] : ['null']
    const changed = [...hostile, ...nulls].map((json) => ({
      field,
      raw: written(body, path, json),
      what: json.slice(0, 60),
    }))
    const isRequired = path.length > 0 && !/\d+$/.test(field) && !rules.optional.includes(general)
    const left = isRequired ? [{ field, raw: written(body, path, undefined), what: 'nothing' }] : []
    return [...changed, ...left, ...(isObject(value) ? unknownFieldsIn(body, path, value) : [])]
  })
}

function unknownFieldsIn(body: Json, path: readonly string[], value: Readonly<Record<string, Json>>): Mutation[] {
  return ['x', '__proto__', 'constructor'].map((name) => {
    const inner = JSON.stringify(value).replace(/^\{/, `{${JSON.stringify(name)}:{"polluted":1},`)
    return { field: [...path, name].join('.'), raw: written(body, path, inner), what: `a field ${name}` }
  })
}

interface Field {
  readonly path: readonly string[]
  readonly value: Json
}

function fieldsOf(value: Json, path: readonly string[] = []): Field[] {
  const inner = Array.isArray(value) || isObject(value) ? Object.entries(value as Record<string, Json>) : []
  return [{ path, value }, ...inner.flatMap(([name, child]) => fieldsOf(child, [...path, name]))]
}

/** The body as text, with `json` at the place; undefined removes the field. */
function written(value: Json, path: readonly string[], json: string | undefined): string {
  const [step, ...rest] = path
  if (step === undefined) return json ?? ''
  const parts = Object.entries(value as Record<string, Json>).flatMap(([name, child]) => {
    if (name !== step) return [[name, JSON.stringify(child)]]
    if (rest.length === 0 && json === undefined) return []
    return [[name, rest.length === 0 ? json : written(child, rest, json)]]
  })
  return Array.isArray(value)
    ? `[${parts.map(([, text]) => text).join(',')}]`
    : `{${parts.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`
}

function isObject(value: Json): value is Readonly<Record<string, Json>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
