import { Deviation, explore } from '../histories/explore.ts'
import { MUTANTS, rulesOf, type Mutant } from '../histories/mutants.ts'

export interface MutantsOptions {
  readonly mutants?: readonly Mutant[]
  readonly mostDepth: number
  /** Called with a line for each mutant: its name, and the depth that finds it. */
  readonly onFound?: (line: string) => void
}

/** Breaks the rules in one line at a time: the histories must find each. Throws with the names of those that survive. */
export async function mutants({ mutants: all = MUTANTS, mostDepth, onFound = () => undefined }: MutantsOptions) {
  const foundAt: Record<string, number> = {}
  const survivors: string[] = []
  for (const mutant of all) {
    const depth = await depthOf(mutant, mostDepth)
    onFound(`${mutant.name}: ${depth === null ? 'not found' : `found at depth ${depth}`}`)
    if (depth === null) survivors.push(mutant.name)
    else foundAt[`depth ${depth}`] = (foundAt[`depth ${depth}`] ?? 0) + 1
  }
  if (survivors.length > 0) throw new Error(`these mutants survive depth ${mostDepth}: ${survivors.join(', ')}`)
  return { mutants: all.length, foundAt }
}

async function depthOf(mutant: Mutant, mostDepth: number): Promise<number | null> {
  const rules = await rulesOf(mutant)
  for (let depth = 1; depth <= mostDepth; depth += 1) {
    try {
      explore(rules, depth)
    } catch (error) {
      if (error instanceof Deviation) return depth
      throw error
    }
  }
  return null
}
