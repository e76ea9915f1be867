import { HOUR_MS, type RealTime } from '#shared/time.ts'

/** A payment that unmatched money may be meant for. */
export interface Candidate {
  readonly transactionId: number
  /** What is still missing. */
  readonly amountDue: number
  readonly createdAt: RealTime
  readonly isBankPageOpened: boolean
}

const MOST_SUGGESTIONS = 5

/**
 * The likeliest candidates, best first: those that miss exactly the amount, then those that miss more (a payer may have sent less);
 * among each, those whose bank page was opened, then the nearest in time. None whose payment was opened after the money came, or
 * that misses less than half of the amount.
 */
export function suggest<T extends Candidate>(
  money: { amount: number; receivedAt: RealTime },
  candidates: readonly T[],
): T[] {
  const ageOf = ({ createdAt }: Candidate): number => money.receivedAt.getTime() - createdAt.getTime()
  return candidates
    .filter((candidate) => ageOf(candidate) >= -HOUR_MS && candidate.amountDue * 2 >= money.amount)
    .map((candidate) => ({ candidate, rank: rankOf(money.amount, candidate), age: Math.abs(ageOf(candidate)) }))
    .sort((one, other) => one.rank - other.rank || one.age - other.age)
    .slice(0, MOST_SUGGESTIONS)
    .map(({ candidate }) => candidate)
}

function rankOf(amount: number, { amountDue, isBankPageOpened }: Candidate): number {
  const byAmount = amountDue === amount ? 0 : amountDue > amount ? 2 : 4
  return byAmount + (isBankPageOpened ? 0 : 1)
}
