import { FAR, FAR_FOR_APP, FAR_FOR_WEBHOOKS, SAME_APP, namesNone, type TableRules } from '#ledger/rules.ts'

const eventRules: TableRules = {
  subject: 'event',
  table: 'events',
  rules: [
    { fault: 'is pending but never due', broken: `x.delivery_status = 'pending' AND x.next_attempt_at IS NULL` },
    {
      fault: 'is due or leased in the distant future',
      broken: `x.delivery_status = 'pending'
        AND (x.next_attempt_at > ${FAR_FOR_WEBHOOKS} OR (x.lease <> 0 AND x.lease_until > ${FAR}))`,
    },
    {
      fault: 'is delivered or failed but was never tried',
      broken: `(x.delivery_status IN ('delivered', 'failed') AND x.attempts = 0)
        OR (x.delivery_status = 'delivered' AND x.delivered_at IS NULL)`,
    },
    {
      fault: 'names a transaction that does not exist or is of another app',
      broken: namesNone('transaction_id', 'transactions', SAME_APP),
    },
    {
      fault: 'is about a subscription that does not exist',
      broken: `x.event_type LIKE 'subscription.%' AND NOT EXISTS (SELECT 1 FROM subscriptions s
        WHERE s.app_id = x.app_id AND s.external_ref = x.external_ref)`,
    },
    {
      fault: 'announces a completion or a renewal that is not there',
      broken: `CASE x.event_type
        WHEN 'transaction.completed' THEN NOT EXISTS (SELECT 1 FROM transactions t
          WHERE t.id = x.transaction_id AND t.mode = 'payment' AND t.status IN ('completed', 'refunded'))
        WHEN 'subscription.renewed' THEN NOT EXISTS (SELECT 1 FROM payment_applications l WHERE l.transaction_id = x.transaction_id)
        ELSE FALSE END`,
    },
  ],
}

const reminderRules: TableRules = {
  subject: 'reminder',
  table: 'reminders',
  rules: [
    {
      fault: 'names a subscription that does not exist or is of another app',
      broken: namesNone('subscription_id', 'subscriptions', SAME_APP),
    },
    {
      fault: 'is about a period that its subscription never had',
      broken: `NOT EXISTS (SELECT 1 FROM payment_applications l
        WHERE l.subscription_id = x.subscription_id AND l.end_after = x.period_end)`,
    },
    {
      fault: 'is claimed or tried again in the distant future',
      broken: `x.status <> 'sent' AND (x.claimed_at > ${FAR} OR x.handed_over_at > ${FAR} OR x.retry_at > ${FAR})`,
    },
    { fault: 'was sent without a time', broken: `x.status = 'sent' AND x.sent_at IS NULL` },
  ],
}

const receiptRules: TableRules = {
  subject: 'receipt',
  table: 'receipts',
  rules: [
    {
      fault: 'names a transaction that does not exist or is of another app',
      broken: namesNone('transaction_id', 'transactions', SAME_APP),
    },
    {
      fault: 'is claimed or due in the distant future',
      broken: `x.status NOT IN ('sent', 'dropped') AND (x.claimed_at > ${FAR} OR x.handed_over_at > ${FAR} OR x.next_try_at > ${FAR})`,
    },
    { fault: 'was sent without a time', broken: `x.status = 'sent' AND x.sent_at IS NULL` },
  ],
}

const realtimeRules: TableRules = {
  subject: 'realtime write of subscription',
  table: 'realtime_writes',
  key: 'subscription_id',
  rules: [
    {
      fault: 'names a subscription that does not exist or is of another app',
      broken: namesNone('subscription_id', 'subscriptions', SAME_APP),
    },
    {
      fault: 'was requested or is leased in the distant future',
      broken: `x.wanted_at > ${FAR} OR x.lease_until > ${FAR}`,
    },
  ],
}

const checkoutRules: TableRules = {
  subject: 'checkout',
  table: 'checkout_sessions',
  rules: [
    {
      fault: 'names a transaction that does not exist, or is of another app or end user',
      broken: namesNone('transaction_id', 'transactions', `${SAME_APP} AND o.end_user_id = x.end_user_id`),
    },
    {
      fault: 'names an end user that does not exist or is not of its app',
      broken: namesNone('end_user_id', 'end_users', SAME_APP),
    },
    {
      fault: 'expires in the distant future',
      broken: `x.expires_at > ${FAR_FOR_APP} + INTERVAL 1 DAY`,
    },
  ],
}

/** What is sent to apps and payers, and what is still to be sent. */
export const DELIVERY_RULES: readonly TableRules[] = [
  eventRules,
  reminderRules,
  receiptRules,
  realtimeRules,
  checkoutRules,
]
