import { readerOf } from '#apps/page-settings.ts'
import type { App } from '#apps/store.ts'
import type { Config } from '#config.ts'
import { mailNameOf } from '#customers/mail-name.ts'
import type { Customer } from '#customers/store.ts'
import { renderMail, type MailTemplate, type MailValues } from '#mail/render.ts'
import { senderOf, type Mail } from '#mail/send.ts'
import type { Plan, Price } from '#plans/store.ts'
import { formatMoney } from '#shared/money.ts'
import { unixSeconds, type AppTime } from '#shared/time.ts'
import type { Subscription } from '#subscriptions/store.ts'
import { mailBrand } from './mail-brand.ts'
import { optOutLink, renewalLink } from './renewal-link.ts'
import type { Stage } from './stages.ts'
import { dayWords, intervalWords, momentWords, planTitle } from './words.ts'

/** A subscription with everything that its mail shows. `price` is the one that a renewal would pay. */
export interface DueReminder {
  readonly app: App
  readonly subscription: Subscription
  readonly periodEnd: AppTime
  readonly stage: Stage
  readonly plan: Plan
  readonly price: Price
  readonly customer: Customer
}

/** The mail of one stage, in the customer's language and under the app's name (specification 6). */
export async function composeReminder(config: Config, due: DueReminder): Promise<Mail> {
  const { app, customer, subscription } = due
  const from = senderOf(app, config)
  const optOut = optOutLink(config.baseUrl, subscription.renewalToken)
  return {
    from,
    to: { name: mailNameOf(customer), address: customer.email },
    cc: customer.ccEmails,
    bcc: customer.bccEmails,
    ...(await renderMail(templateOf(due.stage), customer.locale, valuesOf(config, due, optOut))),
    messageId: messageIdOf(due, from.address),
    headers: {
      'List-Unsubscribe': `<${optOut}>`,
      'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      // Keeps out-of-office programs from replying.
      'Auto-Submitted': 'auto-generated',
    },
  }
}

function templateOf(stage: Stage): MailTemplate {
  return stage === 0 ? 'expired-notice' : 'renewal-reminder'
}

function valuesOf(config: Config, due: DueReminder, optOut: string): MailValues {
  const { app, subscription, periodEnd, stage, plan, price, customer } = due
  const { locale } = customer
  const reader = readerOf(app, locale)
  return {
    ...mailBrand(app),
    stage,
    is_test: app.isSandbox,
    in_trial: subscription.inTrial,
    app_name: app.name,
    customer_name: mailNameOf(customer),
    plan_name: plan.name,
    plan_title: planTitle(plan.name, locale),
    interval: intervalWords({ unit: price.intervalUnit, count: price.intervalCount }, locale),
    amount: formatMoney(price.amount, price.currency, locale),
    period_end: momentWords(periodEnd, reader),
    period_end_day: dayWords(periodEnd, reader),
    renew_url: renewalLink(config.baseUrl, subscription.renewalToken),
    opt_out_url: optOut,
  }
}

/** Depends only on subscription, period and stage, so that a receiver recognizes a copy. */
function messageIdOf({ subscription, periodEnd, stage }: DueReminder, sender: string): string {
  const domain = sender.split('@')[1] ?? 'localhost'
  return `reminder.${subscription.id}.${unixSeconds(periodEnd)}.${stage}@${domain}`
}
