/** An element of a drawing. */
export interface DrawnElement {
  readonly id: string | undefined
  readonly parts: DrawnElement[]
  /** The ids that it refers to: what it repeats, and what it is clipped, masked or painted by. */
  readonly references: readonly string[]
  /** Whether it paints those that refer to it rather than being drawn with each. */
  readonly isPaint: boolean
}

/** How deep elements may be nested, the references that they follow included. */
const MAX_DEPTH = 200

/**
 * How many elements a browser draws beyond those of the file, because elements refer to others, which may refer to others again. Each
 * element is counted once, and nothing is expanded: ten elements that repeat the one before ten times are 10^10 copies. `cycle` if an
 * element leads back to itself, `depth` if references are nested too deeply.
 */
export function countCopies(root: DrawnElement): number | 'cycle' | 'depth' {
  try {
    return new CopyCount(root).copies()
  } catch (error) {
    if (error instanceof Uncountable) return error.reason
    throw error
  }
}

class CopyCount {
  readonly #root: DrawnElement
  readonly #named = new Map<string, DrawnElement>()
  #elements = 0
  /** How many elements each one draws. */
  readonly #counts = new Map<DrawnElement, number | 'counting'>()

  constructor(root: DrawnElement) {
    this.#root = root
    this.#register(root)
  }

  copies(): number {
    return this.#drawnBy(this.#root, 0) - this.#elements
  }

  #register(element: DrawnElement): void {
    this.#elements += 1
    // Where an id occurs twice, a browser takes the first.
    if (element.id !== undefined && !this.#named.has(element.id)) this.#named.set(element.id, element)
    for (const part of element.parts) this.#register(part)
  }

  #drawnBy(element: DrawnElement, depth: number): number {
    const known = this.#counts.get(element)
    if (known === 'counting') throw new Uncountable('cycle')
    if (known !== undefined) return known
    if (depth > MAX_DEPTH) throw new Uncountable('depth')
    this.#counts.set(element, 'counting')
    // Beyond what a number holds exactly, the sum is still far above every limit.
    let count = 1
    for (const part of element.parts) count += this.#drawnBy(part, depth + 1)
    for (const id of element.references) {
      const target = this.#named.get(id)
      if (!target) continue
      const drawn = this.#drawnBy(target, depth + 1)
      if (!target.isPaint) count += drawn
    }
    this.#counts.set(element, count)
    return count
  }
}

class Uncountable extends Error {
  override readonly name = 'Uncountable'
  readonly reason: 'cycle' | 'depth'

  constructor(reason: 'cycle' | 'depth') {
    super(reason)
    this.reason = reason
  }
}
