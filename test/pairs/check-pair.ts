import { everyOrder, choicesOf, insteadOf, type Execute } from './explore.ts'
import { writeOrder, type Choice, type Run } from './schedule.ts'
import { isNameless, type Grain } from './side.ts'

/** How to run the two commands of a pair. */
export interface Runnable {
  readonly name: string
  /** Whether each is a queue's sweep. */
  readonly areSweeps: readonly [boolean, boolean]
  readonly execute: (grain: Grain, given: readonly Choice[]) => Promise<Run>
  /** Throws if the ledger has a discrepancy. */
  readonly checkLedger: (order: string) => Promise<void>
}

export interface Limits {
  readonly random: () => number
  /** Orders without a fault that are run of a pair; where it has more, the seed chooses half of them. */
  readonly mostOrders: number
  /** Share of the kills and lost answers that are run. */
  readonly faults: number
}

export interface PairFigures {
  runs: number
  orders: number
  kills: number
  lostCommits: number
  /** Runs in which a side waited for a lock of the other. */
  waits: number
  /** Runs that equal an order of the commands' transactions, and none of the whole commands. */
  betweenTransactions: number
  /** Whether every order was run. */
  everyOrder: number
}

/** An order of two commands that came to something that no serial order comes to. */
export class WrongOrder extends Error {
  override readonly name = 'WrongOrder'
}

const SERIAL: readonly Choice[][] = [[{ side: 0, fate: 'pass' }], [{ side: 1, fate: 'pass' }]]
/** Of the orders of whole transactions, which are few. */
const MOST_UNIT_ORDERS = 200

/** Runs the orders of a pair, and the faults. Throws `WrongOrder` at the first run that equals no serial order. */
export async function checkPair(pair: Runnable, limits: Limits): Promise<PairFigures> {
  const check = new Checker(pair)
  const { runs, isEvery } = await runOrders(check, limits)
  await runFaults(check, runs, limits)
  return { ...check.figures, orders: runs.length, everyOrder: isEvery ? 1 : 0 }
}

/** Runs one order of a pair. */
export async function checkOrder(pair: Runnable, order: readonly Choice[]): Promise<PairFigures> {
  const check = new Checker(pair)
  await check.run(order)
  return { ...check.figures, orders: 1 }
}

async function runOrders(check: Checker, { mostOrders, random }: Limits): Promise<{ runs: Run[]; isEvery: boolean }> {
  const runs = new Map<string, Run>()
  const systematic = Math.ceil(mostOrders / 2)
  const add = (run: Run): void => void runs.set(writeOrder(choicesOf(run)), run)
  for await (const run of everyOrder((given) => check.run(given))) {
    add(run)
    if (runs.size === systematic) break
  }
  if (runs.size < systematic) return { runs: [...runs.values()], isEvery: true }
  for (let chosen = systematic; chosen < mostOrders; chosen += 1)
    add(await randomOrder(check, [...runs.values()], random))
  return { runs: [...runs.values()], isEvery: false }
}

/** Another order: one that was run, with the other side going on at some of its points. */
async function randomOrder(check: Checker, runs: readonly Run[], random: () => number): Promise<Run> {
  const run = pick(runs, random)
  const free = run.points.flatMap(({ isOtherFree }, index) => (isOtherFree ? [index] : []))
  return check.run(free.length === 0 ? [] : insteadOf(run, pick(free, random)))
}

/** A kill before each step of each side, and both ends of a lost COMMIT, each in an order that the seed chooses. */
async function runFaults(check: Checker, runs: readonly Run[], { faults, random }: Limits): Promise<void> {
  for (const side of [0, 1] as const) {
    const steps = Math.max(...runs.map((run) => pointsOf(run, side).length))
    for (let step = 1; step < steps; step += 1) {
      const run = pick(
        runs.filter((each) => pointsOf(each, side).length > step),
        random,
      )
      const index = pointsOf(run, side)[step] ?? 0
      const before = choicesOf(run).slice(0, index)
      const fates =
        run.points[index]?.gate.kind === 'commit'
          ? (['kill', 'answer lost', 'commit lost'] as const)
          : (['kill'] as const)
      for (const fate of fates) if (random() < faults) await check.run([...before, { side, fate }])
    }
  }
}

/** The points at which a side went on; the first is its beginning. */
function pointsOf(run: Run, side: 0 | 1): number[] {
  return run.points.flatMap(({ choice }, index) => (choice.side === side ? [index] : []))
}

function pick<T>(values: readonly T[], random: () => number): T {
  const value = values[Math.floor(random() * values.length)]
  if (value === undefined) throw new Error('there is nothing to choose from')
  return value
}

export function noFigures(): PairFigures {
  return { runs: 0, orders: 0, kills: 0, lostCommits: 0, waits: 0, betweenTransactions: 0, everyOrder: 0 }
}

/** Compares runs with the serial orders of a pair. */
class Checker {
  readonly figures: PairFigures = noFigures()
  readonly #pair: Runnable
  readonly #references = new Map<string, Promise<Run[]>>()
  readonly #clean = new Set<string>()

  constructor(pair: Runnable) {
    this.#pair = pair
  }

  async run(given: readonly Choice[]): Promise<Run> {
    const run = await this.#pair.execute('steps', given)
    this.#count(run)
    await this.#checkLedger(run)
    await this.#compare(run)
    return run
  }

  #count(run: Run): void {
    const fault = faultOf(run)?.fate
    this.figures.runs += 1
    if (fault === 'kill') this.figures.kills += 1
    else if (fault) this.figures.lostCommits += 1
    if (run.points.some(({ isBlocked }) => isBlocked)) this.figures.waits += 1
  }

  /** Once for all runs that left the same rows. */
  async #checkLedger(run: Run): Promise<void> {
    const state = stateOf(run)
    if (this.#clean.has(state)) return
    await this.#pair.checkLedger(`${this.#pair.name}, order ${writeOrder(choicesOf(run))}`)
    this.#clean.add(state)
  }

  async #compare(run: Run): Promise<void> {
    const ignored = this.#unheard(run)
    const isAmong = (runs: readonly Run[]): boolean => runs.some((each) => isSame(run, each, ignored))
    if (isAmong(await this.#whole(run))) return
    const units = await this.#inTransactions(run)
    if (!isAmong(units)) throw new WrongOrder(this.#describe(run, [...(await this.#whole(run)), ...units], ignored))
    this.figures.betweenTransactions += 1
  }

  /** The side whose answer nobody hears: it was killed, or is a sweep that did not hear whether its claim was committed. */
  #unheard(run: Run): 0 | 1 | null {
    const fault = faultOf(run)
    if (!fault) return null
    return fault.fate === 'kill' || this.#pair.areSweeps[fault.side] ? fault.side : null
  }

  /** The two serial orders, and with a kill the other command alone. */
  async #whole(run: Run): Promise<Run[]> {
    const unheard = this.#unheard(run)
    const both = await this.#reference('both', () => inTurn(SERIAL, (given) => this.#serial(given)))
    if (unheard === null) return both
    const alone = await this.#reference(`without ${unheard}`, async () => [
      await this.#pair.execute('steps', [{ side: unheard, fate: 'kill' }]),
    ])
    return [...both, ...alone]
  }

  /** Throws if a command fails without a name for it: such a run would prove nothing of the others. */
  async #serial(given: readonly Choice[]): Promise<Run> {
    const run = await this.#pair.execute('steps', given)
    const nameless = run.answers.find(isNameless)
    if (nameless) throw new Error(`${this.#pair.name}: ${nameless}`)
    return run
  }

  /** Every order of the commands' whole transactions, with the same side killed before each of its own. */
  async #inTransactions(run: Run): Promise<Run[]> {
    const unheard = this.#unheard(run)
    const execute: Execute = (given) => this.#pair.execute('units', given)
    const orders = await this.#reference('transactions', () => collect(everyOrder(execute), MOST_UNIT_ORDERS))
    if (unheard === null) return orders
    const killed = await this.#reference(`transactions, ${unheard} killed`, () => killedOf(orders, unheard, execute))
    return [...orders, ...killed]
  }

  #reference(name: string, make: () => Promise<Run[]>): Promise<Run[]> {
    const known = this.#references.get(name) ?? make()
    this.#references.set(name, known)
    return known
  }

  #describe(run: Run, expected: readonly Run[], ignored: 0 | 1 | null): string {
    const steps = run.points.map(({ choice, gate, isBlocked }) => {
      const what = gate.sql.slice(0, 90) || 'begins'
      return `  ${writeOrder([choice])} ${what}${isBlocked ? ' (waits for a lock)' : ''}`
    })
    const nearest = [...new Map(expected.map((each) => [differences(run, each, ignored).join('\n'), each])).keys()]
    const order = writeOrder(choicesOf(run))
    return [
      `${this.#pair.name}: no serial order comes to this; replay: --case "${this.#pair.name} / ${order}"`,
      ...steps,
      ...nearest.slice(0, 4).map((text, index) => `against serial order ${index + 1}:\n${text}`),
    ].join('\n')
  }
}

function faultOf(run: Run): Choice | null {
  return run.points.find(({ choice }) => choice.fate !== 'pass')?.choice ?? null
}

function stateOf({ state }: Run): string {
  return JSON.stringify([...state])
}

function isSame(run: Run, expected: Run, ignored: 0 | 1 | null): boolean {
  const isHeard = (side: 0 | 1): boolean => side !== ignored
  const sameAnswers = ([0, 1] as const).filter(isHeard).every((side) => run.answers[side] === expected.answers[side])
  return sameAnswers && stateOf(run) === stateOf(expected)
}

/** What differs, a line each. */
function differences(run: Run, expected: Run, ignored: 0 | 1 | null): string[] {
  const answers = ([0, 1] as const).flatMap((side) =>
    side === ignored || run.answers[side] === expected.answers[side]
      ? []
      : [`  answer of ${'AB'[side] ?? ''}: ${run.answers[side] ?? ''}, not ${expected.answers[side] ?? ''}`],
  )
  const tables = [...new Set([...run.state.keys(), ...expected.state.keys()])]
  return [
    ...answers,
    ...tables.flatMap((table) => rowDifferences(table, run.state.get(table), expected.state.get(table))),
  ]
}

function rowDifferences(table: string, found: readonly string[] = [], expected: readonly string[] = []): string[] {
  return [
    ...found.filter((row) => !expected.includes(row)).map((row) => `  ${table} has ${row}`),
    ...expected.filter((row) => !found.includes(row)).map((row) => `  ${table} lacks ${row}`),
  ]
}

async function inTurn<T, R>(values: readonly T[], work: (value: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const value of values) results.push(await work(value))
  return results
}

async function collect(runs: AsyncGenerator<Run>, most: number): Promise<Run[]> {
  const collected: Run[] = []
  for await (const run of runs) if (collected.push(run) === most) break
  return collected
}

/** The orders in which the side is killed before one of its transactions. */
async function killedOf(orders: readonly Run[], side: 0 | 1, execute: Execute): Promise<Run[]> {
  const killed = orders.flatMap((run) =>
    pointsOf(run, side).map((index) => [...choicesOf(run).slice(0, index), { side, fate: 'kill' } as const]),
  )
  const distinct = new Map(killed.map((given) => [writeOrder(given), given]))
  return inTurn([...distinct.values()], execute)
}
