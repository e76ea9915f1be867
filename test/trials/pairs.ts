import { checkOrder, checkPair, noFigures, type PairFigures, type Runnable } from '../pairs/check-pair.ts'
import { COMMANDS, listPairs, type Pair, type PairCommand } from '../pairs/commands.ts'
import { readOrder, runOrder, type Choice, type Work } from '../pairs/schedule.ts'
import { prepareScene, SCENES, type Scene } from '../pairs/scenes.ts'
import { World } from '../pairs/world.ts'
import { requireCleanLedger } from '../support/clean-ledger.ts'
import { messageOf } from '#shared/errors.ts'
import { emptyTestDatabase } from '../support/database.ts'
import { seededRandom } from '../support/seeded-random.ts'

export interface PairsOptions {
  readonly seed: number
  readonly pairs?: readonly Pair[]
  readonly commands?: Readonly<Record<string, PairCommand>>
  /** The one order to run of each pair. */
  readonly order?: readonly Choice[] | null
  /** Orders without a fault of a pair. */
  readonly mostOrders: number
  /** Share of the faults that are run. */
  readonly faults: number
  /** Called for each pair that does not hold, with the order that shows it. */
  readonly onFailure?: (text: string) => void
}

/**
 * Runs each pair of commands in the orders of their writes, with kills and lost answers to COMMIT, on prepared rows. Throws if a
 * run of a pair that equals no serial order, or whose ledger has a discrepancy, once all pairs have run.
 */
export async function everyPair(options: PairsOptions) {
  const { seed, pairs = listPairs(), onFailure = () => undefined } = options
  const failures: string[] = []
  const total = noFigures()
  for (const name of SCENES) {
    const ofScene = pairs.filter(({ scene }) => scene === name)
    if (ofScene.length === 0) continue
    await emptyTestDatabase()
    const scene = await prepareScene(name)
    const world = await World.keep()
    try {
      for (const pair of ofScene) {
        try {
          const figures = await runPair(world, scene, pair, options)
          for (const key of Object.keys(total) as (keyof PairFigures)[]) total[key] += figures[key]
        } catch (error) {
          failures.push(messageOf(error))
          onFailure(messageOf(error))
        }
      }
    } finally {
      await world.drop()
    }
  }
  if (failures.length > 0) throw new Error(`${failures.length} of ${pairs.length} pairs: ${failures.join('\n')}`)
  return { seed, pairs: pairs.length, ...total }
}

async function runPair(world: World, scene: Scene, pair: Pair, options: PairsOptions): Promise<PairFigures> {
  const { commands = COMMANDS, seed, mostOrders, faults, order = null } = options
  const [first, second] = pair.commands.map((name) => commands[name])
  if (!first || !second) throw new Error(`${pair.name} names an unknown command`)
  const works: [Work, Work] = [(ctx) => first.run(ctx, scene), (ctx) => second.run(ctx, scene)]
  const runnable: Runnable = {
    name: pair.name,
    areSweeps: [first.isSweep === true, second.isSweep === true],
    execute: (grain, given) => runOrder(world, scene.ctx, works, grain, given),
    checkLedger: async (when) => {
      await requireCleanLedger(scene.ctx, when)
    },
  }
  if (order) return checkOrder(runnable, order)
  return checkPair(runnable, { random: randomOf(seed, pair), mostOrders, faults })
}

/** Each pair has its own numbers, so that a case alone is as it is among all. */
function randomOf(seed: number, { name }: Pair): () => number {
  let mixed = seed
  for (const letter of name) mixed = (Math.imul(mixed, 31) + (letter.codePointAt(0) ?? 0)) | 0
  return seededRandom(mixed)
}

/** The names of the pairs. */
export function pairNames(): string[] {
  return listPairs().map(({ name }) => name)
}

/** What to run for a case: `<pair>`, or `<pair> / <order>` for one order of it. Throws for an unknown one. */
export function caseNamed(text: string): Required<Pick<PairsOptions, 'pairs' | 'order'>> {
  const [name = '', written] = text.split(' / ')
  const pair = listPairs().find((each) => each.name === name)
  if (!pair) throw new Error(`no such case: ${name}; npm run trials pairs -- --list shows them`)
  const order = written === undefined ? null : readOrder(written)
  if (written !== undefined && !order) throw new Error(`no such order: ${written}; an order is like "A A B! A"`)
  return { pairs: [pair], order }
}
