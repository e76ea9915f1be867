/**
 * The money of one transaction, in the smallest unit of its currency. Received − refunded = kept. Of the money kept, `amountUsed` paid for
 * what the payer got, `amountLeft` waits for a decision or is a surplus, and the rest was dismissed.
 */
export interface Balance {
  /** All money that arrived for it and was not moved away since, refunded or not. */
  readonly amountReceived: number
  /** Refunded, or being refunded. */
  readonly amountRefunded: number
  readonly amountUsed: number
  readonly amountLeft: number
}

/** The money that was received and not refunded. */
export function keptOf({ amountReceived, amountRefunded }: Balance): number {
  return amountReceived - amountRefunded
}

/** The part of `amount` that is still due; 0 if all of it arrived. */
export function dueOf({ amount, ...balance }: Balance & { readonly amount: number }): number {
  return Math.max(0, amount - keptOf(balance))
}

/** The part of the money kept that pays `price`; the rest is a surplus. */
export function paidOf(balance: Balance, price: number): number {
  return Math.min(keptOf(balance), price)
}

/** The money that may be moved to another transaction: all that paid for nothing here, dismissed or not. */
export function movableOf(balance: Balance): number {
  return keptOf(balance) - balance.amountUsed
}

/** The money of a payment that is neither allocated nor refunded; 0 if its amount is unknown. */
export function unallocatedOf({ amountLeft }: { readonly amountLeft: number | null }): number {
  return amountLeft ?? 0
}

/** Adds received money to `amountLeft`, until something uses it. */
export function balanceAfterArrival(balance: Balance, amount: number): Balance {
  const { amountReceived, amountRefunded, amountUsed, amountLeft } = balance
  return { amountReceived: amountReceived + amount, amountRefunded, amountUsed, amountLeft: amountLeft + amount }
}

/** Money pays for what the payer gets, up to `price`; the rest is left. If the payer gets nothing, all of it is left. */
export function balanceAfterCompletion(balance: Balance, price: number, isGiven: boolean): Balance {
  const amountUsed = isGiven ? paidOf(balance, price) : 0
  return { ...balanceOf(balance), amountUsed, amountLeft: keptOf(balance) - amountUsed }
}

/** Refunds the unused money first, then dismissed money, then money that paid for something. Throws beyond what is kept. */
export function balanceAfterRefund(balance: Balance, amount: number): Balance {
  requireUpTo(amount, keptOf(balance))
  const dismissedAmount = movableOf(balance) - balance.amountLeft
  const fromLeft = Math.min(balance.amountLeft, amount)
  const fromUsed = Math.max(0, amount - fromLeft - dismissedAmount)
  return {
    amountReceived: balance.amountReceived,
    amountRefunded: balance.amountRefunded + amount,
    amountUsed: balance.amountUsed - fromUsed,
    amountLeft: balance.amountLeft - fromLeft,
  }
}

/** The provider refused a refund, so its money is back. `isLeft`: whether the unused part is left again or stays dismissed. */
export function balanceAfterRefusedRefund(
  balance: Balance,
  amount: number,
  amountUsed: number,
  isLeft: boolean,
): Balance {
  requireUpTo(amount, balance.amountRefunded)
  requireUpTo(amountUsed, amount)
  return {
    amountReceived: balance.amountReceived,
    amountRefunded: balance.amountRefunded - amount,
    amountUsed: balance.amountUsed + amountUsed,
    amountLeft: balance.amountLeft + (isLeft ? amount - amountUsed : 0),
  }
}

/** A refund failed later: its money no longer belongs to this transaction, nor to another. */
export function balanceAfterFailedRefund(balance: Balance, amount: number): Balance {
  requireUpTo(amount, balance.amountRefunded)
  const { amountReceived, amountRefunded } = balance
  return { ...balanceOf(balance), amountReceived: amountReceived - amount, amountRefunded: amountRefunded - amount }
}

/** Money moves to another transaction: first what is left, then what was dismissed. Throws beyond what may be moved. */
export function balanceAfterMove(balance: Balance, amount: number): Balance {
  requireUpTo(amount, movableOf(balance))
  const amountLeft = balance.amountLeft - Math.min(balance.amountLeft, amount)
  return { ...balanceOf(balance), amountReceived: balance.amountReceived - amount, amountLeft }
}

/** An operator decides that the money left needs no action. */
export function balanceAfterDismissal(balance: Balance): Balance {
  return { ...balanceOf(balance), amountLeft: 0 }
}

/** Takes `amount` from the parts, the last parts first. Throws if all parts together have less. */
export function takeNewest<T extends { readonly kept: number }>(
  amount: number,
  parts: readonly T[],
): { readonly part: T; readonly amount: number }[] {
  const taken: { part: T; amount: number }[] = []
  let rest = amount
  for (const part of [...parts].reverse()) {
    const share = Math.min(part.kept, rest)
    if (share > 0) taken.push({ part, amount: share })
    rest -= Math.max(share, 0)
  }
  requireUpTo(amount, amount - rest)
  return taken
}

/** Only the four amounts, without the other columns of a row. */
export function balanceOf({ amountReceived, amountRefunded, amountUsed, amountLeft }: Balance): Balance {
  return { amountReceived, amountRefunded, amountUsed, amountLeft }
}

function requireUpTo(amount: number, most: number): void {
  if (!Number.isSafeInteger(amount) || amount < 0 || amount > most)
    throw new RangeError(`${amount} is not an amount from 0 to ${most}`)
}
