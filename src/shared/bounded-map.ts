/** A map of at most `max` entries. One more drops the entry that was set longest ago; setting an entry again makes it the newest. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number
  readonly #onDrop: ((value: Value) => void) | undefined

  /** `onDrop` receives each value that was dropped to make room. */
  constructor(max: number, onDrop?: (value: Value) => void) {
    super()
    this.#max = max
    this.#onDrop = onDrop
  }

  override set(key: Key, value: Value): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#max) this.#dropOldest()
    return this
  }

  /** The value of the key; if it has none, the one that `create` returns, which is set. */
  getOrCreate(key: Key, create: () => Value): Value {
    const known = this.get(key)
    if (known !== undefined) return known
    const created = create()
    this.set(key, created)
    return created
  }

  #dropOldest(): void {
    const [oldest] = this
    if (!oldest) return
    this.delete(oldest[0])
    this.#onDrop?.(oldest[1])
  }
}
