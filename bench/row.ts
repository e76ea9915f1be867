/** One line of the report. */
export interface Row {
  readonly name: string
  /** What is measured. */
  readonly what: string
  /** The least code that does the same durable work; null if the figure itself counts. */
  readonly floor: string | null
  readonly unit: 'a second' | 'ms' | 'MB'
  /** `share`: ours by the floor's, more is better. `multiple`: the same, less is better. `value`: ours alone, less is better. */
  readonly judged: 'share' | 'multiple' | 'value'
  readonly must: number
  readonly goal: number
}

/** What one round measured; `floor` is null if there is none. */
export interface Round {
  readonly ours: number
  readonly floor: number | null
}

/** The rounds of a row, or why it could not be measured here. */
export type Outcome = { readonly rounds: readonly Round[] } | { readonly skipped: string }

export interface BenchOptions {
  /** One short round: shows that it works, and measures nothing. */
  readonly isQuick: boolean
}

/** One measurement, of one row or of several that come from the same rounds. */
export interface Bench {
  /** Takes minutes: run only where it is named. */
  readonly isLong?: true
  readonly rows: readonly Row[]
  /** Outcomes by the names of its rows. The database is migrated and empty. */
  run(options: BenchOptions): Promise<Readonly<Record<string, Outcome>>>
}

const ROUNDS = 11

/**
 * Measures in rounds that take the sides in turn (A B A B …), so that what drifts on the machine drifts for all. The first round warms
 * both up and does not count.
 */
export async function inRounds<T>(options: BenchOptions, round: (number: number) => Promise<T>): Promise<T[]> {
  const results: T[] = []
  for (let number = 0; number < countRounds(options); number += 1) results.push(await round(number))
  return options.isQuick ? results : results.slice(1)
}

/** How many rounds there are, the first one included: for what has to be laid out beforehand. */
export function countRounds({ isQuick }: BenchOptions): number {
  return isQuick ? 1 : ROUNDS + 1
}

/** Figures in order: the middle one, and the ends. */
export interface Spread {
  readonly median: number
  readonly least: number
  readonly most: number
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  return { median: at(sorted, 0.5), least: at(sorted, 0), most: at(sorted, 1) }
}

function at(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN
}
