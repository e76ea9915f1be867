import { expect } from 'chai'
import { getApp, type App } from '#apps/store.ts'
import { dailyMails } from '#mails/limits/store.ts'
import type { Customer } from '#customers/store.ts'
import type { PlanWithPrices } from '#plans/store.ts'
import { formatId } from '#shared/ids.ts'
import { getSubscription, type Subscription } from '#subscriptions/store.ts'
import { SmtpInbox, type ReceivedMail } from '../mail/smtp-inbox.ts'
import { TestClock, testContext, type TestContext } from '../support/context.ts'
import { MONTHLY, aCustomer, aPlan, anApp, paid, priceId, type AppOptions, type TestApp } from '../support/factories.ts'

/** A seller's app with a plan, on a clock that the test moves, and the mail server that its customers' mails go to. */
export interface Scene {
  readonly ctx: TestContext
  readonly inbox: SmtpInbox
  readonly seller: TestApp
  readonly plan: PlanWithPrices
  /** The app as it is now. */
  app(): Promise<App>
  subscription(externalRef?: string): Promise<Subscription>
  /** Pays a price for an end user: by default the plan's first price, for `user-1`, with a customer. */
  subscribe(options?: {
    externalRef?: string
    customer?: Customer | null
    plan?: PlanWithPrices
    price?: number
  }): Promise<Subscription>
  /** Does so for `user-1` up to this number; with `emailOf`, each with a customer of its own. */
  subscribeMany(count: number, emailOf?: (number: number) => string): Promise<void>
  stages(externalRef?: string): Promise<string[]>
  /** How many mails count towards the daily limit, by day; days with none are left out. */
  counted(): Promise<[day: string, mails: number][]>
  stop(): Promise<void>
}

export async function aScene(
  options: {
    app?: AppOptions
    prices?: readonly object[]
    start?: string
    settings?: Readonly<Record<string, string>>
  } = {},
): Promise<Scene> {
  const inbox = await SmtpInbox.open()
  const settings = { BILLING_SMTP_URL: inbox.url, BILLING_MAIL_FROM: 'billing@pay.example', ...options.settings }
  const ctx = testContext(settings, {}, new TestClock(options.start ?? '2026-03-01 10:00:00'))
  const seller = await anApp(ctx, { name: 'Reader', ...options.app })
  const plan = await aPlan(ctx, seller, { name: 'Premium', prices: options.prices ?? [MONTHLY] })
  const customer = await aCustomer(ctx, seller)
  const subscription = (externalRef = 'user-1') => getSubscription(ctx.db, seller.app.id, externalRef)
  const subscribe: Scene['subscribe'] = async (of = {}) => {
    const { externalRef = 'user-1', customer: whom = customer, plan: bought = plan, price = 0 } = of
    const named = whom === null ? {} : { customer_id: formatId('cus', whom.id) }
    const current = { ...seller, app: await getApp(ctx.db, seller.app.id) }
    await paid(ctx, current, { external_ref: externalRef, price_id: priceId(bought, price), ...named })
    return subscription(externalRef)
  }
  return {
    ctx,
    inbox,
    seller,
    plan,
    subscription,
    app: () => getApp(ctx.db, seller.app.id),
    subscribe,
    async subscribeMany(count, emailOf) {
      for (let number = 1; number <= count; number += 1) {
        const own = emailOf ? await aCustomer(ctx, seller, { email: emailOf(number) }) : customer
        await subscribe({ externalRef: `user-${number}`, customer: own })
      }
    },
    async stages(externalRef) {
      const { id } = await subscription(externalRef)
      return inbox.mails.flatMap((mail) => {
        const [, subscriptionId, , stage] = partsOf(mail)
        return Number(subscriptionId) === id ? [stage ?? ''] : []
      })
    },
    async counted() {
      const rows = await ctx.db.all(dailyMails, 'WHERE mails <> 0 ORDER BY day')
      return rows.map(({ day, mails }) => [day, mails])
    },
    stop: () => inbox.stop(),
  }
}

/** `reminder`, subscription id, Unix seconds of the period end, stage: what the message id is made of. */
export function partsOf(mail: ReceivedMail): string[] {
  return (mail.parsed.messageId ?? '').replace(/^<|@.*$/g, '').split('.')
}

/** The renewal token in the one link of a mail that is no opt-out. */
export function tokenIn(mail: ReceivedMail | undefined): string {
  const token = /\/renew\/([0-9a-f]{64})(?!\/opt-out)/.exec(mail?.parsed.text ?? '')?.[1]
  return token ?? expect.fail('no renewal link in the mail')
}
