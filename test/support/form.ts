/** A form's fields: texts, nested by brackets. */
export interface FormFields {
  [name: string]: FormValue
}
export type FormValue = string | FormValue[] | FormFields

/** Decodes `line_items[0][price_data][currency]=usd` as Stripe does; throws for a name that cannot be one, or comes twice. */
export function parseForm(body: string): FormFields {
  const fields: FormFields = {}
  for (const [name, value] of new URLSearchParams(body)) {
    const match = /^([^[\]]+)((?:\[[^[\]]*\])*)$/.exec(name)
    if (!match) throw new Error(`no form field is called ${name}`)
    const path = [match[1]!, ...[...match[2]!.matchAll(/\[([^[\]]*)\]/g)].map((part) => part[1]!)]
    place(fields, path, value)
  }
  return asLists(fields) as FormFields
}

function place(fields: FormFields, path: readonly string[], value: string): void {
  const [name, ...rest] = path as [string, ...string[]]
  if (rest.length === 0) {
    if (name in fields) throw new Error(`the form field ${name} comes twice`)
    fields[name] = value
    return
  }
  const inner = (fields[name] ??= {})
  if (typeof inner !== 'object' || Array.isArray(inner)) throw new Error(`the form field ${name} is text and more`)
  place(inner, rest, value)
}

/** An object whose names are 0, 1, … is a list. */
function asLists(value: FormValue): FormValue {
  if (typeof value === 'string' || Array.isArray(value)) return value
  const entries = Object.entries(value).map(([name, inner]) => [name, asLists(inner)] as const)
  const isList = entries.length > 0 && entries.every(([name], index) => name === String(index))
  return isList ? entries.map(([, inner]) => inner) : Object.fromEntries(entries)
}
