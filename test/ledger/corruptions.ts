import type { History } from './history.ts'

/** A change that no command makes, and every fault that `ledger verify` must find after it. */
export interface Corruption {
  readonly title: string
  readonly sql: (history: History) => readonly string[]
  /** The rows' kinds and what is wrong with them, without ids, in any order. */
  readonly finds: readonly string[]
}

const DISTANT = `'2999-01-01 00:00:00'`
const subscriptionOf = (ref: string): string => `(SELECT id FROM subscriptions s WHERE s.external_ref = '${ref}')`
const endUserOf = (ref: string): string => `(SELECT id FROM end_users u WHERE u.external_ref = '${ref}')`
const paymentOf = (transaction: number): string =>
  `(SELECT MIN(b.payment_id) FROM allocations b WHERE b.transaction_id = ${transaction})`
const refundOf = (transaction: number): string =>
  `(SELECT MIN(b.refund_id) FROM allocations b WHERE b.transaction_id = ${transaction} AND b.cause = 'refund')`
const setTransaction = (id: number, set: string): string => `UPDATE transactions SET ${set} WHERE id = ${id}`

const NO_PAYMENT = 'names a payment that does not exist'
const NO_TRANSACTION = 'names a transaction that does not exist or is of another app'
const NO_SUBSCRIPTION = 'names a subscription that does not exist or is of another app'
const OTHER_LEFT = 'payment has a different amount left than was neither booked nor refunded'
const OTHER_RECEIVED = 'transaction received a different amount than was booked for it'
const NOT_SPENT = 'transaction keeps money that is neither used nor left, and nobody decided that'
const TOO_LITTLE = 'transaction was completed for less than its amount, and nobody decided that'
const OTHER_FLAG = 'transaction has another flag than its history'
const NOT_BOOKED = 'provider event was applied but no money of its provider was booked for its transaction'

const NO_DISCOUNT = 'transaction has a discount that no promotion of its app gives'
const OTHER_REST = 'transaction asks for another amount than its price less its discount'
const NOT_COUNTED = 'transaction is a completed payment whose use of its promotion is not counted'
const NO_PROMOTION = 'use of a promotion names a promotion or an end user that does not exist or is of another app'
const OTHER_PAYMENT = 'use of a promotion names a payment that does not exist, or is not of its end user and promotion'
const TOO_SOON = 'use of a promotion is counted before its payment is completed, or is reserved after it'
const LASTING = 'subscription has a lasting discount of no promotion for every period that its end user has used'

export const CORRUPTIONS: readonly Corruption[] = [
  // Payments
  {
    title: 'a payment is deleted',
    sql: ({ transactions }) => [`DELETE FROM payments WHERE id = ${paymentOf(transactions.monthly)}`],
    finds: [`allocation ${NO_PAYMENT}`],
  },
  {
    title: 'a payment is deleted with its allocation',
    sql: ({ transactions }) => [
      `DELETE FROM payments WHERE id = ${paymentOf(transactions.monthly)}`,
      `DELETE FROM allocations WHERE transaction_id = ${transactions.monthly}`,
    ],
    finds: [OTHER_RECEIVED],
  },
  {
    title: 'a payment is deleted with its allocation and the sums of its transaction',
    sql: ({ transactions }) => [
      `DELETE FROM payments WHERE id = ${paymentOf(transactions.monthly)}`,
      `DELETE FROM allocations WHERE transaction_id = ${transactions.monthly}`,
      setTransaction(transactions.monthly, 'amount_received = 0, amount_used = 0'),
    ],
    finds: [TOO_LITTLE],
  },
  {
    title: 'the money of a card payment vanishes without a trace but the provider’s event',
    sql: ({ transactions }) => [
      `DELETE FROM payments WHERE id = ${paymentOf(transactions.cardFailed)}`,
      `DELETE FROM allocations WHERE transaction_id = ${transactions.cardFailed}`,
      `DELETE FROM refunds WHERE actor = 'mai' AND status = 'failed'`,
      setTransaction(transactions.cardFailed, 'amount_received = 0, amount_used = 0'),
    ],
    finds: [
      TOO_LITTLE,
      NOT_BOOKED,
      'provider session is paid but no money of its provider was booked for its transaction',
    ],
  },
  {
    title: 'a payment is less than was booked of it',
    sql: ({ transactions }) => [
      `UPDATE payments SET amount = amount - 1 WHERE id = ${paymentOf(transactions.monthly)}`,
    ],
    finds: [OTHER_LEFT],
  },
  {
    title: 'a payment has a negative amount, and nothing adds up any more',
    sql: ({ transactions }) => [`UPDATE payments SET amount = -1 WHERE id = ${paymentOf(transactions.monthly)}`],
    finds: [OTHER_LEFT, 'payment has an amount that is not positive'],
  },
  {
    title: 'money that waits is erased from its payment',
    sql: () => ['UPDATE payments SET amount_left = 0 WHERE closed_at IS NULL AND amount_left = 99000'],
    finds: [OTHER_LEFT],
  },
  {
    title: 'a payment is in another currency than its transaction',
    sql: ({ transactions }) => [`UPDATE payments SET currency = 'USD' WHERE id = ${paymentOf(transactions.monthly)}`],
    finds: ['payment is in another currency than a transaction that it was booked for'],
  },
  {
    title: 'a payment is of another app than its transaction',
    sql: ({ transactions, other }) => [
      `UPDATE payments SET app_id = ${other} WHERE id = ${paymentOf(transactions.monthly)}`,
    ],
    finds: [
      'payment is of another app or end user than the transaction that it was booked for last',
      'payment names an end user that does not exist or is not of its app',
    ],
  },
  {
    title: 'a payment is of another end user than its transaction',
    sql: ({ transactions }) => [
      `UPDATE payments SET end_user_id = ${endUserOf('switcher')} WHERE id = ${paymentOf(transactions.monthly)}`,
    ],
    finds: ['payment is of another app or end user than the transaction that it was booked for last'],
  },
  {
    title: 'a card payment names credentials of another app',
    sql: ({ transactions }) => [
      `UPDATE payments SET provider_account_id = 999999 WHERE id = ${paymentOf(transactions.card)}`,
    ],
    finds: ['payment names credentials that its app does not have'],
  },
  {
    title: 'a payment comes from the future',
    sql: ({ transactions }) => [
      `UPDATE payments SET received_at = ${DISTANT} WHERE id = ${paymentOf(transactions.monthly)}`,
    ],
    finds: ['payment was received in the future'],
  },
  // Allocations and refunds
  {
    title: 'an allocation is deleted',
    sql: ({ transactions }) => [`DELETE FROM allocations WHERE transaction_id = ${transactions.monthly}`],
    finds: [OTHER_RECEIVED, OTHER_LEFT],
  },
  {
    title: 'an allocation is booked twice',
    sql: ({ transactions }) => [
      `INSERT INTO allocations (app_id, payment_id, transaction_id, amount, cause, at)
       SELECT app_id, payment_id, transaction_id, amount, cause, at FROM allocations WHERE transaction_id = ${transactions.monthly}`,
    ],
    finds: [OTHER_RECEIVED, OTHER_LEFT],
  },
  {
    title: 'an allocation is of another app than its transaction',
    sql: ({ transactions, other }) => [
      `UPDATE allocations SET app_id = ${other} WHERE transaction_id = ${transactions.monthly}`,
    ],
    finds: [`allocation ${NO_TRANSACTION}`],
  },
  {
    title: 'an allocation is moved to another end user’s transaction',
    sql: ({ transactions }) => [
      `UPDATE allocations SET transaction_id = ${transactions.switched} WHERE transaction_id = ${transactions.monthly}`,
    ],
    finds: [OTHER_RECEIVED, 'payment is of another app or end user than the transaction that it was booked for last'],
  },
  {
    title: 'a booking is disguised as a refund',
    sql: ({ transactions }) => [
      `UPDATE allocations SET cause = 'refund' WHERE transaction_id = ${transactions.monthly}`,
    ],
    finds: ['allocation has an amount or a refund that its cause does not allow', TOO_LITTLE],
  },
  {
    title: 'a refund is deleted',
    sql: ({ transactions }) => [`DELETE FROM refunds WHERE id = ${refundOf(transactions.card)}`],
    finds: [OTHER_LEFT, 'allocation names a refund that does not exist or is of another payment'],
  },
  {
    title: 'a refund is of another payment',
    sql: ({ transactions }) => [
      `UPDATE refunds SET payment_id = ${paymentOf(transactions.book)} WHERE id = ${refundOf(transactions.card)}`,
    ],
    finds: [OTHER_LEFT, 'allocation names a refund that does not exist or is of another payment'],
  },
  {
    title: 'a refund is less than it took of its transaction',
    sql: ({ transactions }) => [`UPDATE refunds SET amount = 1 WHERE id = ${refundOf(transactions.card)}`],
    finds: [OTHER_LEFT, 'refund took more of transactions than its amount'],
  },
  {
    title: 'a refund that succeeded is said to have failed',
    sql: ({ transactions }) => [`UPDATE refunds SET status = 'failed' WHERE id = ${refundOf(transactions.card)}`],
    finds: [
      OTHER_LEFT,
      'refund failed without returning its money to the transaction, or returned it without having failed',
    ],
  },
  {
    title: 'a pending refund is said to have succeeded',
    sql: ({ transactions }) => [
      `UPDATE refunds SET status = 'succeeded' WHERE id = ${refundOf(transactions.cardPending)}`,
    ],
    finds: ['refund has ended without a time, or is pending with one'],
  },
  {
    title: 'a pending refund is never looked up',
    sql: ({ transactions }) => [
      `UPDATE refunds SET next_lookup_at = NULL WHERE id = ${refundOf(transactions.cardPending)}`,
    ],
    finds: ['refund is pending but never looked up'],
  },
  {
    title: 'a pending refund is looked up in 2999',
    sql: ({ transactions }) => [
      `UPDATE refunds SET next_lookup_at = ${DISTANT} WHERE id = ${refundOf(transactions.cardPending)}`,
    ],
    finds: ['refund is looked up in the distant future'],
  },
  {
    title: 'the refunded sum of a transaction is erased',
    sql: ({ transactions }) => [
      setTransaction(transactions.card, 'amount_refunded = 0, amount_used = amount_received'),
    ],
    finds: ['transaction has a refunded amount that differs from the sum of its refunds'],
  },
  // Transactions
  {
    title: 'a transaction is deleted with its allocations left',
    sql: ({ transactions }) => [`DELETE FROM transactions WHERE id = ${transactions.monthly}`],
    finds: [
      'subscription revision 1 is started on price N, but the rules say started on price N until 2026-04-01 10:00:00',
      `allocation ${NO_TRANSACTION}`,
      `checkout names a transaction that does not exist, or is of another app or end user`,
      `event ${NO_TRANSACTION}`,
      'ledger line names a transaction that does not exist or is no payment of a subscription',
      `receipt ${NO_TRANSACTION}`,
    ],
  },
  {
    title: 'a completed payment uses nothing',
    sql: ({ transactions }) => [setTransaction(transactions.monthly, 'amount_used = 0')],
    finds: [TOO_LITTLE, NOT_SPENT],
  },
  {
    title: 'a completed one-time payment uses nothing, as if all were left',
    sql: ({ transactions }) => [setTransaction(transactions.byMail, 'amount_left = amount_used, amount_used = 0')],
    finds: [TOO_LITTLE],
  },
  {
    title: 'a payment uses more than its amount',
    sql: ({ transactions }) => [
      setTransaction(transactions.twice, 'amount_used = 198000, amount_left = 0, flag_reason = NULL'),
    ],
    finds: ['transaction used more than its amount', OTHER_FLAG],
  },
  {
    title: 'a payment is refunded with all of its money kept',
    sql: ({ transactions }) => [setTransaction(transactions.monthly, `status = 'refunded'`)],
    finds: ['transaction is refunded but nothing was given back, or some of it still counts as used'],
  },
  {
    title: 'a payment of a subscription is void with money',
    sql: ({ transactions }) => [setTransaction(transactions.monthly, `status = 'void'`)],
    finds: ['transaction is void but has money or a flag', 'transaction is not completed but has an effect'],
  },
  {
    title: 'an underpaid payment is void',
    sql: ({ transactions }) => [setTransaction(transactions.short, `status = 'void'`)],
    finds: ['transaction is void but has money or a flag'],
  },
  {
    title: 'a duplicate’s flag and the money left are erased without a resolution',
    sql: ({ transactions }) => [setTransaction(transactions.twice, 'flag_reason = NULL, amount_left = 0')],
    finds: [NOT_SPENT, OTHER_FLAG],
  },
  {
    title: 'a duplicate’s flag is erased, as if its money were a surplus',
    sql: ({ transactions }) => [setTransaction(transactions.twice, 'flag_reason = NULL')],
    finds: [OTHER_FLAG],
  },
  {
    title: 'an underpaid payment loses its flag',
    sql: ({ transactions }) => [setTransaction(transactions.short, 'flag_reason = NULL')],
    finds: ['transaction has money left but is neither flagged nor completed', OTHER_FLAG],
  },
  {
    title: 'a flag comes back without money',
    sql: ({ transactions }) => [setTransaction(transactions.dismissed, `flag_reason = 'duplicate_payment'`)],
    finds: ['transaction is flagged but has no money left', OTHER_FLAG],
  },
  {
    title: 'a completed payment is pending again',
    sql: ({ transactions }) => [setTransaction(transactions.monthly, `status = 'pending'`)],
    finds: [
      'transaction is not completed but has an effect',
      'transaction is completed without a time or a method, or is pending with a time',
    ],
  },
  {
    title: 'a pending payment is completed without money',
    sql: ({ transactions }) => [
      setTransaction(
        transactions.cardOpen,
        `status = 'completed', completed_at = created_at, provider_code = 'stripe'`,
      ),
    ],
    finds: ['transaction is a completed one-time payment without exactly one transaction.completed event', TOO_LITTLE],
  },
  {
    title: 'a payment was completed in 2999',
    sql: ({ transactions }) => [setTransaction(transactions.monthly, `completed_at = ${DISTANT}`)],
    finds: ['transaction was completed in the future'],
  },
  {
    title: 'a transaction is another end user’s',
    sql: ({ transactions }) => [setTransaction(transactions.monthly, `end_user_id = ${endUserOf('switcher')}`)],
    finds: [
      'transaction names an end user that does not exist or is another',
      'payment is of another app or end user than the transaction that it was booked for last',
      'ledger line applies a payment of another end user',
      'checkout names a transaction that does not exist, or is of another app or end user',
    ],
  },
  {
    title: 'an end user is deleted',
    sql: () => [`DELETE FROM end_users WHERE external_ref = 'reader'`],
    finds: [
      'transaction names an end user that does not exist or is another',
      'payment names an end user that does not exist or is not of its app',
      'checkout names an end user that does not exist or is not of its app',
    ],
  },
  {
    title: 'a payment costs more than its price',
    sql: ({ transactions }) => [
      setTransaction(
        transactions.switched,
        `price_id = (SELECT MIN(p.id) FROM prices p), plan_id = (SELECT MIN(p.id) FROM plans p)`,
      ),
    ],
    finds: [
      'transaction asks for more than its price, or for another currency',
      'ledger line gives an interval that its price does not have',
    ],
  },
  {
    title: 'a price is deleted',
    sql: ({ transactions }) => [
      `DELETE FROM prices WHERE id = (SELECT t.price_id FROM transactions t WHERE t.id = ${transactions.abroad})`,
    ],
    finds: [
      'transaction names a price that does not exist or is not of its plan and app',
      'subscription names a price that does not exist or is not of its plan and app',
      'ledger line gives an interval that its price does not have',
    ],
  },
  {
    title: 'a customer is deleted',
    sql: () => [
      `DELETE FROM customers WHERE id = (SELECT s.customer_id FROM subscriptions s WHERE s.external_ref = 'far')`,
    ],
    finds: [
      'transaction names a customer that does not exist or is not of its app',
      'subscription names a customer that does not exist or is not of its app',
    ],
  },
  {
    title: 'a line of a transaction’s history names no transaction',
    sql: ({ transactions }) => [
      `UPDATE transaction_changes SET transaction_id = 999999 WHERE transaction_id = ${transactions.short} AND kind = 'flagged'`,
    ],
    finds: [OTHER_FLAG, `transaction change ${NO_TRANSACTION}`],
  },
  // What providers and banks reported
  {
    title: 'a provider event is applied with nothing booked',
    sql: ({ app, transactions }) => [
      `INSERT INTO provider_events (provider, event_id, event_type, app_id, transaction_id, outcome, received_at)
       VALUES ('stripe', 'evt_lost', 'checkout.session.completed', ${app}, ${transactions.cardOpen}, 'applied', '2026-03-01 11:00:00')`,
    ],
    finds: [NOT_BOOKED],
  },
  {
    title: 'a bank’s movement is applied with nothing booked',
    sql: ({ app, transactions }) => [
      `INSERT INTO provider_events (provider, event_id, event_type, app_id, transaction_id, outcome, received_at)
       VALUES ('bank_transfer', 'movement ACB lost', 'bank_mail.credit', ${app}, ${transactions.cardOpen}, 'applied', '2026-03-01 11:00:00')`,
    ],
    finds: [NOT_BOOKED],
  },
  {
    title: 'a session is paid with nothing booked',
    sql: ({ transactions }) => [
      `UPDATE provider_sessions SET status = 'paid', next_lookup_at = NULL WHERE transaction_id = ${transactions.cardOpen}`,
    ],
    finds: ['provider session is paid but no money of its provider was booked for its transaction'],
  },
  {
    title: 'an open session is never looked up',
    sql: ({ transactions }) => [
      `UPDATE provider_sessions SET next_lookup_at = NULL WHERE transaction_id = ${transactions.cardOpen}`,
    ],
    finds: ['provider session may be paid but is never looked up'],
  },
  {
    title: 'an open session is looked up in 2999',
    sql: ({ transactions }) => [
      `UPDATE provider_sessions SET next_lookup_at = ${DISTANT} WHERE transaction_id = ${transactions.cardOpen}`,
    ],
    finds: ['provider session is looked up in the distant future'],
  },
  {
    title: 'a session is in another currency than its transaction',
    sql: ({ transactions }) => [
      `UPDATE provider_sessions SET currency = 'VND' WHERE transaction_id = ${transactions.cardOpen}`,
    ],
    finds: ['provider session names a transaction that does not exist, or is of another app or currency'],
  },
  {
    title: 'a provider’s account is paused until 2999',
    sql: ({ app }) => [
      `INSERT INTO provider_pauses (app_id, provider, provider_account_id, failures, reason, since, paused_until)
       VALUES (${app}, 'stripe', 1, 1, 'away', '2026-03-01 11:00:00', ${DISTANT})`,
    ],
    finds: ['provider pause lasts into the distant future'],
  },
  {
    title: 'a bank mail names no payment that is there',
    sql: ({ transactions }) => [
      `UPDATE bank_mails SET payment_id = 999999 WHERE transaction_id = ${transactions.byMail}`,
    ],
    finds: [`bank mail ${NO_PAYMENT}`],
  },
  {
    title: 'a processed bank mail loses its payment',
    sql: ({ transactions }) => [
      `UPDATE bank_mails SET payment_id = NULL WHERE transaction_id = ${transactions.byMail}`,
    ],
    finds: ['bank mail was processed but names no payment'],
  },
  {
    title: 'a bank mail reports another amount than was booked',
    sql: ({ transactions }) => [
      `UPDATE bank_mails SET amount = amount + 1 WHERE transaction_id = ${transactions.byMail}`,
    ],
    finds: ['bank mail reports another amount than its payment has'],
  },
  // Subscriptions and their periods
  {
    title: 'a subscription is deleted',
    sql: () => [`DELETE FROM subscriptions WHERE external_ref = 'owner'`],
    finds: [`ledger line ${NO_SUBSCRIPTION}`, 'event is about a subscription that does not exist'],
  },
  {
    title: 'a subscription is deleted with its lines',
    sql: () => [
      `DELETE FROM payment_applications WHERE subscription_id = ${subscriptionOf('owner')}`,
      `DELETE FROM subscriptions WHERE external_ref = 'owner'`,
    ],
    finds: [
      'transaction is completed but has neither an effect nor a flag',
      'event is about a subscription that does not exist',
    ],
  },
  {
    title: 'a subscription that nobody paid for is deleted with its lines',
    sql: () => [
      `DELETE FROM payment_applications WHERE subscription_id = ${subscriptionOf('imported')}`,
      `DELETE FROM subscriptions WHERE external_ref = 'imported'`,
    ],
    finds: [
      'event is about a subscription that does not exist',
      `reminder ${NO_SUBSCRIPTION}`,
      'reminder is about a period that its subscription never had',
    ],
  },
  {
    title: 'a subscription has another label than its end user',
    sql: () => [`UPDATE end_users SET external_ref = 'somebody' WHERE external_ref = 'imported'`],
    finds: ['subscription names an end user that does not exist or is another'],
  },
  {
    title: 'a period is made longer',
    sql: () => [`UPDATE subscriptions SET current_period_end = '2026-05-02 10:00:00' WHERE external_ref = 'renewer'`],
    finds: ['subscription ends 2026-05-02 10:00:00, but its ledger ends 2026-05-01 10:00:00'],
  },
  {
    title: 'a period starts at another time',
    sql: () => [`UPDATE subscriptions SET period_start = '2026-03-02 10:00:00' WHERE external_ref = 'owner'`],
    finds: ['subscription starts 2026-03-02 10:00:00, but its ledger starts 2026-03-01 10:00:00'],
  },
  {
    title: 'a lifetime subscription is stored as expired',
    sql: () => [`UPDATE subscriptions SET status = 'expired' WHERE external_ref = 'owner'`],
    finds: ['subscription is stored as expired long before its end'],
  },
  {
    title: 'a subscription is stored as expired months before its end',
    sql: () => [`UPDATE subscriptions SET status = 'expired' WHERE external_ref = 'switcher'`],
    finds: ['subscription is stored as expired long before its end'],
  },
  {
    title: 'a subscription changes without a trace',
    sql: () => [`UPDATE subscriptions SET revision = revision + 1 WHERE external_ref = 'owner'`],
    finds: ['subscription does not have one subscription.updated event for each of its changes'],
  },
  {
    title: 'the interval of a price is changed',
    sql: () => [`UPDATE prices SET interval_count = 2 WHERE interval_unit = 'year'`],
    finds: ['ledger line gives an interval that its price does not have'],
  },
  {
    title: 'the grant of a trial is deleted, so that it can be had again',
    sql: () => [`DELETE FROM trial_grants WHERE end_user_id = ${endUserOf('trialist')}`],
    finds: ['ledger line starts a trial that was not granted'],
  },
  {
    title: 'a trial is granted that nobody had',
    sql: ({ app }) => [
      `INSERT INTO trial_grants (app_id, end_user_id, plan_id, granted_at)
       SELECT ${app}, ${endUserOf('owner')}, MIN(id), '2026-03-01 10:00:00' FROM plans`,
    ],
    finds: ['trial grant has no trial in the ledger'],
  },
  {
    title: 'a live app has a clock of its own',
    sql: ({ other }) => [`UPDATE apps SET is_sandbox = 0 WHERE id = ${other}`],
    finds: ['app has a clock that was moved although it is live, or that was moved back'],
  },
  // Events, mails, nodes and links
  {
    title: 'the subscription.renewed event of a renewal is missing',
    sql: ({ transactions }) => [
      `DELETE FROM events WHERE transaction_id = ${transactions.renewal} AND event_type = 'subscription.renewed'`,
    ],
    finds: ['ledger line does not have exactly the subscription.renewed event that its payment needs'],
  },
  {
    title: 'a first payment is announced as a renewal',
    sql: ({ transactions }) => [
      `UPDATE events SET transaction_id = ${transactions.lifetime} WHERE transaction_id = ${transactions.renewal} AND event_type = 'subscription.renewed'`,
    ],
    finds: ['ledger line does not have exactly the subscription.renewed event that its payment needs'],
  },
  {
    title: 'a subscription.updated event is missing',
    sql: () => [`DELETE FROM events WHERE external_ref = 'owner'`],
    finds: ['subscription does not have one subscription.updated event for each of its changes'],
  },
  {
    title: 'a transaction.completed event is missing',
    sql: ({ transactions }) => [`DELETE FROM events WHERE transaction_id = ${transactions.book}`],
    finds: ['transaction is a completed one-time payment without exactly one transaction.completed event'],
  },
  {
    title: 'a completion is announced of a payment that is pending',
    sql: ({ transactions }) => [
      `UPDATE events SET transaction_id = ${transactions.cardOpen} WHERE transaction_id = ${transactions.book}`,
    ],
    finds: [
      'event announces a completion or a renewal that is not there',
      'transaction is a completed one-time payment without exactly one transaction.completed event',
    ],
  },
  {
    title: 'a pending event is never due',
    sql: ({ transactions }) => [`UPDATE events SET next_attempt_at = NULL WHERE transaction_id = ${transactions.book}`],
    finds: ['event is pending but never due'],
  },
  {
    title: 'a pending event is due in 2999',
    sql: ({ transactions }) => [
      `UPDATE events SET next_attempt_at = ${DISTANT} WHERE transaction_id = ${transactions.book}`,
    ],
    finds: ['event is due or leased in the distant future'],
  },
  {
    title: 'a pending event is leased until 2999',
    sql: ({ transactions }) => [
      `UPDATE events SET lease = 1, lease_until = ${DISTANT} WHERE transaction_id = ${transactions.book}`,
    ],
    finds: ['event is due or leased in the distant future'],
  },
  {
    title: 'an event is delivered that was never sent',
    sql: ({ transactions }) => [
      `UPDATE events SET delivery_status = 'delivered', next_attempt_at = NULL, delivered_at = written_at WHERE transaction_id = ${transactions.book}`,
    ],
    finds: ['event is delivered or failed but was never tried'],
  },
  {
    title: 'a reminder is about a period that was never sold',
    sql: () => ['UPDATE reminders SET period_end = period_end + INTERVAL 1 DAY'],
    finds: ['reminder is about a period that its subscription never had'],
  },
  {
    title: 'a reminder is of another app’s subscription',
    sql: ({ other }) => [`UPDATE reminders SET app_id = ${other}`],
    finds: [`reminder ${NO_SUBSCRIPTION}`],
  },
  {
    title: 'a reminder is claimed in 2999',
    sql: () => [`UPDATE reminders SET status = 'claimed', handed_over_at = NULL, claimed_at = ${DISTANT}`],
    finds: [
      'reminder is claimed or tried again in the distant future',
      'subscription does not have one subscription.renewal_reminder_sent event for each reminder that was sent',
    ],
  },
  {
    title: 'a reminder that was sent is forgotten, so that it is sent again',
    sql: () => ['DELETE FROM reminders'],
    finds: ['subscription does not have one subscription.renewal_reminder_sent event for each reminder that was sent'],
  },
  {
    title: 'a receipt is due in 2999',
    sql: ({ transactions }) => [
      `UPDATE receipts SET status = 'due', next_try_at = ${DISTANT} WHERE transaction_id = ${transactions.monthly}`,
    ],
    finds: ['receipt is claimed or due in the distant future'],
  },
  {
    title: 'a realtime node is leased until 2999',
    sql: () => [`UPDATE realtime_writes SET state = 'pending', lease_until = ${DISTANT}`],
    finds: ['realtime write of subscription was requested or is leased in the distant future'],
  },
  {
    title: 'the write of a realtime node was requested in 2999',
    sql: () => [`UPDATE realtime_writes SET state = 'pending', wanted_at = ${DISTANT}`],
    finds: ['realtime write of subscription was requested or is leased in the distant future'],
  },
  {
    title: 'a realtime node is of another app’s subscription',
    sql: ({ app }) => [`UPDATE realtime_writes SET app_id = ${app}`],
    finds: [`realtime write of subscription ${NO_SUBSCRIPTION}`],
  },
  {
    title: 'the checkout of a payment is deleted',
    sql: ({ transactions }) => [`DELETE FROM checkout_sessions WHERE transaction_id = ${transactions.short}`],
    finds: ['transaction has no checkout'],
  },
  {
    title: 'a checkout is open until 2999',
    sql: ({ transactions }) => [
      `UPDATE checkout_sessions SET expires_at = ${DISTANT} WHERE transaction_id = ${transactions.cardOpen}`,
    ],
    finds: ['checkout expires in the distant future'],
  },
  {
    title: 'a checkout of an app whose clock is a year ahead is open for another year',
    sql: ({ transactions }) => [
      `UPDATE checkout_sessions SET expires_at = expires_at + INTERVAL 1 YEAR WHERE transaction_id = ${transactions.abroad}`,
    ],
    finds: ['checkout expires in the distant future'],
  },
  // Promotions
  {
    title: 'a discount of a payment that no promotion gave',
    sql: ({ transactions }) => [setTransaction(transactions.switched, 'discount_amount = 1')],
    finds: [NO_DISCOUNT],
  },
  {
    title: 'a discount that is one more than its promotion gives',
    sql: ({ transactions }) => [setTransaction(transactions.reserved, 'discount_amount = 30001, amount = 68999')],
    finds: [NO_DISCOUNT],
  },
  {
    title: 'a discounted payment that asks for less than the rest of its price',
    sql: ({ transactions }) => [setTransaction(transactions.reserved, 'amount = 68999')],
    finds: [OTHER_REST],
  },
  {
    title: 'the promotion of a discount is another app’s',
    sql: ({ other }) => [`UPDATE promotions SET app_id = ${other} WHERE code = 'SOME'`],
    finds: [NO_DISCOUNT, NO_PROMOTION],
  },
  {
    title: 'the use of a completed payment is not counted',
    sql: ({ transactions }) => [`DELETE FROM promotion_uses WHERE transaction_id = ${transactions.free}`],
    finds: [NOT_COUNTED],
  },
  {
    title: 'the use of an open checkout is counted',
    sql: ({ transactions }) => [
      `UPDATE promotion_uses SET status = 'used' WHERE transaction_id = ${transactions.reserved}`,
    ],
    finds: [TOO_SOON],
  },
  {
    title: 'the use of a completed payment is only reserved',
    sql: ({ transactions }) => [
      `UPDATE promotion_uses SET status = 'reserved' WHERE transaction_id = ${transactions.free}`,
    ],
    finds: [NOT_COUNTED, TOO_SOON],
  },
  {
    title: 'a use is of another payment than its promotion’s',
    sql: ({ transactions }) => [
      `UPDATE promotion_uses SET transaction_id = ${transactions.monthly} WHERE transaction_id = ${transactions.free}`,
    ],
    finds: [NOT_COUNTED, OTHER_PAYMENT],
  },
  {
    title: 'a use stands for another end user',
    sql: ({ transactions }) => [
      `UPDATE promotion_uses SET once_for = 1 WHERE transaction_id = ${transactions.free} AND end_user_id <> 1`,
    ],
    finds: ['use of a promotion is of another end user than the one that may use the promotion once'],
  },
  {
    title: 'a renewal has the discount of a promotion that is for the first payment alone',
    sql: () => [`UPDATE promotions SET every_period = 0 WHERE code = 'EVERY'`],
    finds: ['transaction is a renewal with the discount of a promotion that is not for every period', LASTING],
  },
  {
    title: 'a subscription has the lasting discount of a promotion that its end user never used',
    sql: () => [`UPDATE subscriptions SET promotion_code = 'EVERY' WHERE external_ref = 'winner'`],
    finds: [LASTING],
  },
]

/** A change that is no fault: what the daemon itself does, or what no other row can tell from the truth (docs/operating.md). */
export type Harmless = Omit<Corruption, 'finds'>

export const HARMLESS: readonly Harmless[] = [
  // Done by the daemon
  { title: 'receipts that were sent long ago are removed', sql: () => [`DELETE FROM receipts WHERE status = 'sent'`] },
  {
    title: 'an event is tried again in 30 days, the longest gap that may be set',
    sql: ({ transactions }) => [
      `UPDATE events SET next_attempt_at = '2026-05-28 12:00:00' WHERE transaction_id = ${transactions.book}`,
    ],
  },
  {
    title: 'an event is leased for a minute',
    sql: ({ transactions }) => [
      `UPDATE events SET attempts = 1, lease = 1, lease_until = '2026-04-28 12:01:00' WHERE transaction_id = ${transactions.book}`,
    ],
  },
  {
    title: 'a session is looked up in six hours, the longest gap',
    sql: ({ transactions }) => [
      `UPDATE provider_sessions SET next_lookup_at = '2026-04-28 18:00:00' WHERE transaction_id = ${transactions.cardOpen}`,
    ],
  },
  {
    title: 'a checkout of an app whose clock is a year ahead is open for a day',
    sql: ({ transactions }) => [
      `UPDATE checkout_sessions SET expires_at = '2027-04-29 12:00:00' WHERE transaction_id = ${transactions.abroad}`,
    ],
  },
  {
    title: 'a period that ran out is stored as expired',
    sql: () => [`UPDATE subscriptions SET status = 'expired' WHERE external_ref = 'sampler'`],
  },
  // Not to be seen
  {
    title: 'a payment that nobody made is deleted with all that names it',
    sql: ({ transactions: { cardOpen } }) => [
      `DELETE FROM provider_sessions WHERE transaction_id = ${cardOpen}`,
      `DELETE FROM checkout_sessions WHERE transaction_id = ${cardOpen}`,
      `DELETE FROM transactions WHERE id = ${cardOpen}`,
    ],
  },
  {
    title: 'money that waits is deleted with its mail',
    sql: () => [
      `DELETE FROM bank_mails WHERE review IS NOT NULL`,
      `DELETE FROM payments WHERE closed_at IS NULL AND amount_left = 99000`,
    ],
  },
  {
    title: 'an amount is changed wherever it stands',
    sql: ({ transactions: { book } }) => [
      `UPDATE payments SET amount = 1000 WHERE id = ${paymentOf(book)}`,
      `UPDATE allocations SET amount = 1000 WHERE transaction_id = ${book}`,
      setTransaction(book, 'amount = 1000, amount_received = 1000, amount_used = 1000'),
    ],
  },
  {
    title: 'a subscription loses its customer, and its reminders are stopped',
    sql: () => [
      `UPDATE subscriptions SET customer_id = NULL, reminders_stopped_at = created_at WHERE external_ref = 'renewer'`,
    ],
  },
  {
    title: 'the bytes of an event are others',
    sql: ({ transactions }) => [`UPDATE events SET body = '{}' WHERE transaction_id = ${transactions.book}`],
  },
  {
    title: 'a price was raised',
    sql: () => [`UPDATE prices SET amount = amount + 1 WHERE interval_unit = 'year'`],
  },
  {
    title: 'a payment came a week earlier',
    sql: ({ transactions }) => [
      `UPDATE payments SET paid_at = paid_at - INTERVAL 7 DAY WHERE id = ${paymentOf(transactions.book)}`,
    ],
  },
]
