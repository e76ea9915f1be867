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
  const named = new Map<string, DrawnElement>()
  let elements = 0
  const register = (element: DrawnElement): void => {
    elements += 1
    // Where an id occurs twice, a browser takes the first.
    if (element.id !== undefined && !named.has(element.id)) named.set(element.id, element)
    element.parts.forEach(register)
  }
  register(root)

  const counts = new Map<DrawnElement, number | 'counting'>()
  const drawnBy = (element: DrawnElement, depth: number): number => {
    const known = counts.get(element)
    if (known === 'counting') throw new Uncountable('cycle')
    if (known !== undefined) return known
    if (depth > MAX_DEPTH) throw new Uncountable('depth')
    counts.set(element, 'counting')
    // Beyond what a number holds exactly, the sum is still far above every limit.
    let count = 1
    for (const part of element.parts) count += drawnBy(part, depth + 1)
    for (const id of element.references) {
      const target = named.get(id)
      if (!target) continue
      const drawn = drawnBy(target, depth + 1)
      if (!target.isPaint) count += drawn
    }
    counts.set(element, count)
    return count
  }
  try {
    return drawnBy(root, 0) - elements
  } catch (error) {
    if (error instanceof Uncountable) return error.reason
    throw error
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
