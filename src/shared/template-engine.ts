import { Eta } from 'eta'

/**
 * An engine for our templates: `<%= plan_name %>` prints a value, and what is in `<% … %>` is JavaScript. A template knows each value by
 * its name. `escapes` makes what is printed safe in HTML; `<%~ … %>` prints markup as it is. `views` is the folder in which templates find
 * their layout and their parts.
 */
export function templateEngine({ escapes, views }: { readonly escapes: boolean; readonly views?: string }): Eta {
  return new Eta({
    ...(views === undefined ? {} : { views }),
    autoEscape: escapes,
    autoFilter: true,
    filterFunction: printed,
    // What is around a tag is sent as it stands.
    autoTrim: false,
    cache: true,
    // A name that is not given is then an error, also in a condition. A field that is not given is one only where it is printed.
    useWith: true,
    // An error then begins with the template's file and line, which a page needs. A mail's error is stored, and short.
    debug: views !== undefined,
  })
}

/** Throws for a value that is missing: better no mail, and no page that takes money, than one with a gap. Null prints nothing. */
function printed(value: unknown): string {
  if (value === null) return ''
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw new Error(`a template prints a value of the type ${typeof value}`)
}
