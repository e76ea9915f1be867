/** The JSON schema of values that were seen: what all of them have is required, and keys that are codes make a map. */
export interface Schema {
  readonly type?: string | readonly string[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema
}

/** Currencies, and keys that callers choose. */
const CODE = /^[A-Z]{3}$|^\d|[ /]/
/** Shares and durations, which a test may have seen as whole numbers only. */
const FRACTION = /^(rates?|seconds)$/
/** What has other fields from case to case: the identity by its provider, an audit entry by its action, an event by its type. */
const OF_SEVERAL_FORMS = /^(identity|before|after|data|body)$/
/** What is keyed by codes that are no different from names of fields, such as plans. */
const BY_CODE = /^by_/

export function inferSchema(values: readonly unknown[]): Schema {
  if (values.length === 0) return {}
  const types = [...new Set(values.map(typeOf))].sort()
  // Of a value that was never there nothing is known.
  if (types.length === 1 && types[0] === 'null') return {}
  const merged = types.includes('number') ? types.filter((type) => type !== 'integer') : types
  const objects = values.filter((value): value is Record<string, unknown> => typeOf(value) === 'object')
  const lists = values.filter((value): value is unknown[] => Array.isArray(value))
  return {
    type: merged.length === 1 ? merged[0]! : merged,
    ...(lists.length === 0 ? {} : { items: inferSchema(lists.flat()) }),
    ...(objects.length === 0 ? {} : inferObject(objects)),
  }
}

function inferObject(objects: readonly Record<string, unknown>[]): Schema {
  const keys = [...new Set(objects.flatMap((value) => Object.keys(value)))].sort()
  if (keys.length === 0) return {}
  if (keys.every((key) => CODE.test(key)))
    return { additionalProperties: inferSchema(objects.flatMap((value) => Object.values(value))) }
  const valuesOf = (key: string): unknown[] => objects.filter((value) => key in value).map((value) => value[key])
  return {
    properties: Object.fromEntries(keys.map((key) => [key, fieldSchema(key, valuesOf(key))])),
    required: keys.filter((key) => objects.every((value) => key in value)),
  }
}

function fieldSchema(key: string, values: readonly unknown[]): Schema {
  if (OF_SEVERAL_FORMS.test(key)) return {}
  if (FRACTION.test(key)) return inferSchema([...values, Array.isArray(values[0]) ? [0.5] : 0.5])
  if (!BY_CODE.test(key)) return optional(key, inferSchema(values))
  return {
    type: 'object',
    additionalProperties: inferSchema(values.flatMap((value) => Object.values(value as Record<string, unknown>))),
  }
}

/** What names a thing is always there; another text may be null elsewhere. */
const ALWAYS = /^(id|.*_id|.*_ref|.*_key|name|kind|status|currency|code|role|command|action|created_at|at)$/

function optional(key: string, schema: Schema): Schema {
  return schema.type === 'string' && !ALWAYS.test(key) ? { ...schema, type: ['null', 'string'] } : schema
}

/** Null where a receiver does not answer, or before the daemon's first measurement: no test of the command line sees it. */
const SELDOM_NULL = ['http_status', 'outbox', 'reminders_late_seconds']

/** The schemas of several things: a field that may be null in one of them may be null in all. */
export function shareNulls(schemas: Readonly<Record<string, Schema>>): Record<string, Schema> {
  const names = new Set([...SELDOM_NULL, ...Object.values(schemas).flatMap(nullableIn)])
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withNulls(schema, names)]))
}

function nullableIn(schema: Schema): string[] {
  const fields = Object.entries(schema.properties ?? {})
  const own = fields.filter(([, { type }]) => type?.includes('null')).map(([name]) => name)
  return [...own, ...innerOf(schema).flatMap(nullableIn)]
}

function innerOf({ items, properties = {}, additionalProperties }: Schema): Schema[] {
  return [items, additionalProperties, ...Object.values(properties)].filter((inner) => inner !== undefined)
}

function withNulls(schema: Schema, names: ReadonlySet<string>): Schema {
  const { items, properties, additionalProperties } = schema
  return {
    ...schema,
    ...(items && { items: withNulls(items, names) }),
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, inner]) => {
          const field = withNulls(inner, names)
          return [name, names.has(name) ? orNull(field) : field]
        }),
      ),
    }),
    ...(additionalProperties && { additionalProperties: withNulls(additionalProperties, names) }),
  }
}

function orNull(schema: Schema): Schema {
  if (schema.type === undefined) return schema
  return { ...schema, type: [...new Set([schema.type, 'null'].flat())].sort() }
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}
