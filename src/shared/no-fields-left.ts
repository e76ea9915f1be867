/**
 * Ends a mapping from a body to columns: `const { name, email, ...others } = body`, then `noFieldsLeft(others)`. A schema field that
 * the mapping forgets is a compile error instead of being silently dropped.
 */
export function noFieldsLeft(others: Readonly<Record<string, never>>): void {
  const [forgotten] = Object.keys(others)
  if (forgotten !== undefined) throw new Error(`the field ${forgotten} of a body is stored nowhere`)
}
