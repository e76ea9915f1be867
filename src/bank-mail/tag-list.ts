/** Tags of a `DKIM-Signature`, `ARC-Seal` or `ARC-Message-Signature` by name (RFC 6376, 3.2); null if the value is not such a list. */
export function parseTags(value: string): ReadonlyMap<string, string> | null {
  const tags = new Map<string, string>()
  const specs = value.split(';')
  // The last semicolon is optional.
  if (specs.at(-1)?.trim() === '') specs.pop()
  for (const spec of specs) {
    const match = /^[ \t]*([A-Za-z][A-Za-z0-9_]*)[ \t]*=([\t\x20-\x7e]*)$/.exec(spec)
    const name = match?.[1]?.toLowerCase()
    if (!match || name === undefined || tags.has(name)) return null
    tags.set(name, (match[2] as string).trim())
  }
  return tags
}

/** Tags without which nobody can verify a DKIM signature (RFC 6376, 3.5). */
export const VERIFIABLE: readonly string[] = ['v', 'a', 'b', 'bh', 'd', 'h', 's']

/** The names that a signature's `h=` covers, in lower case. */
export function coveredFields(tags: ReadonlyMap<string, string>): ReadonlySet<string> {
  return new Set((tags.get('h') ?? '').split(':').map((name) => name.trim().toLowerCase()))
}
