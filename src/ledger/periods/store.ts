import { FAR_FOR_APP, OF_ITS_PLAN, SAME_APP, SAME_END_USER, namesNone, type TableRules } from '#ledger/rules.ts'
import { LASTING_DISCOUNT_RULES } from '#ledger/promotions/store.ts'

/** How many events of a type the subscription `x` has. With another index the server would read all events of the app. */
function eventsOf(type: string): string {
  return `(SELECT COUNT(*) FROM events e FORCE INDEX (events_app_ref)
    WHERE e.app_id = x.app_id AND e.external_ref = x.external_ref AND e.event_type = '${type}')`
}

const subscriptionRules: TableRules = {
  subject: 'subscription',
  table: 'subscriptions',
  rules: [
    {
      fault: 'does not have one subscription.updated event for each of its changes',
      broken: `${eventsOf('subscription.updated')} <> x.revision`,
    },
    {
      fault: 'does not have one subscription.renewal_reminder_sent event for each reminder that was sent',
      broken: `${eventsOf('subscription.renewal_reminder_sent')} <> (SELECT COUNT(*) FROM reminders r
        WHERE r.subscription_id = x.id AND r.status = 'sent')`,
    },
    {
      fault: 'is stored as expired long before its end',
      broken: `x.status = 'expired' AND (x.current_period_end IS NULL OR x.current_period_end > ${FAR_FOR_APP})`,
    },
    {
      fault: 'names an end user that does not exist or is another',
      broken: namesNone('end_user_id', 'end_users', SAME_END_USER),
    },
    {
      fault: 'names a price that does not exist or is not of its plan and app',
      broken: namesNone('price_id', 'prices', OF_ITS_PLAN),
    },
    {
      fault: 'names a customer that does not exist or is not of its app',
      broken: namesNone('customer_id', 'customers', SAME_APP),
    },
    ...LASTING_DISCOUNT_RULES,
  ],
}

/** Lines of payments and trials, which give the interval that is sold. */
const SOLD = `x.kind IN ('started', 'extended', 'restarted')`
/** The price that was paid for, which may differ from the price that the subscription has afterwards. */
const SOLD_PRICE = 'COALESCE((SELECT t.price_id FROM transactions t WHERE t.id = x.transaction_id), x.price_id)'
/** Another payment had renewed the period already that the line's payment was opened to renew: the app is sent the update alone. */
const RENEWED_BEFORE = `EXISTS (SELECT 1 FROM transactions t
  JOIN payment_applications l ON l.subscription_id = x.subscription_id AND l.end_before = t.renews_end AND NOT (l.end_after <=> l.end_before)
  WHERE t.id = x.transaction_id AND x.end_before <> t.renews_end AND l.transaction_id IS NOT NULL AND l.revision < x.revision)`

const lineRules: TableRules = {
  subject: 'ledger line',
  table: 'payment_applications',
  rules: [
    {
      fault: 'names a subscription that does not exist or is of another app',
      broken: namesNone('subscription_id', 'subscriptions', SAME_APP),
    },
    {
      fault: 'names a transaction that does not exist or is no payment of a subscription',
      broken: namesNone('transaction_id', 'transactions', `${SAME_APP} AND o.mode = 'subscription'`),
    },
    {
      fault: 'applies a payment of another end user',
      broken: `EXISTS (SELECT 1 FROM transactions t JOIN subscriptions s ON s.id = x.subscription_id
        WHERE t.id = x.transaction_id AND t.end_user_id <> s.end_user_id)`,
    },
    {
      fault: 'gives an interval that its price does not have',
      broken: `${SOLD} AND NOT EXISTS (SELECT 1 FROM prices p WHERE p.id = ${SOLD_PRICE}
        AND x.interval_unit = CASE x.is_trial WHEN 1 THEN p.trial_interval_unit ELSE p.interval_unit END
        AND x.interval_count = CASE x.is_trial WHEN 1 THEN p.trial_interval_count ELSE p.interval_count END)`,
    },
    {
      fault: 'starts a trial that was not granted',
      broken: `${SOLD} AND x.is_trial = 1 AND NOT EXISTS (SELECT 1 FROM subscriptions s
        JOIN trial_grants g ON g.end_user_id = s.end_user_id AND g.plan_id = x.plan_id AND g.transaction_id <=> x.transaction_id
        WHERE s.id = x.subscription_id)`,
    },
    {
      // A version that stored no quotes had another rule.
      fault: 'does not have exactly the subscription.renewed event that its payment needs',
      broken: `x.transaction_id IS NOT NULL AND x.opened_at IS NOT NULL
        AND (x.kind <> 'started' AND NOT ${RENEWED_BEFORE}) <> (SELECT COUNT(*) FROM events e
          WHERE e.transaction_id = x.transaction_id AND e.event_type = 'subscription.renewed')`,
    },
    { fault: 'was applied in the future', broken: `x.applied_at > ${FAR_FOR_APP}` },
  ],
}

const grantRules: TableRules = {
  subject: 'trial grant',
  table: 'trial_grants',
  rules: [
    {
      fault: 'has no trial in the ledger',
      broken: `NOT EXISTS (SELECT 1 FROM subscriptions s JOIN payment_applications l ON l.subscription_id = s.id
        WHERE s.end_user_id = x.end_user_id AND s.app_id = x.app_id AND l.is_trial = 1 AND l.transaction_id <=> x.transaction_id)`,
    },
  ],
}

const appRules: TableRules = {
  subject: 'app',
  table: 'apps',
  rules: [
    {
      fault: 'has a clock that was moved although it is live, or that was moved back',
      broken: 'x.clock_offset_ms < 0 OR (x.clock_offset_ms > 0 AND x.is_sandbox = 0)',
    },
  ],
}

/** Subscriptions, the lines that explain them, and what was sold. */
export const PERIOD_RULES: readonly TableRules[] = [subscriptionRules, lineRules, grantRules, appRules]
