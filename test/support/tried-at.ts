import type { TestClock } from './context.ts'

/**
 * The minutes from now at which `tries` finds something to try, looked at in each minute of `expected` and `stepMinutes` before it:
 * what a pause that is too short or too long would change. The clock stands at the last of them afterwards.
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
