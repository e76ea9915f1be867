import type { App } from '#apps/store.ts'
import { chooseMethod } from '#checkout/choose-method.ts'
import { createCheckoutSession } from '#checkout/create-session.ts'
import type { CreatedSession } from '#checkout/session-fields.ts'
import { provider, type Caller } from '#commands/caller.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { createCustomer } from '#customers/create-customer.ts'
import { createPlan } from '#plans/create-plan.ts'
import { listPlansOf } from '#plans/list-plans.ts'
import type { PlanWithPrices } from '#plans/store.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { sandboxProvider } from '#providers/providers.ts'
import { sendDueReminders } from '#mails/reminders/send-due-reminders.ts'
import { randomHex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { endSubscription } from '#subscriptions/end-subscription.ts'
import { confirmPaymentCommand } from '#transactions/confirm-payment.ts'
import { isSentTo } from '#webhooks/emit-event.ts'
import type { EventType } from '#webhooks/events.ts'
import { sendTestEvent } from '#webhooks/send-test-event.ts'
import { listEventsOfEndUser } from '#webhooks/store.ts'

/** Created where the app has no plan of this code. */
const PLAN = {
  code: 'paygate-trigger',
  name: 'Trigger',
  prices: [
    { name: 'Monthly', amount: 10_000, currency: 'VND', interval_unit: 'month', interval_count: 1 },
    { name: 'Daily', amount: 10_000, currency: 'VND', interval_unit: 'day', interval_count: 1 },
  ],
} as const
const MAX_EVENTS = 100

export interface Triggered {
  /** The end user that the event is about; null if there is none. */
  readonly external_ref: string | null
  /** The events that the app gets, in order. */
  readonly events: readonly { readonly id: string; readonly event_type: string }[]
}

export interface TriggerOptions {
  /** The address of a reminder. */
  readonly email?: string | undefined
}

/**
 * Makes a real event on a sandbox app by doing the real thing, for a new end user each time: a checkout, a payment by the test method,
 * a renewal, a reminder. Throws `forbidden` for live apps, `invalid_request` for a reminder without an address.
 */
export async function triggerEvent(
  ctx: Context,
  caller: Caller,
  app: App,
  type: EventType,
  { email }: TriggerOptions = {},
): Promise<Triggered> {
  refuseTrigger(app, type, email)
  if (type === 'webhook.test') {
    const { event_id } = await sendTestEvent(ctx, caller, app)
    return { external_ref: null, events: [{ id: event_id, event_type: type }] }
  }
  const externalRef = `trigger-${randomHex(4)}`
  await act(ctx, caller, app, { type, externalRef, email })
  const written = await listEventsOfEndUser(ctx.db, app.id, externalRef, MAX_EVENTS)
  return {
    external_ref: externalRef,
    events: written.map(({ id, eventType }) => ({ id: formatId('evt', id), event_type: eventType })),
  }
}

/** What `triggerEvent` would do, in sentences. Changes nothing, and throws what `triggerEvent` throws. */
export function previewTrigger(app: App, type: EventType, { email }: TriggerOptions = {}): readonly string[] {
  refuseTrigger(app, type, email)
  return [...STEPS[type], `the app gets ${type}`]
}

const PURCHASE = 'a new end user buys once, by the test method'
const SUBSCRIPTION = `a new end user subscribes to the plan ${PLAN.code}, which is created if the app has none, and pays by the test method`
const HALF = 'a new end user pays half of what was asked, which is flagged as underpaid'
const STEPS: Readonly<Record<EventType, readonly string[]>> = {
  'webhook.test': [],
  'transaction.completed': [PURCHASE],
  'transaction.flagged': [HALF],
  'transaction.refunded': [HALF, 'a manual refund of all that arrived is recorded'],
  'subscription.updated': [SUBSCRIPTION],
  'subscription.renewed': [SUBSCRIPTION, 'the same end user pays for a second period'],
  'subscription.expired': [SUBSCRIPTION, 'the subscription is ended'],
  'subscription.renewal_reminder_sent': [
    'a customer with the address is created',
    `${SUBSCRIPTION}, for one day`,
    'the reminder is sent',
  ],
}

function refuseTrigger(app: App, type: EventType, email: string | undefined): void {
  if (!app.isSandbox) throw new AppError('forbidden', 'events are triggered on sandbox apps only')
  if (type === 'webhook.test') return
  if (!isSentTo(app, type))
    throw new AppError('invalid_request', `the app does not ask for it: app update ${app.id} --more-events ${type}`)
  if (type === 'subscription.renewal_reminder_sent' && email === undefined)
    throw new AppError('invalid_request', 'email: is required, since a reminder is sent', { field: 'email' })
}

interface Trigger extends TriggerOptions {
  readonly type: Exclude<EventType, 'webhook.test'>
  readonly externalRef: string
}

async function act(ctx: Context, caller: Caller, app: App, { type, externalRef, email }: Trigger): Promise<void> {
  const purchase = { external_ref: externalRef, mode: 'payment', plan_ref: PLAN.code, amount: 10_000, currency: 'VND' }
  const subscribe = async (unit: 'day' | 'month', more: object = {}): Promise<void> => {
    const price_id = await priceOf(ctx, caller, app, unit)
    await payCheckout(ctx, caller, app, { external_ref: externalRef, mode: 'subscription', price_id, ...more })
  }
  switch (type) {
    case 'transaction.completed':
      return payCheckout(ctx, caller, app, purchase)
    case 'transaction.flagged':
      await payHalf(ctx, caller, app, purchase)
      return
    case 'transaction.refunded': {
      const transactionId = await payHalf(ctx, caller, app, purchase)
      const terms = { transactionId, action: 'refund', note: 'triggered', reference: randomHex(4) } as const
      await resolveTransaction(ctx, caller, terms)
      return
    }
    case 'subscription.expired':
      await subscribe('month')
      await perform(ctx, caller, endSubscription, { note: 'triggered' }, { app, externalRef })
      return
    case 'subscription.updated':
      return subscribe('month')
    case 'subscription.renewed':
      await subscribe('month')
      return subscribe('month')
    case 'subscription.renewal_reminder_sent': {
      const customer = await perform(ctx, caller, createCustomer, { name: 'Trigger', email }, { app })
      // A period of one day is in its last day from the start.
      await subscribe('day', { customer_id: formatId('cus', customer.id) })
      await sendDueReminders(ctx, { appId: app.id })
    }
  }
}

async function openCheckout(ctx: Context, caller: Caller, app: App, choice: object): Promise<CreatedSession> {
  const urls = { success_url: ctx.config.baseUrl, cancel_url: ctx.config.baseUrl }
  return perform(ctx, caller, createCheckoutSession, { ...urls, ...choice }, { app, endUser: null })
}

/** Half of the price is underpaid, and flagged. Returns the transaction. */
async function payHalf(ctx: Context, caller: Caller, app: App, purchase: { readonly amount: number }): Promise<number> {
  const { transaction_id: transactionId } = await openCheckout(ctx, caller, app, purchase)
  if (transactionId === null) throw new Error('a one-time payment has no transaction')
  const { code } = sandboxProvider()
  await perform(ctx, provider(code), confirmPaymentCommand, undefined, {
    provider: code,
    events: [],
    reference: `trigger ${transactionId}`,
    transactionId,
    amount: purchase.amount / 2,
    currency: 'VND',
    paidAt: ctx.clock.now(),
  })
  return transactionId
}

async function payCheckout(ctx: Context, caller: Caller, app: App, choice: object): Promise<void> {
  const { method } = sandboxProvider()
  const session = await openCheckout(ctx, caller, app, { ...choice, payment_method: method })
  await chooseMethod(ctx, session.checkout_url.slice(session.checkout_url.lastIndexOf('/') + 1), method)
}

/** The price of the trigger plan with this unit. */
async function priceOf(ctx: Context, caller: Caller, app: App, unit: 'day' | 'month'): Promise<string> {
  const plan = (await findPlan(ctx, app)) ?? (await makePlan(ctx, caller, app))
  const price = plan.prices.find(({ intervalUnit, status }) => intervalUnit === unit && status === 'active')
  if (!price)
    throw new AppError('invalid_request', `the plan ${PLAN.code} has no active price by the ${unit}: restore it`)
  return formatId('price', price.id)
}

async function findPlan(ctx: Context, app: App): Promise<PlanWithPrices | undefined> {
  return (await listPlansOf(ctx, app.id, {})).find(({ code }) => code === PLAN.code)
}

/** Two triggers at once create one plan, since its code is unique. */
async function makePlan(ctx: Context, caller: Caller, app: App): Promise<PlanWithPrices> {
  try {
    return await perform(ctx, caller, createPlan, PLAN, { app })
  } catch (error) {
    const made = error instanceof AppError && error.code === 'plan_code_taken' ? await findPlan(ctx, app) : undefined
    if (!made) throw error
    return made
  }
}
