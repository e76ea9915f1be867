import { other, type Choice, type Point, type Run } from './schedule.ts'

/** Runs the commands in an order that begins with these choices. */
export type Execute = (given: readonly Choice[]) => Promise<Run>

/**
 * Every order of the steps of two commands, depth first. A step that is tried and waits for a lock of the other waits as well a little
 * later, and a beginning, which only reads, reads the same, until the other commits: those orders are left out.
 */
export async function* everyOrder(execute: Execute, given: readonly Choice[] = []): AsyncGenerator<Run> {
  const run = await execute(given)
  yield run
  let alike = -1
  for (const [index, point] of run.points.entries()) {
    if (index < given.length || index <= alike || !point.isOtherFree) continue
    const children = everyOrder(execute, insteadOf(run, index))
    for (let child = await children.next(); !child.done; child = await children.next()) {
      if (waitsForCommit(child.value.points[index])) alike = Math.max(alike, nextSeen(run, index))
      yield child.value
    }
  }
}

/** An order in which the other side goes on at the point. */
export function insteadOf(run: Run, index: number): Choice[] {
  const point = run.points[index]
  if (!point) throw new Error(`an order has no choice ${index}`)
  return [...choicesOf(run).slice(0, index), { side: other(point.choice.side), fate: 'pass' }]
}

export function choicesOf(run: Run): Choice[] {
  return run.points.map(({ choice }) => choice)
}

function waitsForCommit(point: Point | undefined): boolean {
  return point !== undefined && (point.isBlocked || point.gate.kind === 'start')
}

/** The next choice by which the side that goes on at the point shows others what it wrote. */
function nextSeen(run: Run, from: number): number {
  const side = run.points[from]?.choice.side
  const found = run.points.findIndex((point, index) => index >= from && point.choice.side === side && point.gate.isSeen)
  return found === -1 ? run.points.length : found
}
