import { SAME_APP, namesNone, type Rule, type TableRules } from '#ledger/rules.ts'

/** The promotion that a row names, with what else must hold of it. */
function namesPromotion(also: string): string {
  return `EXISTS (SELECT 1 FROM promotions o WHERE o.app_id = x.app_id AND o.code = x.promotion_code AND ${also})`
}

const PRICE = 'CASE x.is_trial WHEN 1 THEN p.trial_amount ELSE p.amount END'
const REGULAR = '(x.amount + x.discount_amount)'
/** As `reductionOf` computes it. */
const GIVEN = `CASE WHEN o.percent IS NULL THEN LEAST(o.amount, ${REGULAR}) ELSE ${REGULAR} * o.percent DIV 100 END`

/** Of transactions. */
export const DISCOUNT_RULES: readonly Rule[] = [
  {
    fault: 'has a discount that no promotion of its app gives',
    broken: `CASE WHEN x.promotion_code IS NULL THEN x.discount_amount <> 0
      ELSE NOT ${namesPromotion(`x.discount_amount = ${GIVEN} AND COALESCE(o.currency, x.currency) = x.currency`)} END`,
  },
  {
    fault: 'asks for another amount than its price less its discount',
    broken: `x.promotion_code IS NOT NULL AND NOT EXISTS (SELECT 1 FROM prices p WHERE p.id = x.price_id AND ${PRICE} = ${REGULAR})`,
  },
  {
    fault: 'is a completed payment whose use of its promotion is not counted',
    broken: `x.promotion_code IS NOT NULL AND x.is_renewal = 0 AND x.completed_at IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM promotion_uses u WHERE u.transaction_id = x.id AND u.status = 'used')`,
  },
  {
    fault: 'is a renewal with the discount of a promotion that is not for every period',
    broken: `x.promotion_code IS NOT NULL AND x.is_renewal = 1 AND NOT ${namesPromotion('o.every_period = 1')}`,
  },
]

/** Of subscriptions. */
export const LASTING_DISCOUNT_RULES: readonly Rule[] = [
  {
    fault: 'has a lasting discount of no promotion for every period that its end user has used',
    broken: `x.promotion_code IS NOT NULL AND NOT ${namesPromotion(`o.every_period = 1 AND EXISTS (
      SELECT 1 FROM promotion_uses u WHERE u.promotion_id = o.id AND u.end_user_id = x.end_user_id AND u.status = 'used')`)}`,
  },
]

const useRules: TableRules = {
  subject: 'use of a promotion',
  table: 'promotion_uses',
  rules: [
    {
      fault: 'names a promotion or an end user that does not exist or is of another app',
      broken: `(${namesNone('promotion_id', 'promotions', SAME_APP)}) OR (${namesNone('end_user_id', 'end_users', SAME_APP)})`,
    },
    {
      fault: 'is of another end user than the one that may use the promotion once',
      broken: 'x.once_for <> x.end_user_id',
    },
    {
      fault: 'names a payment that does not exist, or is not of its end user and promotion',
      broken: namesNone(
        'transaction_id',
        'transactions',
        `${SAME_APP} AND o.end_user_id = x.end_user_id AND o.promotion_code = (SELECT p.code FROM promotions p WHERE p.id = x.promotion_id)`,
      ),
    },
    {
      fault: 'is counted before its payment is completed, or is reserved after it',
      broken: `EXISTS (SELECT 1 FROM transactions t WHERE t.id = x.transaction_id
        AND (x.status = 'used') <> (t.completed_at IS NOT NULL))`,
    },
  ],
}

/** Who has used a promotion, and who has reserved a use. */
export const PROMOTION_RULES: readonly TableRules[] = [useRules]
