import { HOUR_MS, type RealTime } from '#shared/time.ts'

/** A transaction that unmatched money may be for. */
export interface MatchCandidate {
  /** The amount still due. */
  readonly amountDue: number
  readonly createdAt: RealTime
  readonly isBankPageOpened: boolean
}

const MAX_SUGGESTIONS = 5

/**
 * The most likely candidates, best first: those with exactly the amount due, then those with more (a payer may have sent less), then those
 * with less. Within each group, those whose bank page was opened come first, then the nearest in time. Excludes those that were opened more
 * than an hour after the money came, and those whose due amount is less than half of the money.
 */
export function suggest<T extends MatchCandidate>(
  money: { amount: number; receivedAt: RealTime },
  candidates: readonly T[],
): T[] {
  const ageOf = ({ createdAt }: MatchCandidate): number => money.receivedAt.getTime() - createdAt.getTime()
  return candidates
    .filter((candidate) => ageOf(candidate) >= -HOUR_MS && candidate.amountDue * 2 >= money.amount)
    .map((candidate) => ({ candidate, rank: rankOf(money.amount, candidate), age: Math.abs(ageOf(candidate)) }))
    .sort((one, other) => one.rank - other.rank || one.age - other.age)
    .slice(0, MAX_SUGGESTIONS)
    .map(({ candidate }) => candidate)
}

function rankOf(amount: number, { amountDue, isBankPageOpened }: MatchCandidate): number {
  return rankOfAmount(amount, amountDue) + (isBankPageOpened ? 0 : 1)
}

function rankOfAmount(amount: number, amountDue: number): number {
  if (amountDue === amount) return 0
  return amountDue > amount ? 2 : 4
}
