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
    // A name without a value is then an error, also in a condition.
    useWith: true,
  })
}

/** A missing value is an error of ours: better no mail, and no page that takes money, than one with a gap. Null prints nothing. */
function printed(value: unknown): string {
  if (value === undefined) throw new Error('a template prints a value that is not set')
  return value === null ? '' : `${value as string | number}`
}
