import { z } from 'zod'
import type { Plan } from '#plans/store.ts'
import { formatId, formatIdOrNull } from '#shared/ids.ts'
import { formatTimestamp, formatTimestampOrNull, type AppTime } from '#shared/time.ts'
import { publicId, timestamp } from '#shared/validate.ts'
import type { EventData, SubscriptionSubject } from '#webhooks/events.ts'
import { effectiveStatus } from './lifecycle.ts'
import type { Subscription, SubscriptionView } from './store.ts'

export const SUBSCRIPTION_EXAMPLE = {
  plan_ref: 'premium',
  plan_id: 'plan_1',
  price_id: 'price_1',
  customer_id: 'cus_1',
  status: 'active',
  current_period_end: '2027-01-01 09:30:00',
  in_trial: false,
  trial_ends_at: null,
}

/** The Subscription of the API. */
export const SubscriptionOutput = z
  .strictObject({
    plan_ref: z.string().describe("The plan's `code`."),
    plan_id: publicId('plan'),
    price_id: publicId('price').describe('What the next renewal costs.'),
    customer_id: publicId('cus').nullable().describe('The customer who receives reminders.'),
    status: z.enum(['active', 'expired']).describe('`expired` as soon as `current_period_end` is reached.'),
    current_period_end: timestamp.nullable().describe('Null for lifetime.'),
    in_trial: z.boolean().describe('Whether the latest period is a trial.'),
    trial_ends_at: timestamp.nullable(),
  })
  .meta({
    id: 'Subscription',
    description: 'What an end user has access to, and until when. An end user has at most one.',
    examples: [SUBSCRIPTION_EXAMPLE],
  })

/** `now` is the app's own time. */
export function presentSubscription(
  { subscription, plan }: Pick<SubscriptionView, 'subscription'> & { readonly plan: Pick<Plan, 'code'> },
  now: AppTime,
): z.input<typeof SubscriptionOutput> {
  return {
    plan_ref: plan.code,
    plan_id: formatId('plan', subscription.planId),
    price_id: formatId('price', subscription.priceId),
    customer_id: formatIdOrNull('cus', subscription.customerId),
    ...presentPeriod(subscription, now),
  }
}

/** Data of `subscription.updated`. */
export function updatedData(view: SubscriptionView, now: AppTime): EventData['subscription.updated'] {
  return { ...presentSubject(view), ...presentPeriod(view.subscription, now) }
}

/** Data of `subscription.expired`. */
export function expiredData(
  view: SubscriptionView,
  periodEnd: AppTime,
  wasTrial: boolean,
): EventData['subscription.expired'] {
  return { ...presentSubject(view), period_end: formatTimestamp(periodEnd), was_trial: wasTrial }
}

/** The fields that every event about a subscription has. */
export function presentSubject({ subscription, plan, customer }: SubscriptionView): SubscriptionSubject {
  return {
    external_ref: subscription.externalRef,
    paygate_customer_id: formatIdOrNull('cus', subscription.customerId),
    merchant_customer_id: customer?.merchantCustomerId ?? null,
    plan_id: formatId('plan', subscription.planId),
    price_id: formatId('price', subscription.priceId),
    plan_ref: plan.code,
  }
}

function presentPeriod(subscription: Subscription, now: AppTime) {
  return {
    status: effectiveStatus(subscription, now),
    current_period_end: formatTimestampOrNull(subscription.currentPeriodEnd),
    in_trial: subscription.inTrial,
    trial_ends_at: subscription.inTrial ? formatTimestampOrNull(subscription.currentPeriodEnd) : null,
  }
}
