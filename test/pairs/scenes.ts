import { approvals } from '#approvals/store.ts'
import { getApp, type App } from '#apps/store.ts'
import { bankMails } from '#bank-mail/store.ts'
import { reminders } from '#mails/reminders/store.ts'
import { openLog } from '#shared/log.ts'
import { HOUR_MS, addMs } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { events } from '#webhooks/store.ts'
import { RELAY_SETTINGS } from '../bank-mail/bank-shop.ts'
import { unansweredSince } from '../support/unanswered.ts'
import { aBankMail, anOpenApproval, anUnconfirmedReceipt } from '../cli/states.ts'
import { TestClock, testContext, type TestContext } from '../support/context.ts'
import {
  aCheckout,
  aCustomer,
  anApp,
  aPlan,
  aPromotion,
  FREE_TRIAL,
  LIFETIME,
  MONTHLY,
  paid,
  PAID_TRIAL,
  priceId,
  reportPayment,
  type TestApp,
  tokenOf,
  YEARLY,
} from '../support/factories.ts'
import { failEvents } from '../support/failed-events.ts'
import { addBankAccount, assignBankAccount, changeApp } from '../support/operators.ts'

/** `running`: a subscription with three weeks to go. `ended`: the same a day after its end. `first`: nobody has a subscription yet. */
export const SCENES = ['running', 'ended', 'first'] as const
export type SceneName = (typeof SCENES)[number]

/** What the commands name. */
export interface Scene {
  readonly ctx: TestContext
  readonly app: App
  readonly prices: { readonly month: string; readonly year: string; readonly other: string; readonly lifetime: string }
  readonly customer: string
  readonly customerId: number
  readonly promotionId: number
  /** Open checkouts of `user-1`, and their transactions. */
  readonly open: OpenCheckout
  readonly second: OpenCheckout
  /** An open checkout of `user-2`. */
  readonly other: OpenCheckout
  /** A completed transaction that was paid twice, and one that got a part of its amount; 0 in `first`. */
  readonly paidTwice: number
  readonly partlyPaid: number
  /** A payment that is booked for nothing, the bank mail that reported it, and a mail that has none. */
  readonly waitingPayment: number
  readonly waitingMail: number
  readonly approval: number
  readonly event: string
  readonly reminder: number
  readonly receipt: number
  /** Empty in `first`. */
  readonly renewalToken: string
}

export interface OpenCheckout {
  readonly token: string
  readonly transactionId: number
}

const ACCOUNT = { bank: 'ACB', number: '27550951', holder: 'NGUYEN VAN A' }
const SOLD = '2026-03-01 10:00:00'
const NOW: Readonly<Record<SceneName, string>> = {
  running: '2026-03-10 10:00:00',
  ended: '2026-04-02 10:00:00',
  first: '2026-03-10 10:00:00',
}

/** Fills the empty database. */
export async function prepareScene(name: SceneName): Promise<Scene> {
  const ctx = { ...testContext(RELAY_SETTINGS, {}, new TestClock(SOLD)), log: openLog('silent') }
  const app = await aSeller(ctx)
  const plan = await aPlan(ctx, app, { code: 'pro', prices: [MONTHLY, YEARLY, LIFETIME] })
  const other = await aPlan(ctx, app, {
    code: 'basic',
    prices: [
      { ...MONTHLY, amount: 49_000, trial: FREE_TRIAL },
      { ...YEARLY, trial: PAID_TRIAL },
    ],
  })
  const customer = await aCustomer(ctx, app)
  const promotion = await aPromotion(ctx, app, { code: 'LAST', max_uses: 1, on_page: true })
  const month = priceId(plan)
  const isSold = name !== 'first'
  const sold = isSold ? await sell(ctx, app, month, `cus_${customer.id}`) : { paidTwice: 0, partlyPaid: 0 }
  ctx.clock.set(NOW[name])
  const open = await openOf(ctx, app, { price_id: month })
  const second = await openOf(ctx, app, { price_id: priceId(plan, 1) })
  const foreign = await openOf(ctx, app, { price_id: month, external_ref: 'user-2' })
  const waitingMail = await aBankMail(ctx, { bank: 'ACB', bankReference: 'FT1', amount: 99_000, review: 'credit' })
  const waitingPayment = (await ctx.db.one(bankMails, 'WHERE id = ?', [waitingMail]))?.paymentId ?? 0
  await anOpenApproval(ctx)
  const approval = await ctx.db.all(approvals, '')
  const subscription = await ctx.db.one(subscriptions, "WHERE external_ref = 'user-1'")
  if (isSold) await failEvents(ctx.db, 'ORDER BY id DESC LIMIT 2')
  const firstEvent = await ctx.db.one(events, 'ORDER BY id LIMIT 1')
  return {
    ctx,
    app: await getApp(ctx.db, app.app.id),
    prices: { month, year: priceId(plan, 1), other: priceId(other), lifetime: priceId(plan, 2) },
    customer: `cus_${customer.id}`,
    customerId: customer.id,
    promotionId: promotion.id,
    open,
    second,
    other: foreign,
    ...sold,
    waitingPayment,
    waitingMail,
    approval: approval[0]?.id ?? 0,
    event: `evt_${firstEvent?.id ?? 0}`,
    reminder: subscription ? await anUnconfirmedMail(ctx, app, subscription) : 0,
    receipt: isSold ? await anUnconfirmedReceipt(ctx, app) : 0,
    renewalToken: subscription?.renewalToken ?? '',
  }
}

async function aSeller(ctx: TestContext): Promise<TestApp> {
  const app = await anApp(ctx, { webhookUrl: 'http://127.0.0.1:9/hooks', methods: ['test', 'bank_transfer'] })
  const account = await addBankAccount(ctx, 'tester', ACCOUNT)
  await assignBankAccount(ctx, 'tester', app.app, account.id)
  await changeApp(ctx, 'tester', app.app, {
    more_events: ['transaction.refunded', 'transaction.flagged', 'subscription.expired'],
  })
  return { ...app, app: await getApp(ctx.db, app.app.id) }
}

/** A subscription of `user-1`, which was paid twice, and a payment of a part. */
async function sell(
  ctx: TestContext,
  app: TestApp,
  price: string,
  customer: string,
): Promise<Pick<Scene, 'paidTwice' | 'partlyPaid'>> {
  const first = await paid(ctx, app, { price_id: price, customer_id: customer })
  await transfer(ctx, first.transaction_id ?? 0, 'FT-TWICE', 99_000)
  const part = await aCheckout(ctx, app, { price_id: price })
  await transfer(ctx, part.transaction_id ?? 0, 'FT-PART', 90_000)
  return { paidTwice: first.transaction_id ?? 0, partlyPaid: part.transaction_id ?? 0 }
}

async function transfer(ctx: TestContext, transactionId: number, reference: string, amount: number): Promise<void> {
  const paidAt = ctx.clock.now()
  const money = { amount, currency: 'VND', paidAt }
  await reportPayment(ctx, { provider: 'bank_transfer', eventId: null, reference, transactionId, ...money })
}

async function openOf(ctx: TestContext, app: TestApp, body: object): Promise<OpenCheckout> {
  const session = await aCheckout(ctx, app, body)
  return { token: tokenOf(session), transactionId: session.transaction_id ?? 0 }
}

async function anUnconfirmedMail(
  ctx: TestContext,
  app: TestApp,
  subscription: { readonly id: number; readonly currentPeriodEnd: unknown },
): Promise<number> {
  const anHourAgo = addMs(ctx.clock.now(), -HOUR_MS)
  const row = await ctx.db.one(subscriptions, 'WHERE id = ?', [subscription.id])
  if (!row?.currentPeriodEnd) throw new Error('the subscription has no end')
  return ctx.db.insert(reminders, {
    ...{ appId: app.app.id, subscriptionId: row.id, periodEnd: row.currentPeriodEnd, stage: 3 },
    ...unansweredSince(anHourAgo),
  })
}
