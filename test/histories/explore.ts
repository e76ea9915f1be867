import { hash } from 'node:crypto'
import { act, NEW_MODEL, shownOf as shownByModel, type Model } from './model.ts'
import type { Rules } from './rules.ts'
import { NEW_SERVICE, Service, shownOf, type ServiceState } from './service.ts'
import { actionsWith, KINDS, type Action, type Shown } from './terms.ts'
import { seededRandom } from '../support/seeded-random.ts'

/** The service and the model after one history. */
interface Pair {
  readonly service: ServiceState
  readonly model: Model
}

export interface Exploration {
  /** Histories of exactly the depth; they go beyond the integers that a number holds exactly only after depth 12. */
  readonly histories: number
  /** Different states that they come to, and steps that were compared. */
  readonly states: number
  readonly steps: number
}

/** A history in which the service does something else than the rules say. */
export class Deviation extends Error {
  readonly history: readonly Action[]

  constructor(history: readonly Action[], what: string) {
    super(`${what}, after ${JSON.stringify(history)}`)
    this.name = 'Deviation'
    this.history = history
  }
}

/**
 * Takes every history of `depth` steps, with the service's rules beside the model, and compares them after each step. Histories that lead
 * to the same state go on as one: their number is counted, and their steps are taken once. Throws `Deviation` for the first difference.
 */
export function explore(rules: Rules, depth: number, seed = 1): Exploration {
  const order = orderOf(seed)
  const service = new Service(rules)
  /** The histories from a state, by the steps that are left and the state. */
  const known = Array.from({ length: depth + 1 }, () => new Map<string, number>())
  const path: Action[] = []
  let steps = 0

  const from = (pair: Pair, left: number): number => {
    if (left === 0) return 1
    const key = hash('sha1', keyOf(pair), 'base64')
    const before = known[left]!.get(key)
    if (before !== undefined) return before
    let histories = 0
    for (const action of order(actionsWith(pair.model.offers.length))) {
      path.push(action)
      steps += 1
      const next = take(service, pair, action, path)
      if (next) histories += from(next, left - 1)
      path.pop()
    }
    known[left]!.set(key, histories)
    return histories
  }

  const histories = from({ service: NEW_SERVICE, model: NEW_MODEL }, depth)
  return { histories, states: known.reduce((sum, { size }) => sum + size, 0), steps }
}

/** Sorts actions by their kinds, in an order that the seed decides. */
function orderOf(seed: number): (actions: Action[]) => Action[] {
  const random = seededRandom(seed)
  const ranks = Object.fromEntries(KINDS.map((kind) => [kind, random()])) as Record<Action['kind'], number>
  return (actions) => actions.sort((one, other) => ranks[one.kind] - ranks[other.kind])
}

/** Both after the action; null if both refuse it. */
function take(service: Service, { service: state, model }: Pair, action: Action, path: readonly Action[]): Pair | null {
  const expected = act(model, action)
  const got = attempt(service, state, action, path)
  if ((got === null) !== (expected === null))
    throw new Deviation(
      [...path],
      got === null ? 'the service refuses the last step' : 'the service takes the last step',
    )
  if (got === null || expected === null) return null
  compare(shownOf(got), shownByModel(expected), path)
  return { service: got, model: expected }
}

function attempt(service: Service, state: ServiceState, action: Action, path: readonly Action[]): ServiceState | null {
  try {
    return service.act(state, action)
  } catch (error) {
    throw new Deviation([...path], `the service throws ${String(error)}`)
  }
}

const SHOWN = ['purpose', 'status', 'flag', 'amount', 'received', 'refunded', 'used', 'left'] as const

function compare(got: Shown, expected: Shown, path: readonly Action[]): void {
  const { offers, ...held } = got
  const { offers: expectedOffers, ...expectedHeld } = expected
  if (held.price !== expectedHeld.price || held.end !== expectedHeld.end)
    throw new Deviation([...path], `the service has ${JSON.stringify(held)} and not ${JSON.stringify(expectedHeld)}`)
  for (const [index, offer] of offers.entries()) {
    const wrong = SHOWN.filter((field) => offer[field] !== expectedOffers[index]![field])
    if (wrong.length > 0)
      throw new Deviation([...path], `payment ${index} has a wrong ${wrong.join(', ')}: ${JSON.stringify(offer)}`)
  }
}

/**
 * The state without what nothing can depend on: times are counted from now, and payments have no order. Names of fields are left out.
 */
function keyOf({ service, model }: Pair): string {
  const { now } = model
  const since = (seconds: number): number => seconds - now
  const { held, choice, trials } = model
  const head = [
    held?.price,
    held && since(held.end),
    since(choice.opened),
    since(choice.paid),
    choice.bought,
    since(choice.priced),
    trials.join(),
    service.last && [
      service.last.isBought,
      since(secondsOf(service.last.openedAt)),
      since(secondsOf(service.last.paidAt)),
    ],
    service.last && since(secondsOf(service.last.pricedAt)),
    service.subscription && since(secondsOf(service.subscription.periodStart)),
    service.subscription?.anchorDay,
  ].join(' ')
  const latestRenewal = model.offers.findLastIndex(({ isByRenewalLink }) => isByRenewalLink)
  const offers = model.offers.map((one, index) =>
    [
      one.purpose,
      one.isByRenewalLink,
      // The renewal link leads to the latest of them.
      index === latestRenewal,
      one.price,
      since(one.opened),
      one.status,
      one.flag,
      one.amount,
      one.received,
      one.refunded,
      one.used,
      one.left,
      one.isSettled,
      service.opened[index]!.row.resolution,
      ...one.money.map(({ paid, kept }) => `${since(paid)}:${kept}`),
    ].join(' '),
  )
  return `${head}|${offers.sort().join('|')}`
}

const START_MS = Date.UTC(2026, 2, 1, 10)
const secondsOf = (time: Date): number => (time.getTime() - START_MS) / 1000
