/**
 * The pages of a list, one by one. `read` returns the page of at most `size` rows that follows the row `last`, or the first one if it is null.
 * A page that is not full is the last one; an empty page is not yielded.
 */
export async function* readPages<Row>(
  size: number,
  read: (last: Row | null, limit: number) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  for (let last: Row | null = null; ;) {
    const page: readonly Row[] = await read(last, size)
    if (page.length > 0) yield page
    if (page.length < size) return
    last = page.at(-1) ?? null
  }
}
