import { FAR, FAR_FOR_APP, OF_ITS_PLAN, SAME_APP, SAME_END_USER, namesNone, type TableRules } from '#ledger/rules.ts'
import { DISCOUNT_RULES } from '#ledger/promotions/store.ts'

/** An operator took the money that was left, or the flag, off the transaction. */
const DECIDED = `(x.resolution IS NOT NULL OR EXISTS (SELECT 1 FROM transaction_changes c
  WHERE c.transaction_id = x.id AND c.kind = 'unflagged' AND c.actor IS NOT NULL))`
/** An operator accepted what was received as the full payment. */
const ACCEPTED = `(x.resolution <=> 'completed' OR EXISTS (SELECT 1 FROM transaction_changes c
  WHERE c.transaction_id = x.id AND c.kind = 'completed' AND c.actor IS NOT NULL))`
const APPLIED = 'EXISTS (SELECT 1 FROM payment_applications l WHERE l.transaction_id = x.id)'
/** How much of a transaction's money was refunded permanently. */
const GIVEN_BACK = `(SELECT COALESCE(SUM(-b.amount), 0) FROM allocations b
  WHERE b.transaction_id = x.id AND b.cause IN ('refund', 'refund_failed'))`

const transactionRules: TableRules = {
  subject: 'transaction',
  table: 'transactions',
  rules: [
    {
      fault: 'is completed but has neither an effect nor a flag',
      broken: `x.status = 'completed' AND x.mode = 'subscription' AND x.flag_reason IS NULL AND x.resolution IS NULL AND NOT ${APPLIED}`,
    },
    {
      fault: 'is not completed but has an effect',
      broken: `x.status NOT IN ('completed', 'refunded') AND ${APPLIED}`,
    },
    {
      fault: 'is a completed one-time payment without exactly one transaction.completed event',
      broken: `x.status = 'completed' AND x.mode = 'payment' AND 1 <> (SELECT COUNT(*) FROM events e
        WHERE e.transaction_id = x.id AND e.event_type = 'transaction.completed')`,
    },
    {
      fault: 'received a different amount than was booked for it',
      broken: `x.amount_received <> (SELECT COALESCE(SUM(b.amount), 0) FROM allocations b
        WHERE b.transaction_id = x.id AND b.refund_id IS NULL)`,
    },
    {
      fault: 'has a refunded amount that differs from the sum of its refunds',
      broken: `x.amount_refunded <> (SELECT COALESCE(SUM(-b.amount), 0) FROM allocations b
        WHERE b.transaction_id = x.id AND b.refund_id IS NOT NULL)`,
    },
    {
      fault: 'used, kept or refunded more than it received',
      broken: `x.amount_used < 0 OR x.amount_left < 0 OR x.amount_refunded < 0
        OR x.amount_received - x.amount_refunded - x.amount_used - x.amount_left < 0`,
    },
    { fault: 'used more than its amount', broken: 'x.amount_used > x.amount' },
    {
      fault: 'was completed for less than its amount, and nobody decided that',
      broken: `x.status = 'completed' AND (x.mode = 'payment' OR ${APPLIED})
        AND x.amount_used + ${GIVEN_BACK} < x.amount AND NOT ${ACCEPTED}`,
    },
    {
      fault: 'keeps money that is neither used nor left, and nobody decided that',
      broken: `x.amount_received - x.amount_refunded - x.amount_used - x.amount_left > 0 AND NOT ${DECIDED}`,
    },
    { fault: 'is flagged but has no money left', broken: 'x.flag_reason IS NOT NULL AND x.amount_left = 0' },
    {
      fault: 'has money left but is neither flagged nor completed',
      broken: `x.flag_reason IS NULL AND x.amount_left > 0 AND x.status <> 'completed'`,
    },
    {
      fault: 'has another flag than its history',
      broken: `NOT (x.flag_reason <=> (SELECT CASE c.kind WHEN 'flagged' THEN c.flag_reason END FROM transaction_changes c
        WHERE c.transaction_id = x.id AND c.kind IN ('flagged', 'unflagged') ORDER BY c.id DESC LIMIT 1))`,
    },
    {
      fault: 'is pending although its full amount was received',
      broken: `x.status = 'pending' AND x.amount_received - x.amount_refunded >= x.amount AND x.amount_left > 0`,
    },
    {
      fault: 'is refunded but nothing was given back, or some of it still counts as used',
      broken: `x.status = 'refunded' AND (x.amount_used <> 0 OR NOT EXISTS (SELECT 1 FROM allocations b
        WHERE b.transaction_id = x.id AND b.cause = 'refund'))`,
    },
    {
      fault: 'is void but has money or a flag',
      broken: `x.status = 'void' AND (x.amount_received <> 0 OR x.flag_reason IS NOT NULL)`,
    },
    {
      fault: 'is completed without a time or a method, or is pending with a time',
      broken: `(x.status = 'completed' AND (x.completed_at IS NULL OR x.provider_code IS NULL))
        OR (x.status = 'pending' AND x.completed_at IS NOT NULL)`,
    },
    { fault: 'was completed in the future', broken: `x.completed_at > ${FAR_FOR_APP}` },
    {
      fault: 'has no checkout',
      broken: 'NOT EXISTS (SELECT 1 FROM checkout_sessions o WHERE o.transaction_id = x.id)',
    },
    {
      fault: 'names an end user that does not exist or is another',
      broken: namesNone('end_user_id', 'end_users', SAME_END_USER),
    },
    {
      fault: 'names a price that does not exist or is not of its plan and app',
      broken: `${namesNone('price_id', 'prices', OF_ITS_PLAN)} OR (x.mode = 'subscription' AND x.price_id IS NULL)`,
    },
    {
      fault: 'asks for more than its price, or for another currency',
      broken: `EXISTS (SELECT 1 FROM prices p WHERE p.id = x.price_id
        AND (p.currency <> x.currency OR x.amount > CASE x.is_trial WHEN 1 THEN p.trial_amount ELSE p.amount END))`,
    },
    {
      fault: 'names a customer that does not exist or is not of its app',
      broken: namesNone('customer_id', 'customers', SAME_APP),
    },
    ...DISCOUNT_RULES,
  ],
}

const paymentRules: TableRules = {
  subject: 'payment',
  table: 'payments',
  rules: [
    {
      fault: 'has a different amount left than was neither booked nor refunded',
      broken: `NOT (x.amount_left <=> x.amount
        - (SELECT COALESCE(SUM(b.amount), 0) FROM allocations b WHERE b.payment_id = x.id)
        - (SELECT COALESCE(SUM(r.amount), 0) FROM refunds r WHERE r.payment_id = x.id AND r.status <> 'failed'))`,
    },
    {
      fault: 'was booked or refunded for more than its amount',
      broken: `x.amount_left < 0
        OR (x.amount IS NULL AND EXISTS (SELECT 1 FROM allocations b WHERE b.payment_id = x.id))`,
    },
    {
      fault: 'has a negative total for a transaction',
      broken: `EXISTS (SELECT 1 FROM allocations n WHERE n.payment_id = x.id AND n.amount < 0
        AND 0 > (SELECT SUM(b.amount) FROM allocations b WHERE b.payment_id = n.payment_id AND b.transaction_id = n.transaction_id))`,
    },
    { fault: 'has an amount that is not positive', broken: 'x.amount <= 0' },
    {
      fault: 'is in another currency than a transaction that it was booked for',
      broken: `EXISTS (SELECT 1 FROM allocations b JOIN transactions t ON t.id = b.transaction_id
        WHERE b.payment_id = x.id AND t.currency <> x.currency)`,
    },
    {
      // Money that is moved in parts may have been booked for several; it is the last one's.
      fault: 'is of another app or end user than the transaction that it was booked for last',
      broken: `EXISTS (SELECT 1 FROM transactions t WHERE NOT (t.app_id <=> x.app_id AND t.end_user_id <=> x.end_user_id)
        AND t.id = (SELECT b.transaction_id FROM allocations b
          WHERE b.payment_id = x.id AND b.cause IN ('booked', 'matched', 'moved') AND b.amount > 0 ORDER BY b.id DESC LIMIT 1))`,
    },
    {
      fault: 'names an end user that does not exist or is not of its app',
      broken: namesNone('end_user_id', 'end_users', SAME_APP),
    },
    {
      fault: 'names credentials that its app does not have',
      broken: namesNone('provider_account_id', 'provider_accounts', SAME_APP),
    },
    { fault: 'was received in the future', broken: `x.received_at > ${FAR}` },
  ],
}

const allocationRules: TableRules = {
  subject: 'allocation',
  table: 'allocations',
  rules: [
    { fault: 'names a payment that does not exist', broken: namesNone('payment_id', 'payments') },
    {
      fault: 'names a transaction that does not exist or is of another app',
      broken: namesNone('transaction_id', 'transactions', SAME_APP),
    },
    {
      fault: 'names a refund that does not exist or is of another payment',
      broken: namesNone('refund_id', 'refunds', 'o.payment_id = x.payment_id'),
    },
    {
      fault: 'has an amount or a refund that its cause does not allow',
      broken: `CASE x.cause
        WHEN 'booked' THEN x.amount <= 0 OR x.refund_id IS NOT NULL
        WHEN 'matched' THEN x.amount <= 0 OR x.refund_id IS NOT NULL
        WHEN 'moved' THEN x.amount = 0 OR x.refund_id IS NOT NULL
        WHEN 'refund' THEN x.amount >= 0 OR x.refund_id IS NULL
        WHEN 'refund_failed' THEN x.amount = 0 OR (x.amount > 0) <> (x.refund_id IS NOT NULL)
        ELSE TRUE END`,
    },
  ],
}

const refundRules: TableRules = {
  subject: 'refund',
  table: 'refunds',
  rules: [
    { fault: 'names a payment that does not exist', broken: namesNone('payment_id', 'payments') },
    { fault: 'has an amount that is not positive', broken: 'x.amount <= 0' },
    {
      fault: 'took more of transactions than its amount',
      broken: `x.amount < (SELECT COALESCE(SUM(-b.amount), 0) FROM allocations b WHERE b.refund_id = x.id AND b.cause = 'refund')`,
    },
    {
      fault: 'failed without returning its money to the transaction, or returned it without having failed',
      broken: `CASE x.status
        WHEN 'failed' THEN (SELECT COALESCE(SUM(b.amount), 0) FROM allocations b WHERE b.refund_id = x.id) <> 0
        ELSE EXISTS (SELECT 1 FROM allocations b WHERE b.refund_id = x.id AND b.cause = 'refund_failed') END`,
    },
    {
      fault: 'has ended without a time, or is pending with one',
      broken: `(x.status = 'pending') <> (x.ended_at IS NULL)`,
    },
    { fault: 'is pending but never looked up', broken: `x.status = 'pending' AND x.next_lookup_at IS NULL` },
    { fault: 'is looked up in the distant future', broken: `x.status = 'pending' AND x.next_lookup_at > ${FAR}` },
  ],
}

const changeRules: TableRules = {
  subject: 'transaction change',
  table: 'transaction_changes',
  rules: [
    {
      fault: 'names a transaction that does not exist or is of another app',
      broken: namesNone('transaction_id', 'transactions', SAME_APP),
    },
  ],
}

/** The length of `movement `, with which the event of a bank's movement begins; the payment's reference follows. */
const MOVEMENT = 'movement '.length

const providerEventRules: TableRules = {
  subject: 'provider event',
  table: 'provider_events',
  rules: [
    {
      fault: 'names a transaction that does not exist or is of another app',
      // Earlier versions recorded no app.
      broken: `x.outcome = 'applied' AND ${namesNone('transaction_id', 'transactions', 'o.app_id = COALESCE(x.app_id, o.app_id)')}`,
    },
    {
      // The movement of a bank that was booked elsewhere meanwhile is known by its reference; the mail's own id is kept beside it.
      fault: 'was applied but no money of its provider was booked for its transaction',
      broken: `x.outcome = 'applied' AND x.event_type <> 'bank_mail.message'
        AND NOT EXISTS (SELECT 1 FROM allocations b JOIN payments p ON p.id = b.payment_id
          WHERE b.transaction_id = x.transaction_id AND p.provider = x.provider)
        AND NOT EXISTS (SELECT 1 FROM payments p
          WHERE p.provider = x.provider AND p.reference = SUBSTRING(x.event_id, ${MOVEMENT + 1}) AND x.event_type = 'bank_mail.credit')`,
    },
  ],
}

const PAYABLE = `x.status IN ('opening', 'open', 'processing')`

const providerSessionRules: TableRules = {
  subject: 'provider session',
  table: 'provider_sessions',
  rules: [
    {
      fault: 'names a transaction that does not exist, or is of another app or currency',
      broken: namesNone('transaction_id', 'transactions', `${SAME_APP} AND o.currency = x.currency`),
    },
    {
      fault: 'names credentials that its app does not have',
      broken: namesNone('provider_account_id', 'provider_accounts', SAME_APP),
    },
    {
      fault: 'is paid but no money of its provider was booked for its transaction',
      broken: `x.status = 'paid' AND NOT EXISTS (SELECT 1 FROM allocations b JOIN payments p ON p.id = b.payment_id
        WHERE b.transaction_id = x.transaction_id AND p.provider = x.provider)`,
    },
    { fault: 'may be paid but is never looked up', broken: `${PAYABLE} AND x.next_lookup_at IS NULL` },
    { fault: 'is looked up in the distant future', broken: `${PAYABLE} AND x.next_lookup_at > ${FAR}` },
  ],
}

const providerPauseRules: TableRules = {
  subject: 'provider pause',
  table: 'provider_pauses',
  rules: [{ fault: 'lasts into the distant future', broken: `x.paused_until > ${FAR}` }],
}

const bankMailRules: TableRules = {
  subject: 'bank mail',
  table: 'bank_mails',
  rules: [
    { fault: 'names a payment that does not exist', broken: namesNone('payment_id', 'payments') },
    { fault: 'names a transaction that does not exist', broken: namesNone('transaction_id', 'transactions') },
    {
      fault: 'was processed but names no payment',
      broken: `x.status IN ('processed', 'underpaid') AND x.payment_id IS NULL`,
    },
    {
      fault: 'reports another amount than its payment has',
      broken: `x.status IN ('processed', 'underpaid', 'already_completed')
        AND EXISTS (SELECT 1 FROM payments p WHERE p.id = x.payment_id AND p.amount <> x.amount)`,
    },
  ],
}

/** What came, what it was booked for, what went back, and who reported it. */
export const MONEY_RULES: readonly TableRules[] = [
  transactionRules,
  paymentRules,
  allocationRules,
  refundRules,
  changeRules,
  providerEventRules,
  providerSessionRules,
  providerPauseRules,
  bankMailRules,
]
