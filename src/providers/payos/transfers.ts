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

/** The reference of the money of a link that PayOS lists no transfer for. */
export const WHOLE = 'whole'

/** The transfers that PayOS confirms: those that it lists, and the `reported` one if the received sum includes it. */
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
  return transfers
}

/** What a paid link that lists no transfer has received, in dong; null for any other link. */
export function unlistedOf({ status, amount, amountPaid = 0, transactions }: PaidLink): number | null {
  const isListed = (transactions ?? []).some((transfer) => transfer.amount > 0)
  return status === 'PAID' && amountPaid >= amount && !isListed ? amountPaid : null
}
