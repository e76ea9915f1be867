import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from '#context.ts'
import { testDatabase } from '../support/database.ts'
import { Side, type Answer, type Fate, type Gate, type Grain } from './side.ts'
import type { State, World } from './world.ts'

/** What happens next: which side goes on, and its fate at the gate. */
export interface Choice {
  readonly side: 0 | 1
  readonly fate: Fate
}

/** A choice that was made, and what else could have been chosen. */
export interface Point {
  readonly choice: Choice
  readonly gate: Gate
  /** Whether the other side could have gone on instead. */
  readonly isOtherFree: boolean
  /** Whether the chosen side then waited for a lock of the other. */
  readonly isBlocked: boolean
}

/** One run of two commands. */
export interface Run {
  readonly points: readonly Point[]
  /** Null for a side that was killed. */
  readonly answers: readonly [Answer | null, Answer | null]
  /** The rows of each changed table. */
  readonly state: State
}

export type Work = (ctx: Context) => Promise<unknown>

const FIRST_LOOK_MS = 2
const STUCK_MS = 20_000
const LETTERS = ['A', 'B'] as const
const MARKS: Readonly<Record<Fate, string>> = { pass: '', kill: '!', 'answer lost': '?', 'commit lost': '~' }

/** `A A B! A`: an order as it is printed and given to be replayed. */
export function writeOrder(choices: readonly Choice[]): string {
  return choices.map(({ side, fate }) => `${LETTERS[side]}${MARKS[fate]}`).join(' ')
}

/** Null for text that is no order. */
export function readOrder(text: string): Choice[] | null {
  const fates = new Map(Object.entries(MARKS).map(([fate, mark]) => [mark, fate as Fate]))
  const choices = text.split(' ').map((word): Choice | null => {
    const side = LETTERS.indexOf(word.slice(0, 1) as 'A')
    const fate = fates.get(word.slice(1))
    return side >= 0 && fate !== undefined ? { side: side as 0 | 1, fate } : null
  })
  return choices.every((choice) => choice !== null) ? choices : null
}

/**
 * Runs two commands step by step: the given choices first; from then on the side that went on last goes on while it can. A side that
 * waits for a lock of the other is passed over until that is free.
 */
export async function runOrder(
  world: World,
  ctx: Context,
  works: readonly [Work, Work],
  grain: Grain,
  given: readonly Choice[],
): Promise<Run> {
  await world.restore()
  const { pool } = testDatabase().db
  const sides = [new Side('A', grain, pool), new Side('B', grain, pool)] as const
  for (const [index, side] of sides.entries()) side.begin(ctx, works[index as 0 | 1])
  const points: Point[] = []
  const deadline = performance.now() + STUCK_MS
  const scheduler = { world, sides, deadline }
  while (!sides.every((side) => side.isOver)) {
    const choice = choose(sides, given[points.length], points.at(-1)?.choice.side ?? 0)
    if (!choice) {
      await settleAll(scheduler)
      continue
    }
    const side = sides[choice.side]
    const { gate } = side
    if (!gate) throw new Error('a side without a gate was chosen')
    const isOtherFree = sides[other(choice.side)].gate !== null
    await apply(scheduler, side, choice.fate)
    await settleAll(scheduler)
    points.push({ choice, gate, isOtherFree, isBlocked: !side.isIdle })
  }
  world.noteChanged([...sides[0].written, ...sides[1].written])
  return { points, answers: [sides[0].answer, sides[1].answer], state: await world.state() }
}

interface Scheduler {
  readonly world: World
  readonly sides: readonly [Side, Side]
  readonly deadline: number
}

export function other(side: 0 | 1): 0 | 1 {
  return side === 0 ? 1 : 0
}

function choose(sides: readonly [Side, Side], given: Choice | undefined, last: 0 | 1): Choice | null {
  if (given && sides[given.side].gate) return fits(given, sides[given.side].gate) ? given : { ...given, fate: 'pass' }
  const side = [last, other(last)].find((each) => sides[each].gate !== null)
  return side === undefined ? null : { side, fate: 'pass' }
}

function fits({ fate }: Choice, gate: Gate | null): boolean {
  return fate === 'pass' || fate === 'kill' || gate?.kind === 'commit'
}

async function apply({ world }: Scheduler, side: Side, fate: Fate): Promise<void> {
  if (fate !== 'kill') {
    side.pass(fate)
    return
  }
  const threads = side.kill()
  while (await world.has(threads)) await delay(1)
}

/** Waits until each side is at a gate, is over, or waits for a lock. */
async function settleAll(scheduler: Scheduler): Promise<void> {
  const [first, second] = scheduler.sides
  await settle(scheduler, first, second)
  await settle(scheduler, second, first)
}

async function settle({ world, deadline }: Scheduler, side: Side, rival: Side): Promise<void> {
  for (let ms = FIRST_LOOK_MS; !side.isIdle; ms += 1) {
    await Promise.race([side.changed, delay(ms)])
    if (side.isIdle) return
    // Only a transaction that stands at a gate keeps its locks.
    if (rival.isInTransaction && rival.gate && (await waits(world, side))) return
    if (performance.now() > deadline) throw new Error(`side ${side.name} neither goes on nor waits for a lock`)
  }
}

async function waits(world: World, side: Side): Promise<boolean> {
  const waiting = await world.waiting()
  return !side.isIdle && side.threads.some((thread) => waiting.has(thread))
}
