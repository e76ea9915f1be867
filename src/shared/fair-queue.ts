/**
 * Items that wait, by owner. The owner that has waited longest comes first, so that none starves behind another's many items. Libraries
 * such as `p-map` and `p-queue` cannot do that: they take the next item of an iterator.
 */
export interface FairQueue<Owner, Item> {
  /** Number of items of all owners. */
  readonly size: number
  /** Number of items of the owner. */
  sizeOf(owner: Owner): number
  /** Adds items. An owner that waits already keeps its place; any other begins to wait now. */
  add(items: readonly Item[]): void
  /**
   * Takes the next item of the owner that has waited longest, among those that `mayBegin`; null if there is none. The owner's wait
   * begins again.
   */
  take(mayBegin: (owner: Owner) => boolean): Item | null
  takeAll(): Item[]
}

/** `ownerOf` returns the owner of an item; each owner's items keep their order. */
export function openFairQueue<Owner, Item extends object>(ownerOf: (item: Item) => Owner): FairQueue<Owner, Item> {
  // In the order in which the owners began to wait.
  const waiting = new Map<Owner, Item[]>()
  let size = 0
  return {
    get size() {
      return size
    },
    sizeOf: (owner) => waiting.get(owner)?.length ?? 0,
    add(items) {
      for (const item of items) {
        const owner = ownerOf(item)
        const owned = waiting.get(owner)
        if (owned) owned.push(item)
        else waiting.set(owner, [item])
        size += 1
      }
    },
    take(mayBegin) {
      for (const [owner, items] of waiting) {
        if (!mayBegin(owner)) continue
        const item = items.shift() ?? null
        waiting.delete(owner)
        if (items.length > 0) waiting.set(owner, items)
        if (item) size -= 1
        return item
      }
      return null
    },
    takeAll() {
      const all = [...waiting.values()].flat()
      waiting.clear()
      size = 0
      return all
    },
  }
}
