/** One page of a list. `next_cursor` is null on the last. */
export interface Page<Item> {
  readonly data: Item[]
  readonly next_cursor: string | null
}

/** A paginated list. `await` it for one page; `for await` iterates over all items, newest first. */
export class List<Item> implements PromiseLike<Page<Item>>, AsyncIterable<Item> {
  readonly #read: (cursor: string | null) => Promise<Page<Item>>

  /** `read` returns the page at a cursor; null is the first page. */
  constructor(read: (cursor: string | null) => Promise<Page<Item>>) {
    this.#read = read
  }

  then<Fulfilled = Page<Item>, Rejected = never>(
    onFulfilled?: ((page: Page<Item>) => Fulfilled | PromiseLike<Fulfilled>) | null,
    onRejected?: ((reason: unknown) => Rejected | PromiseLike<Rejected>) | null,
  ): Promise<Fulfilled | Rejected> {
    return this.#read(null).then(onFulfilled, onRejected)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    let cursor: string | null = null
    do {
      const page: Page<Item> = await this.#read(cursor)
      yield* page.data
      cursor = page.next_cursor
    } while (cursor !== null)
  }
}
