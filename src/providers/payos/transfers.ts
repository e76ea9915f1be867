import { z } from 'zod'

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

/** The reference of all money of a link, if PayOS lists no transfer. */
export const WHOLE = 'whole'

/**
 * The transfers that PayOS confirms: those that it lists, and the `reported` one if the received sum includes it. If the link is paid and
 * nothing is listed, the whole sum.
 */
export function transfersOf(link: PaidLink, reported: Transfer | null): Transfer[] {
  const transfers = (link.transactions ?? []).filter(({ amount }) => amount > 0)
  const received = link.amountPaid ?? 0
  const unlisted = received - transfers.reduce((sum, { amount }) => sum + amount, 0)
  if (
    reported &&
    reported.amount > 0 &&
    reported.amount <= unlisted &&
    !transfers.some((one) => one.reference === reported.reference)
  ) {
    transfers.push(reported)
  }
  if (transfers.length === 0 && link.status === 'PAID' && received >= link.amount) {
    transfers.push({ reference: WHOLE, amount: received })
  }
  return transfers
}
