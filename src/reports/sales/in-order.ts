/** The values of several ordered sources in one order; of equal ones that of the first source comes first. */
export async function* inOrder<T>(
  sources: readonly AsyncGenerator<T>[],
  rankOf: (value: T) => number,
): AsyncGenerator<T> {
  const heads = await Promise.all(sources.map(async (source) => ({ source, head: await source.next() })))
  for (;;) {
    let first: { readonly entry: (typeof heads)[number]; readonly value: T } | null = null
    for (const entry of heads) {
      if (entry.head.done) continue
      if (!first || rankOf(entry.head.value) < rankOf(first.value)) first = { entry, value: entry.head.value }
    }
    if (!first) return
    yield first.value
    first.entry.head = await first.entry.source.next()
  }
}
