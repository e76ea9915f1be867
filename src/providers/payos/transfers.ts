import { z } from 'zod'
import { MINUTE_MS } from '#shared/time.ts'
import { parsePayosTime } from './order.ts'

/** One bank transfer for a payment link. */
export const Transfer = z.looseObject({
  reference: z.string().min(1).max(90),
  amount: z.number().int(),
  transactionDateTime: z.string().optional(),
})
export type Transfer = z.infer<typeof Transfer>

/** A payment link as PayOS describes it; the SDK's type promises more than the SDK checks. */
export const PaidLink = z.looseObject({
  id: z.string().min(1).max(100),
  orderCode: z.number().int(),
  amount: z.number().int(),
  amountPaid: z.number().int().optional(),
  status: z.string(),
  transactions: z.array(Transfer).nullish(),
})
export type PaidLink = z.infer<typeof PaidLink>

/** The reference under which the money of a paid link is booked if PayOS lists no transfer of it. */
export const WHOLE = 'whole'

/** The bank's own reference, which payers quote; null for money that is booked without a transfer. */
export function bankReferenceOf({ reference }: Transfer): string | null {
  return reference === WHOLE || reference.startsWith(`${WHOLE}+`) ? null : reference
}

/** The transfers that PayOS confirms: those that it lists, and the `reported` one if the received sum includes it. */
export function transfersOf(link: PaidLink, reported: Transfer | null): Transfer[] {
  const transfers = (link.transactions ?? []).filter(({ amount }) => amount > 0)
  const received = link.amountPaid ?? 0
  const unlisted = received - sumOf(transfers)
  if (
    reported &&
    reported.amount > 0 &&
    reported.amount <= unlisted &&
    !transfers.some((one) => one.reference === reported.reference)
  ) {
    transfers.push(reported)
  }
  return transfers
}

/**
 * Whether the transfer of a notification is one of these: by its reference, or by amount and time, so that a list with other references
 * does not look like one without the transfer. Times may be a minute apart, or missing.
 */
export function isAmong(transfers: readonly Transfer[], reported: Transfer): boolean {
  return transfers.some(
    (one) => one.reference === reported.reference || (one.amount === reported.amount && areNear(one, reported)),
  )
}

function areNear(one: Transfer, other: Transfer): boolean {
  const [from, to] = [parsePayosTime(one.transactionDateTime), parsePayosTime(other.transactionDateTime)]
  return !from || !to || Math.abs(from.getTime() - to.getTime()) <= MINUTE_MS
}

/** What is booked of a link. */
export interface Booked {
  readonly sum: number
  /** Whether some of it was booked without a transfer. PayOS does not say which transfer that was. */
  readonly hasUnlisted: boolean
}

/**
 * The transfers of the link to book. If the link is paid and lists none, returns one for everything that is not booked yet; after that, one
 * for everything that has arrived since.
 */
export function transfersToBook(
  { status, amount, amountPaid = 0 }: PaidLink,
  transfers: readonly Transfer[],
  { sum, hasUnlisted }: Booked,
): readonly Transfer[] {
  if (transfers.length > 0 && !hasUnlisted) return transfers
  if (!hasUnlisted && (status !== 'PAID' || amountPaid < amount)) return []
  const rest = Math.max(amountPaid, sumOf(transfers)) - sum
  return rest > 0 ? [{ reference: hasUnlisted ? `${WHOLE}+${sum}` : WHOLE, amount: rest }] : []
}

/**
 * Whether the link is paid, and its sum includes more than these transfers. A fully paid link is not polled again, so money that
 * PayOS does not list yet must be booked now.
 */
export function countsMoreThan({ status, amount, amountPaid = 0 }: PaidLink, transfers: readonly Transfer[]): boolean {
  return status === 'PAID' && amountPaid >= amount && amountPaid > sumOf(transfers)
}

/** The money of a paid link that is booked under no transfer's reference; null if all of it is booked. */
export function wholeRest({ amountPaid = 0 }: PaidLink, { sum, hasUnlisted }: Booked): Transfer | null {
  return hasUnlisted || amountPaid <= sum ? null : { reference: WHOLE, amount: amountPaid - sum }
}

function sumOf(transfers: readonly Transfer[]): number {
  return transfers.reduce((sum, { amount }) => sum + amount, 0)
}
