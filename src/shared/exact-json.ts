/** TypeScript's library does not know this function of the language yet. */
interface ExactJson {
  rawJSON(text: string): unknown
}

/** The value as JSON. A bigint, such as a sum of money, becomes a number with all of its digits. */
export function exactJson(value: unknown, indent = 0): string {
  return JSON.stringify(
    value,
    (_, entry: unknown) => (typeof entry === 'bigint' ? (JSON as JSON & ExactJson).rawJSON(String(entry)) : entry),
    indent,
  )
}
