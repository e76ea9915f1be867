import { appNow } from '#apps/app-time.ts'
import { registerApp, type CreatedApp } from '#apps/create-app.ts'
import { appsByKey, getApp, type App } from '#apps/store.ts'
import { createCheckoutSession } from '#checkout/create-session.ts'
import { provider, type Caller } from '#commands/caller.ts'
import { command, nothing } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import { createCustomer } from '#customers/create-customer.ts'
import { onDuplicate } from '#db/database-error.ts'
import { createPlan } from '#plans/create-plan.ts'
import type { Price } from '#plans/store.ts'
import { enableMethod } from '#providers/methods.ts'
import { sandboxProvider } from '#providers/providers.ts'
import { advanceTestClock } from '#test-clock/advance-test-clock.ts'
import { setReminders } from '#renewals/opt-out.ts'
import { AppError } from '#shared/errors.ts'
import { formatId } from '#shared/ids.ts'
import { asRealTime, DAY_MS, SECOND_MS } from '#shared/time.ts'
import { endSubscription } from '#subscriptions/end-subscription.ts'
import { switchPlan } from '#subscriptions/switch-plan.ts'
import { confirmPaymentCommand } from '#transactions/confirm-payment.ts'
import { resolveTransaction } from '#decisions/resolve-transaction.ts'
import { DEMO_KEY } from './mark.ts'
import { DAYS, PLANS, SCENARIOS, type Step, type PriceName, type Scenario } from './scenarios.ts'

export interface DemoSize {
  readonly days: number
  readonly plans: number
  readonly customers: number
  readonly payments: number
}

export type MadeDemo = CreatedApp & DemoSize

/** The size of the demo. */
export function demoSize(): DemoSize {
  const paying = SCENARIOS.flatMap(({ steps }) => steps).filter(
    ({ action }) => action === 'pay' || action === 'buy once',
  )
  return { days: DAYS, plans: PLANS.length, customers: SCENARIOS.length, payments: paying.length }
}

/** The demo; null if it does not exist. */
export async function findDemo(ctx: Context): Promise<App | null> {
  return appsByKey.find(ctx.db, DEMO_KEY)
}

/** Throws `invalid_request` if the demo exists. */
export async function refuseSecondDemo(ctx: Context): Promise<void> {
  if (await findDemo(ctx)) throw alreadyExists()
}

/**
 * Makes a sandbox app with a year of history by the ordinary commands, under the app's own clock, which starts a year ago and ends at the
 * present. Nothing leaves the machine: the app has no webhook address, and the reminders of every subscription are stopped when it is
 * created, days before the first is due. Throws `invalid_request` if the demo, or a part of it, exists.
 */
export async function makeDemo(
  ctx: Context,
  caller: Caller,
  onProgress: (done: number, total: number) => void = () => undefined,
): Promise<MadeDemo> {
  const created = await perform(ctx, caller, registerDemo, undefined, null)
  const app = await getApp(ctx.db, created.app_id)
  await perform(ctx, caller, enableMethod, undefined, { app, method: sandboxProvider().method })
  const prices = await sell(ctx, caller, app)
  const steps = SCENARIOS.flatMap((scenario) => scenario.steps.map((step) => ({ scenario, step })))
  steps.sort((a, b) => a.step.day - b.step.day)
  const progress: Progress = { ctx, caller, app, prices, customers: new Map(), paid: new Map() }
  let day = 0
  for (const [done, { scenario, step }] of steps.entries()) {
    if (step.day > day) progress.app = await passDays(progress, step.day - day)
    day = step.day
    await performStep(progress, scenario, step)
    onProgress(done + 1, steps.length)
  }
  await passDays(progress, DAYS - day)
  return { ...created, ...demoSize() }
}

/** The unique api_key lets only one of two concurrent runs create it. */
const registerDemo = command({
  name: 'demo.make',
  input: nothing,
  run: (tx) =>
    onDuplicate(
      'apps_api_key',
      registerApp(tx, {
        name: 'Demo',
        auth: 'hmac',
        isSandbox: true,
        webhookUrl: null,
        apiKey: DEMO_KEY,
        // An app's clock only moves forward: it starts here.
        clockOffsetMs: -DAYS * DAY_MS,
      }),
      alreadyExists,
    ),
})

function alreadyExists(): AppError {
  return new AppError('invalid_request', 'the demo already exists: remove it with billing-cli demo --remove')
}

/** What has been made so far. */
interface Progress {
  readonly ctx: Context
  readonly caller: Caller
  app: App
  readonly prices: ReadonlyMap<string, Price>
  /** Their public ids, by the end user's reference. */
  readonly customers: Map<string, string>
  /** The last transaction that an end user paid. */
  readonly paid: Map<string, number>
}

async function sell(ctx: Context, caller: Caller, app: App): Promise<Map<string, Price>> {
  const prices = new Map<string, Price>()
  for (const plan of PLANS) {
    const made = await perform(ctx, caller, createPlan, plan, { app })
    for (const price of made.prices) prices.set(`${plan.code} ${price.name ?? ''}`, price)
  }
  return prices
}

/** By whole seconds, so that the clock ends exactly at the present. Stores expired subscriptions, as the daemon does. */
async function passDays({ ctx, caller, app }: Progress, days: number): Promise<App> {
  await advanceTestClock(ctx, caller, app, { advance_seconds: (days * DAY_MS) / SECOND_MS })
  return getApp(ctx.db, app.id)
}

async function performStep(progress: Progress, scenario: Scenario, step: Step): Promise<void> {
  const { ctx, caller, app } = progress
  const { externalRef } = scenario
  switch (step.action) {
    case 'pay':
      return buy(progress, scenario, { price: priceOf(progress, step.price), isTrial: false, part: step.part })
    case 'start trial':
      return buy(progress, scenario, { price: priceOf(progress, step.price), isTrial: true })
    case 'switch plan': {
      const price_id = formatId('price', priceOf(progress, step.price).id)
      await perform(ctx, caller, switchPlan, { price_id }, { app, externalRef })
      return
    }
    case 'buy once': {
      const bought = { amount: step.amount, currency: 'VND' }
      const choice = { mode: 'payment', plan_ref: 'e-book', plan_name: step.name, ...bought }
      return pay(progress, scenario, await checkOut(progress, scenario, choice), bought)
    }
    case 'refund': {
      const transactionId = progress.paid.get(externalRef) ?? 0
      const refund = { action: 'refund', note: step.note, reference: `demo_${transactionId}` } as const
      // Nobody waits for money that never was; a refund that waits would leave half a history.
      const unlimited = { ...ctx, config: { ...ctx.config, refundLimit: new Map<string, number>() } }
      await resolveTransaction(unlimited, caller, { transactionId, ...refund })
      await perform(ctx, caller, endSubscription, { note: step.note }, { app, externalRef })
    }
  }
}

function priceOf({ prices }: Progress, [code, name]: PriceName): Price {
  const price = prices.get(`${code} ${name}`)
  if (!price) throw new Error(`the demo sells no ${code} ${name}`)
  return price
}

interface Purchase {
  readonly price: Price
  readonly isTrial: boolean
  readonly part?: number | undefined
}

async function buy(progress: Progress, scenario: Scenario, { price, isTrial, part }: Purchase): Promise<void> {
  const { ctx, caller, app } = progress
  const { externalRef } = scenario
  const choice = { mode: 'subscription', price_id: formatId('price', price.id), skip_trial: !isTrial }
  const transactionId = await checkOut(progress, scenario, choice)
  await pay(progress, scenario, transactionId, { amount: part ?? price.amount, currency: price.currency })
  if (part === undefined) await perform(ctx, caller, setReminders, { reminders: 'off' }, { app, externalRef })
}

/** Opens a checkout for the scenario's customer. Returns the transaction to pay; null if a free trial began. */
async function checkOut(progress: Progress, scenario: Scenario, choice: object): Promise<number | null> {
  const { ctx, caller, app } = progress
  const urls = { success_url: ctx.config.baseUrl, cancel_url: ctx.config.baseUrl }
  const who = { external_ref: scenario.externalRef, customer_id: await customerOf(progress, scenario) }
  const session = await perform(
    ctx,
    caller,
    createCheckoutSession,
    { ...urls, ...who, ...choice },
    { app, endUser: null },
  )
  return session.transaction_id
}

async function customerOf(
  { ctx, caller, app, customers }: Progress,
  { externalRef, name, locale }: Scenario,
): Promise<string> {
  const known = customers.get(externalRef)
  if (known !== undefined) return known
  // Mail to this domain is never delivered, even if somebody turns reminders on.
  const fields = { name, email: `${externalRef}@demo.example`, merchant_customer_id: externalRef, locale }
  const customerId = formatId('cus', (await perform(ctx, caller, createCustomer, fields, { app })).id)
  customers.set(externalRef, customerId)
  return customerId
}

/**
 * Pays as the test method does, but at the app's own time: revenue is grouped by the month of payment, which would otherwise be the same
 * for all payments.
 */
async function pay(
  { ctx, app, paid }: Progress,
  { externalRef }: Scenario,
  transactionId: number | null,
  money: { readonly amount: number; readonly currency: string },
): Promise<void> {
  if (transactionId === null) return
  const { code } = sandboxProvider()
  await perform(ctx, provider(code), confirmPaymentCommand, undefined, {
    provider: code,
    events: [],
    reference: `${code}_${transactionId}`,
    transactionId,
    ...money,
    paidAt: asRealTime(appNow(app, ctx.clock.now())),
  })
  paid.set(externalRef, transactionId)
}
