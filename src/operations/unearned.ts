import type { PaidPeriod } from './store.ts'

/** What of a payment is not served at `period.now`, in the smallest unit, rounded down; the whole of a period that begins later. */
export function unearnedOf({ amount, start, end, now }: Omit<PaidPeriod, 'id' | 'currency'>): number {
  const wholeMs = end.getTime() - start.getTime()
  const leftMs = Math.min(wholeMs, end.getTime() - now.getTime())
  if (wholeMs <= 0 || leftMs <= 0) return 0
  // The product of an amount and a time is beyond what a number holds exactly.
  return Number((BigInt(amount) * BigInt(leftMs)) / BigInt(wholeMs))
}
