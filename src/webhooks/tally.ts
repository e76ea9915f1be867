/** Counts of the outcomes of claimed events. `lost`: another sender took over the lease. */
export interface Tally {
  delivered: number
  retried: number
  failed: number
  notConfigured: number
  /** Postponed, because the signing secret cannot be decrypted. */
  postponed: number
  lost: number
}

const OUTCOMES = [
  'delivered',
  'retried',
  'failed',
  'notConfigured',
  'postponed',
  'lost',
] as const satisfies (keyof Tally)[]

export function emptyTally(): Tally {
  return { delivered: 0, retried: 0, failed: 0, notConfigured: 0, postponed: 0, lost: 0 }
}

export function addTally(tally: Tally, more: Tally): void {
  for (const key of OUTCOMES) tally[key] += more[key]
}

/** The counts since `before`. */
export function difference(now: Tally, before: Tally): Tally {
  const more = emptyTally()
  for (const key of OUTCOMES) more[key] = now[key] - before[key]
  return more
}
