/**
 * Items that wait, by owner. The owner that has waited longest comes first, so that none starves behind another's many items. Libraries
 * such as `p-map` and `p-queue` cannot do that: they take the next item of an iterator.
 */
export class FairQueue<Owner, Item extends object> {
  readonly #ownerOf: (item: Item) => Owner
  /** In the order in which the owners began to wait. */
  readonly #waiting = new Map<Owner, Item[]>()
  #size = 0

  /** `ownerOf` returns the owner of an item; each owner's items keep their order. */
  constructor(ownerOf: (item: Item) => Owner) {
    this.#ownerOf = ownerOf
  }

  /** Number of items of all owners. */
  get size(): number {
    return this.#size
  }

  /** Number of items of the owner. */
  sizeOf(owner: Owner): number {
    return this.#waiting.get(owner)?.length ?? 0
  }

  /** Adds items. An owner that waits already keeps its place; any other begins to wait now. */
  add(items: readonly Item[]): void {
    for (const item of items) {
      const owner = this.#ownerOf(item)
      const owned = this.#waiting.get(owner)
      if (owned) owned.push(item)
      else this.#waiting.set(owner, [item])
      this.#size += 1
    }
  }

  /**
   * Takes the next item of the owner that has waited longest, among those that `mayBegin`; null if there is none. The owner's wait
   * begins again.
   */
  take(mayBegin: (owner: Owner) => boolean): Item | null {
    for (const [owner, items] of this.#waiting) {
      if (!mayBegin(owner)) continue
      const item = items.shift() ?? null
      this.#waiting.delete(owner)
      if (items.length > 0) this.#waiting.set(owner, items)
      if (item) this.#size -= 1
      return item
    }
    return null
  }

  takeAll(): Item[] {
    const all = [...this.#waiting.values()].flat()
    this.#waiting.clear()
    this.#size = 0
    return all
  }
}
