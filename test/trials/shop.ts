import { request } from 'undici'
import type { Context } from '#context.ts'
import type { Method } from '#providers/providers.ts'
import { TestClock } from '../support/context.ts'
import type { DaemonProcess } from '../support/daemon-process.ts'
import { aCheckout, aCustomer, anApp, aPlan, paid, priceId, tokenOf, type TestApp } from '../support/factories.ts'
import { mapConcurrently } from '../support/map-concurrently.ts'
import type { Receiver } from '../support/receiver.ts'

export interface Shop {
  readonly app: TestApp
  /** The id of a monthly price. */
  readonly price: string
}

/** Close enough to the end of a month that the reminder three days before it is due. */
const BEGAN_DAYS_AGO = 28

/** A shop whose webhooks the receiver gets and verifies. */
export async function aShopWithWebhooks(ctx: Context, receiver: Receiver): Promise<Shop> {
  const app = await anApp(ctx, { webhookUrl: receiver.url })
  receiver.secret = app.webhookSecret
  return { app, price: priceId(await aPlan(ctx, app)) }
}

/** Opens so many checkouts, each of an end user of its own, such as `name-0`. Returns their tokens. */
export async function openCheckouts(
  ctx: Context,
  { app, price }: Shop,
  name: string,
  count: number,
): Promise<string[]> {
  return mapConcurrently(numbered(name, count), async (ref) =>
    tokenOf(await aCheckout(ctx, app, { external_ref: ref, price_id: price })),
  )
}

/** Subscriptions with customers, such as `name-0`, whose first reminder is due. */
export async function remindersFallDue(ctx: Context, shop: Shop, name: string, count: number): Promise<void> {
  await mapConcurrently(numbered(name, count), (ref) => aReminderFallsDue(ctx, shop, ref))
}

/** A subscription with a customer whose first reminder is due. */
export async function aReminderFallsDue(ctx: Context, { app, price }: Shop, ref: string): Promise<void> {
  const past = { ...ctx, clock: TestClock.daysAgo(BEGAN_DAYS_AGO) }
  const customer = await aCustomer(past, app, { email: `${ref}@example.com` })
  await paid(past, app, { external_ref: ref, price_id: price, customer_id: `cus_${customer.id}` })
}

/** The payer of a checkout chooses a method on the hosted page. */
export async function choose(
  { url }: Pick<DaemonProcess, 'url'>,
  token: string,
  method: Method,
): Promise<{ status: number; text: string }> {
  const answer = await request(`${url}/checkout/${token}/resolve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ payment_method: method }),
  })
  return { status: answer.statusCode, text: await answer.body.text() }
}

/** As `choose`. Throws if the service refuses. */
export async function chooseAccepted(
  service: Pick<DaemonProcess, 'url'>,
  token: string,
  method: Method,
): Promise<void> {
  const { status, text } = await choose(service, token, method)
  if (status !== 200) throw new Error(`the ${method} method was answered ${status}: ${text}`)
}

function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, number) => `${name}-${number}`)
}
