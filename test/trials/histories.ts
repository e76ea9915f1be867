import { join } from 'node:path'
import { explore } from '../histories/explore.ts'
import { loadRules } from '../histories/rules.ts'

export interface HistoriesOptions {
  readonly depth: number
  /** Decides in which order the histories are taken, and nothing else. */
  readonly seed: number
}

/**
 * Every history of `depth` steps of one end user: opening, paying (late, twice, in part), switching, discounting, ending, refunding,
 * completing and moving, over the service's pure rules beside a model that was written from the rules alone. Throws at the first
 * difference.
 */
export async function allHistories({ depth, seed }: HistoriesOptions) {
  const rules = await loadRules(join(import.meta.dirname, '../..'))
  const started = performance.now()
  const explored = explore(rules, depth, seed)
  const seconds = (performance.now() - started) / 1000
  return {
    seed,
    depth,
    ...explored,
    seconds: Number(seconds.toFixed(1)),
    // With those that go on as one.
    perSecond: Math.round(explored.histories / seconds),
  }
}
