import { readerOf } from '#apps/page-settings.ts'
import type { App } from '#apps/store.ts'
import type { Config } from '#config/config.ts'
import type { Customer } from '#customers/store.ts'
import type { Mail } from '#mail/mail.ts'
import type { Plan, Price } from '#plans/store.ts'
import { discounted } from '#promotions/discount.ts'
import type { Promotion } from '#promotions/store.ts'
import { unixSeconds, type AppTime } from '#shared/time.ts'
import type { Subscription } from '#subscriptions/store.ts'
import { composeMail, type Receiver, type Seller } from '#mails/compose-mail.ts'
import { optOutLink, renewalLink } from './renewal-link.ts'
import type { Stage } from './stages.ts'
import { dayWords, momentWords } from '#words/dates.ts'
import { discountedWords } from '#words/discounts.ts'
import { intervalWords, planTitle } from '#words/plans.ts'

/** A subscription with everything that its mail shows. `price` is the one that a renewal would pay. */
export interface DueReminder {
  readonly app: App
  readonly subscription: Subscription
  readonly periodEnd: AppTime
  readonly stage: Stage
  readonly plan: Plan
  readonly price: Price
  /** The promotion for every period whose discount a renewal gets. */
  readonly promotion: Promotion | null
  readonly customer: Customer
}

/** The fields of a due reminder that its mail shows. */
export interface ReminderContent extends Pick<DueReminder, 'periodEnd' | 'stage' | 'promotion'> {
  readonly app: Seller
  readonly subscription: Pick<Subscription, 'id' | 'inTrial' | 'renewalToken'>
  readonly plan: Pick<Plan, 'name'>
  readonly price: Pick<Price, 'intervalUnit' | 'intervalCount' | 'amount' | 'currency'>
  readonly customer: Receiver
}

/** The mail of one stage, in the customer's language and under the app's name. */
export async function composeReminder(config: Config, due: ReminderContent): Promise<Mail> {
  const { app, subscription, periodEnd, stage, plan, price, promotion, customer } = due
  const { locale } = customer
  const reader = readerOf(app, locale)
  const optOut = optOutLink(config.baseUrl, subscription.renewalToken)
  return composeMail(config, app, customer, {
    template: stage === 0 ? 'expired-notice' : 'renewal-reminder',
    id: `reminder.${subscription.id}.${unixSeconds(periodEnd)}.${stage}`,
    headers: { 'List-Unsubscribe': `<${optOut}>`, 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' },
    values: {
      stage,
      in_trial: subscription.inTrial,
      plan_name: plan.name,
      plan_title: planTitle(plan.name, locale),
      interval: intervalWords({ unit: price.intervalUnit, count: price.intervalCount }, locale),
      amount: discountedWords(discounted(promotion, price), price.currency, locale),
      period_end: momentWords(periodEnd, reader),
      period_end_day: dayWords(periodEnd, reader),
      renew_url: renewalLink(config.baseUrl, subscription.renewalToken),
      opt_out_url: optOut,
    },
  })
}
