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

/**
 * The reference of unlisted money: money that PayOS counts for a link and lists under no transfer. More of it, which arrived later, has the
 * reference `whole+` and the sum that was booked before.
 */
export const WHOLE = 'whole'

/** The bank's own reference, which payers quote; null for unlisted money. */
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
  /** Whether some of it was booked as unlisted money. PayOS does not say to which transfer that belongs. */
  readonly hasUnlisted: boolean
}

/**
 * The transfers of the link to book. If PayOS counts a link as paid and lists no transfer, all that is not booked yet is unlisted money.
 * Once a link has some, its transfers are not booked any more, but what has arrived since is, as more unlisted money.
 */
export function transfersToBook(
  link: PaidLink,
  transfers: readonly Transfer[],
  { sum, hasUnlisted }: Booked,
): readonly Transfer[] {
  const { amountPaid = 0 } = link
  if (hasUnlisted) return unlistedMoney(`${WHOLE}+${sum}`, Math.max(amountPaid, sumOf(transfers)) - sum)
  if (transfers.length > 0) return transfers
  return isPaidInFull(link) ? unlistedMoney(WHOLE, amountPaid - sum) : []
}

/**
 * Whether the link is paid, and its sum includes more than these transfers. A fully paid link is not polled again, so money that PayOS does
 * not list yet must be booked now.
 */
export function countsUnlisted(link: PaidLink, transfers: readonly Transfer[]): boolean {
  return isPaidInFull(link) && (link.amountPaid ?? 0) > sumOf(transfers)
}

/** The unlisted money of such a link, once its transfers are booked. None if some is booked already. */
export function unlistedRest({ amountPaid = 0 }: PaidLink, { sum, hasUnlisted }: Booked): readonly Transfer[] {
  return hasUnlisted ? [] : unlistedMoney(WHOLE, amountPaid - sum)
}

function unlistedMoney(reference: string, amount: number): Transfer[] {
  return amount > 0 ? [{ reference, amount }] : []
}

function isPaidInFull({ status, amount, amountPaid = 0 }: PaidLink): boolean {
  return status === 'PAID' && amountPaid >= amount
}

function sumOf(transfers: readonly Transfer[]): number {
  return transfers.reduce((sum, { amount }) => sum + amount, 0)
}
