import type { App } from '#apps/store.ts'
import type { Tx } from '#commands/transaction.ts'
import { AppError } from '#shared/errors.ts'
import type { AppTime } from '#shared/time.ts'
import { fitsCurrency } from './discount.ts'
import { countTaken, findPromotion, hasUsed, lockPromotion, type Promotion } from './store.ts'

/** The checkout for which a caller or a payer names a promotion. */
export interface PromotionRequest {
  readonly app: Pick<App, 'id'>
  readonly endUserId: number
  /** The code of the plan that is bought. */
  readonly planCode: string
  readonly currency: string
  /** The app's own time. */
  readonly now: AppTime
}

/** Why a promotion cannot be used. */
export type Unusable = 'unknown' | 'archived' | 'over' | 'plan' | 'currency' | 'end_user' | 'used_up'

/** The promotion, or why it cannot be used. */
export type FoundPromotion =
  { readonly kind: 'usable'; readonly promotion: Promotion } | { readonly kind: 'refused'; readonly reason: Unusable }

const SHAPE = /^[A-Za-z0-9_-]{3,40}$/

/**
 * The promotion that a caller or a payer names, in upper or lower case, if this checkout may use it; otherwise why not (R353). Where its
 * uses are limited, it is locked until the transaction ends. A step, under the end user's lock.
 */
export async function findUsable(tx: Tx, code: string, request: PromotionRequest): Promise<FoundPromotion> {
  const promotion = SHAPE.test(code) ? await readForUse(tx, request.app.id, code.toUpperCase()) : null
  if (!promotion) return refused('unknown')
  const mismatch = mismatchOf(promotion, request)
  if (mismatch) return refused(mismatch)
  const { endUserId, now } = request
  if (promotion.oncePerUser && (await hasUsed(tx, promotion.id, endUserId))) return refused('end_user')
  if (promotion.maxUses !== null && (await countTaken(tx, promotion.id, endUserId, now)) >= promotion.maxUses)
    return refused('used_up')
  return { kind: 'usable', promotion }
}

function refused(reason: Unusable): FoundPromotion {
  return { kind: 'refused', reason }
}

/** Of two checkouts that ask for the last use, the second waits for the first here, and then counts its use. */
async function readForUse(tx: Tx, appId: number, code: string): Promise<Promotion | null> {
  const found = await findPromotion(tx, appId, code)
  if (!found || found.maxUses === null) return found
  await lockPromotion(tx, found.id)
  return findPromotion(tx, appId, code)
}

function mismatchOf(promotion: Promotion, { planCode, currency, now }: PromotionRequest): Unusable | null {
  if (promotion.status === 'archived') return 'archived'
  if (promotion.validUntil !== null && now >= promotion.validUntil) return 'over'
  if (promotion.planCodes !== null && !promotion.planCodes.includes(planCode)) return 'plan'
  if (!fitsCurrency(promotion, currency)) return 'currency'
  return null
}

const REASONS: Readonly<Record<Unusable, (request: PromotionRequest) => string>> = {
  unknown: () => 'the app has no promotion with this code',
  archived: () => 'this promotion is archived',
  over: () => 'this promotion is over',
  used_up: () => 'this promotion is used up',
  plan: ({ planCode }) => `this promotion is not for the plan "${planCode}"`,
  currency: ({ currency }) => `this promotion is not for prices in ${currency}`,
  end_user: () => 'this end user has used this promotion already',
}

/** 400 `promotion_not_valid`. Clients of end users read the same message whatever the reason is, so that they cannot look for codes. */
export function notUsable(reason: Unusable, request: PromotionRequest, isClient: boolean): AppError {
  const why = isClient ? 'this promotion cannot be used for this checkout' : REASONS[reason](request)
  return new AppError('promotion_not_valid', `promotion_code: ${why}`, { field: 'promotion_code' })
}
