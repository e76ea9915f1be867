/** One page of a list. `next_cursor` is null on the last. */
export interface Page<Item> {
  readonly data: Item[]
  readonly next_cursor: string | null
}

/** Reads the page at a cursor; null is the first page. */
type ReadPage<Item> = (cursor: string | null) => Promise<Page<Item>>

/** A paginated list: a promise of its first page, which begins to be read at once. `for await` iterates over the items of all pages. */
export class List<Item> extends Promise<Page<Item>> implements AsyncIterable<Item> {
  readonly #read: ReadPage<Item>

  constructor(read: ReadPage<Item>) {
    super((resolve) => resolve(read(null)))
    this.#read = read
  }

  /** What `then`, `catch` and `finally` return is no list. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    let page = await (this as Promise<Page<Item>>)
    yield* page.data
    while (page.next_cursor !== null) {
      page = await this.#read(page.next_cursor)
      yield* page.data
    }
  }
}

/** A list that comes as a whole: a promise of an array. `for await` iterates over its items. */
export class WholeList<Item> extends Promise<Item[]> implements AsyncIterable<Item> {
  constructor(read: () => Promise<Item[]>) {
    super((resolve) => resolve(read()))
  }

  static override get [Symbol.species](): PromiseConstructor {
    return Promise
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    yield* await this
  }
}
