/** `postponed`: the signing secret cannot be decrypted. `lost`: another sender took over the lease. */
const OUTCOMES = ['delivered', 'retried', 'failed', 'notConfigured', 'postponed', 'lost'] as const
/** Counts of the outcomes of claimed events. */
export type Tally = Record<(typeof OUTCOMES)[number], number>

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
