/** Payments that were begun, and how many of them were completed. */
export interface Completions {
  readonly begun: number
  readonly paid: number
}

/** Fewer payments prove nothing. */
const MIN_USUAL = 30
const MIN_RECENT = 5
/** How unlikely so few completed payments must be by chance alone. */
const CHANCE = 1e-5

/** Whether the share of completed payments is recently less than half of what is usual, and too low to be chance. */
export function isFarBelow(recent: Completions, usual: Completions): boolean {
  if (usual.begun < MIN_USUAL || recent.begun < MIN_RECENT || usual.paid === 0) return false
  const rate = usual.paid / usual.begun
  return recent.paid / recent.begun < rate / 2 && atMost(recent.paid, recent.begun, rate) < CHANCE
}

/** The chance of at most `paid` completed payments among `begun`, each with the chance `rate` (the binomial distribution). */
function atMost(paid: number, begun: number, rate: number): number {
  if (rate >= 1) return paid >= begun ? 1 : 0
  let chance = (1 - rate) ** begun
  let sum = chance
  for (let each = 1; each <= paid; each += 1) {
    chance *= ((begun - each + 1) / each) * (rate / (1 - rate))
    sum += chance
  }
  return sum
}
