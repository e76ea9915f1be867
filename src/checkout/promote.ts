import type { App } from '#apps/store.ts'
import type { CommandTx } from '#commands/command.ts'
import type { OfferedPrice } from '#plans/store.ts'
import { findUsable, notUsable, type PromotionRequest } from '#promotions/find-usable.ts'
import type { Promotion } from '#promotions/store.ts'
import { takeUse, type NewUse } from '#promotions/take-use.ts'
import type { AppTime } from '#shared/time.ts'
import { completeTransaction } from '#transactions/complete-transaction.ts'
import { getTransactionRows } from '#transactions/store.ts'

/** `provider_code` of a payment that a promotion covers completely. */
export const PROMOTION_CODE = 'promotion'

interface Promoted {
  readonly app: App
  readonly found: OfferedPrice
  readonly endUserId: number
  /** Whether a client of the end user asks, and not the seller's server. */
  readonly isClient: boolean
  /** The app's own time. */
  readonly now: AppTime
}

/** A promotion that a checkout may use, and how it does. */
export interface UsablePromotion {
  readonly promotion: Promotion
  /** Reserves or counts its use. Throws `promotion_not_valid` if the end user has used it meanwhile. */
  take(use: Pick<NewUse, 'transactionId' | 'status' | 'reservedUntil'>): Promise<void>
}

/** The promotion that a checkout names; null if it names none. A step, under the end user's lock. Throws `promotion_not_valid`. */
export async function findPromotionFor(
  tx: CommandTx,
  code: string | undefined,
  { app, found, endUserId, isClient, now }: Promoted,
): Promise<UsablePromotion | null> {
  if (code === undefined) return null
  const request: PromotionRequest = { app, endUserId, planCode: found.plan.code, currency: found.price.currency, now }
  const usable = await findUsable(tx, code, request)
  if (usable.kind === 'refused') throw notUsable(usable.reason, request, isClient)
  const { promotion } = usable
  return {
    promotion,
    async take(use) {
      const isTaken = await takeUse(tx, promotion, { ...use, endUserId, createdAt: now })
      if (!isTaken) throw notUsable('end_user', request, isClient)
    },
  }
}

/** Completes a transaction whose promotion covers the whole amount (R355). A step, under the end user's lock. */
export async function completeUnpaid(tx: CommandTx, transactionId: number): Promise<void> {
  await completeTransaction(tx, await getTransactionRows(tx, transactionId), {
    providerCode: PROMOTION_CODE,
    paidAt: tx.now,
  })
}
