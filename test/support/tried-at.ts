import type { TestClock } from './context.ts'

/**
 * The minutes from now at which `tries` finds something to try. It is called in each minute of `expected` and `stepMinutes` earlier,
 * so that a pause that is too short or too long changes the result. The clock stays at the last of them.
 */
export async function triedAt(
  clock: TestClock,
  expected: readonly number[],
  stepMinutes: number,
  tries: () => Promise<boolean>,
): Promise<number[]> {
  const minutes = new Set(expected.flatMap((minute) => (minute === 0 ? [0] : [minute - stepMinutes, minute])))
  const tried: number[] = []
  let now = 0
  for (const minute of minutes) {
    if (minute > now) clock.advance(`${minute - now}m`)
    now = minute
    if (await tries()) tried.push(minute)
  }
  return tried
}
