/** Merges sources that are each sorted by their key into one; of values with equal keys, that of the first source comes first. */
export async function* mergeSorted<T>(
  sources: readonly AsyncGenerator<T>[],
  keyOf: (value: T) => number,
): AsyncGenerator<T> {
  const heads = new Map<AsyncGenerator<T>, T>()
  const advance = async (source: AsyncGenerator<T>): Promise<void> => {
    const next = await source.next()
    if (next.done) heads.delete(source)
    else heads.set(source, next.value)
  }
  for (const source of sources) await advance(source)
  while (heads.size > 0) {
    const [source, value] = [...heads].reduce((first, head) => (keyOf(head[1]) < keyOf(first[1]) ? head : first))
    yield value
    await advance(source)
  }
}
