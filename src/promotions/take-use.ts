import type { Tx } from '#commands/transaction.ts'
import type { AppTime } from '#shared/time.ts'
import { countReservedUse, findPromotion, insertUse, takeOverUse, type Promotion, type PromotionUse } from './store.ts'

/** A use by a checkout: reserved until it is paid, or used at once by a free trial, which has no transaction. */
export type NewUse = Pick<PromotionUse, 'endUserId' | 'transactionId' | 'status' | 'reservedUntil' | 'createdAt'>

/**
 * Takes a use for a checkout. The end user's reservation for an older checkout passes to this one (R354). Returns false if the end user
 * has used a promotion that each may use once. A step, under the end user's lock, after `findUsable`.
 */
export async function takeUse(
  tx: Tx,
  { id: promotionId, appId, oncePerUser }: Promotion,
  { createdAt, endUserId, ...use }: NewUse,
): Promise<boolean> {
  if (await takeOverUse(tx, { promotionId, endUserId }, use)) return true
  return insertUse(tx, { appId, promotionId, endUserId, createdAt, ...use, onceFor: oncePerUser ? endUserId : null })
}

/** A payment that gets a promotion's discount. */
export interface DiscountedPayment {
  readonly id: number
  readonly appId: number
  readonly endUserId: number
  readonly promotionCode: string
  readonly isByRenewalLink: boolean
}

/**
 * Counts the use by a completed payment, unless it is a renewal (R356). A payment whose reservation has passed to a newer checkout counts,
 * too, even beyond the limits. A step, under the end user's lock.
 */
export async function countUse(tx: Tx, payment: DiscountedPayment, now: AppTime): Promise<void> {
  const { id: transactionId, appId, endUserId, promotionCode, isByRenewalLink } = payment
  if (isByRenewalLink || (await countReservedUse(tx, transactionId))) return
  const promotion = await findPromotion(tx, appId, promotionCode)
  if (!promotion) throw new Error(`transaction ${transactionId} names promotion ${promotionCode}, which does not exist`)
  const row = { appId, promotionId: promotion.id, endUserId, transactionId, reservedUntil: now, createdAt: now }
  await insertUse(tx, { ...row, onceFor: null, status: 'used' })
}
