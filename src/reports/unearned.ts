import type { PaidPeriod } from './store.ts'

/** The part of a payment that is not served at `period.now`, in the smallest unit, rounded down; all of it before the period begins. */
export function unearnedOf({ amount, start, end, now }: Omit<PaidPeriod, 'id' | 'currency'>): number {
  const wholeMs = end.getTime() - start.getTime()
  const leftMs = Math.min(wholeMs, end.getTime() - now.getTime())
  if (wholeMs <= 0 || leftMs <= 0) return 0
  // The product of an amount and a time exceeds the integers that a number holds exactly.
  return Number((BigInt(amount) * BigInt(leftMs)) / BigInt(wholeMs))
}
