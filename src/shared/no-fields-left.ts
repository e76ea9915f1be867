/**
 * Ends a mapping from a body to columns: `const { name, email, ...others } = body`, then `noFieldsLeft(others)`. A field of the schema
 * that the mapping forgets does not compile, rather than to be accepted and never stored.
 */
export function noFieldsLeft(others: Readonly<Record<string, never>>): void {
  const [forgotten] = Object.keys(others)
  if (forgotten !== undefined) throw new Error(`the field ${forgotten} of a body is stored nowhere`)
}
