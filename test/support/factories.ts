import { perform } from '#commands/perform.ts'
import type { EventData } from '#webhooks/events.ts'
import { operator, provider, type Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { createApp } from '#apps/create-app.ts'
import type { Method } from '#providers/providers.ts'
import { rotateWebhookSecret } from '#apps/rotate-secret.ts'
import { getApp, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { createCustomer } from '#customers/create-customer.ts'
import { createOwnCustomer } from '#customers/create-own-customer.ts'
import type { Customer } from '#customers/store.ts'
import { createPromotion } from '#promotions/create-promotion.ts'
import type { ShownPromotion } from '#promotions/store.ts'
import { createPlan } from '#plans/create-plan.ts'
import type { PlanWithPrices } from '#plans/store.ts'
import { formatId } from '#shared/ids.ts'
import { DAY_MS, addMs } from '#shared/time.ts'
import { subscriptions } from '#subscriptions/store.ts'
import { createCheckoutSession } from '#checkout/create-session.ts'
import type { CreatedSession } from '#checkout/session-fields.ts'
import { confirmPayment, type ConfirmedPayment, type ConfirmOutcome } from '#transactions/confirm-payment.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { enableMethod } from './operators.ts'

/** An app with the secrets of its seller. */
export interface TestApp {
  readonly app: App
  readonly apiKey: string
  readonly secret: string
  /** Null without `webhookUrl`. */
  readonly webhookSecret: string | null
}

export interface AppOptions {
  readonly name?: string
  readonly auth?: 'hmac' | 'identity'
  readonly sandbox?: boolean
  readonly webhookUrl?: string
  /** Methods enabled without credentials; `test` by default on sandbox apps. */
  readonly methods?: readonly Method[]
}

const OPERATOR = 'tester'

/** A sandbox app with the test method by default. */
export async function anApp(ctx: Context, options: AppOptions = {}): Promise<TestApp> {
  const { name = 'Reader', auth = 'hmac', sandbox = true, webhookUrl, methods = sandbox ? ['test'] : [] } = options
  const created = await perform(
    ctx,
    operator(OPERATOR),
    createApp,
    {
      name,
      auth,
      sandbox,
      ...(webhookUrl ? { webhook_url: webhookUrl } : {}),
    },
    {},
  )
  const load = () => getApp(ctx.db, created.app_id)
  for (const method of methods) await enableMethod(ctx, OPERATOR, await load(), method)
  const webhookSecret = webhookUrl
    ? (await perform(ctx, operator(OPERATOR), rotateWebhookSecret, undefined, { app: await load() })).webhook_secret
    : null
  return { app: await load(), apiKey: created.api_key, secret: created.api_secret ?? '', webhookSecret }
}

export const MONTHLY = { amount: 99_000, currency: 'VND', interval_unit: 'month', interval_count: 1 } as const
export const DAILY = { ...MONTHLY, interval_unit: 'day' } as const
export const YEARLY = { amount: 990_000, currency: 'VND', interval_unit: 'year', interval_count: 1 } as const
export const LIFETIME = { amount: 2_900_000, currency: 'VND', interval_unit: 'lifetime' } as const
export const FREE_TRIAL = { amount: 0, interval_unit: 'day', interval_count: 7 } as const
export const PAID_TRIAL = { amount: 10_000, interval_unit: 'week', interval_count: 1 } as const

let planNumber = 0

/** A seller's server. */
export const SERVER: Caller = { kind: 'server', name: 'app' }

/** An active plan, with one monthly price by default. */
export async function aPlan(
  ctx: Context,
  { app }: TestApp,
  options: { code?: string; name?: string; prices?: readonly object[] } = {},
): Promise<PlanWithPrices> {
  planNumber += 1
  const { code = `plan-${planNumber}`, name = 'Premium', prices = [MONTHLY] } = options
  return perform(ctx, SERVER, createPlan, { code, name, prices }, { app })
}

/** An active promotion, of 20 percent where `changes` name no amount. */
export async function aPromotion(ctx: Context, { app }: TestApp, changes: object = {}): Promise<ShownPromotion> {
  const terms = 'amount' in changes ? {} : { percent: 20 }
  return perform(ctx, SERVER, createPromotion, { code: 'TET', ...terms, ...changes }, { app })
}

/** The public id of a plan's price, the first by default. */
export function priceId(plan: PlanWithPrices, index = 0): string {
  return formatId('price', plan.prices[index]!.id)
}

export async function aCustomer(ctx: Context, { app }: TestApp, changes: object = {}): Promise<Customer> {
  return perform(ctx, SERVER, createCustomer, { name: 'An Nguyen', email: 'an@example.com', ...changes }, { app })
}

/** A customer that belongs to an end user, as its client creates one. */
export async function anOwnCustomer(
  ctx: Context,
  { app }: TestApp,
  sub: string,
  changes: object = {},
): Promise<Customer> {
  const input = { name: 'An Nguyen', email: 'an@example.com', ...changes }
  return perform(ctx, SERVER, createOwnCustomer({ sub, verifiedEmail: null }), input, { app })
}

export async function aCheckout(ctx: Context, { app }: TestApp, body: object): Promise<CreatedSession> {
  const urls = { success_url: 'https://shop.example/ok', cancel_url: 'https://shop.example/no' }
  return perform(
    ctx,
    SERVER,
    createCheckoutSession,
    { external_ref: 'user-1', mode: 'subscription', ...urls, ...body },
    { app, endUser: null },
  )
}

/** The public token of a checkout. */
export function tokenOf(session: CreatedSession): string {
  return session.checkout_url.slice(-64)
}

/** Opens a checkout and pays it by the test method. */
export async function paid(ctx: Context, app: TestApp, body: object): Promise<CreatedSession> {
  const session = await aCheckout(ctx, app, body)
  if (!session.activated) await chooseMethod(ctx, tokenOf(session), 'test')
  return session
}

/** Opens a checkout, of which 90 000 VND are received by bank transfer. */
export async function partlyPaid(ctx: Context, app: TestApp, body: object, reference = 'FT1'): Promise<void> {
  const session = await aCheckout(ctx, app, body)
  await transferred(ctx, session.transaction_id!, 90_000, { reference })
}

/** A payment as a provider reports it, by an event or, with `eventId` null, by a look-up. */
export type ReportedPayment = Omit<ConfirmedPayment, 'events'> & { readonly eventId: string | null }

/** As the commands that record what a provider or a bank reported: found again by its token if the answer to COMMIT is lost. */
const reportCommand = command({
  name: 'payment.report',
  input: nothing,
  run: (tx, _input, payment: ConfirmedPayment) => confirmPayment(tx, payment),
})

/** Confirms a payment of a provider. */
export async function reportPayment(ctx: Context, { eventId, ...payment }: ReportedPayment): Promise<ConfirmOutcome> {
  const events = eventId === null ? [] : [{ eventId, eventType: 'payment' }]
  return perform(ctx, provider(payment.provider), reportCommand, undefined, { ...payment, events })
}

let transfers = 0

/** The bank reports a transfer for a transaction: by default VND, made now, under a reference of its own. */
export async function transferred(
  ctx: Context,
  transactionId: number,
  amount: number,
  changes: Partial<ReportedPayment> = {},
): Promise<ConfirmOutcome> {
  transfers += 1
  return reportPayment(ctx, {
    provider: 'bank_transfer',
    eventId: null,
    reference: `transfer ${transfers}`,
    transactionId,
    amount,
    currency: 'VND',
    paidAt: ctx.clock.now(),
    ...changes,
  })
}

/** A subscription of `user-1` on the plan's first price, paid now. */
export async function aSubscription(
  ctx: Context,
  app: TestApp,
  plan: PlanWithPrices,
  body: object = {},
): Promise<void> {
  await paid(ctx, app, { price_id: priceId(plan), ...body })
}

/** The app's subscription ends a day later than what was paid for, which the ledger reports. Returns its id. */
export async function aWrongEnd(ctx: Context, { app }: TestApp): Promise<number> {
  const { id, currentPeriodEnd } = (await ctx.db.one(subscriptions, 'WHERE app_id = ?', [app.id]))!
  await ctx.db.update(subscriptions, { id }, { currentPeriodEnd: addMs(currentPeriodEnd!, DAY_MS) })
  return id
}

/** The data of a `transaction.completed`. */
export function aCompletion(externalRef: string): EventData['transaction.completed'] {
  return {
    transaction_id: 1,
    external_ref: externalRef,
    paygate_customer_id: null,
    plan_ref: 'pro',
    amount: 1,
    currency: 'VND',
    status: 'completed',
    metadata: {},
  }
}
