import type Stripe from 'stripe'
import { z } from 'zod'
import { listAppsWithMethod } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { openCredentials } from '#providers/credentials.ts'
import { noteEvent } from '#providers/note-event.ts'
import type { NoteRefundsOptions } from '#providers/provider.ts'
import { parseNumericId } from '#shared/ids.ts'
import { currencyDecimals, decimalString } from '#shared/money.ts'
import { shuffled } from '#shared/shuffled.ts'
import { addMs, DAY_MS, unixSeconds } from '#shared/time.ts'
import { findTransaction, listPayments } from '#transactions/store.ts'
import { fromStripeAmount } from './amount.ts'
import { callStripe, stripeClient, stripeFault } from './client.ts'
import { CardCredentials } from './credentials.ts'

/** Refunds are listed this far back each time, so that a daemon that was down misses none. */
const LISTED_BACK_MS = 7 * DAY_MS

const Charge = z.looseObject({
  id: z.string().min(1).max(100),
  object: z.literal('charge'),
  amount_refunded: z.number().int().min(0),
  currency: z.string().regex(/^[A-Za-z]{3}$/),
  metadata: z.looseObject({ transaction_id: z.string().optional() }).nullish(),
})

/**
 * Notes a charge of ours that was refunded in the provider's own dashboard: the period stays, and operators see it (contract 4). Our
 * own refunds, and charges of others, are ignored. Each further refund of the same charge is noted once.
 */
export async function noteRefundedCharge(
  ctx: Context,
  appIds: readonly number[],
  object: unknown,
): Promise<'noted' | 'ignored'> {
  const charge = Charge.safeParse(object)
  if (!charge.success || charge.data.amount_refunded === 0) return 'ignored'
  const { id, amount_refunded: refunded, metadata } = charge.data
  const transactionId = parseNumericId(metadata?.transaction_id ?? '')
  const transaction = transactionId === null ? null : await findTransaction(ctx.db, transactionId)
  if (!transaction || !appIds.includes(transaction.appId)) return 'ignored'
  const payments = await listPayments(ctx.db, transaction.id)
  const unrefunded = payments.filter(({ provider, refundedAt }) => provider === 'stripe' && refundedAt === null)
  if (unrefunded.length === 0) return 'ignored'
  const currency = charge.data.currency.toUpperCase()
  const amount = fromStripeAmount(refunded, currency)
  const told = amount === null ? String(refunded) : decimalString(amount, currencyDecimals(currency))
  const isNew = await noteEvent(ctx, {
    provider: 'stripe',
    eventId: `refunded:${id}:${refunded}`,
    eventType: 'charge.refunded',
    appId: transaction.appId,
    transactionId: transaction.id,
    outcome: 'noted',
    note: `${told} ${currency} of the card payment were refunded at Stripe; the period stays`,
  })
  return isNew ? 'noted' : 'ignored'
}

/** Asks Stripe for the refunds of the last days, app by app, and notes those that were made there. Returns how many are new. */
export async function noteRefunds(ctx: Context, options: NoteRefundsOptions = {}): Promise<number> {
  let noted = 0
  // In another order each time: the apps behind one whose listing never ends have their turn too.
  for (const { appId } of shuffled(await listAppsWithMethod(ctx.db, 'card'))) {
    if (options.signal?.aborted) break
    if (options.appId !== undefined && options.appId !== appId) continue
    try {
      noted += await noteRefundsOfApp(ctx, appId)
    } catch (error) {
      const fault = stripeFault(error)
      // Stripe's own messages can quote keys.
      const detail = fault.type === 'unknown' ? { error } : fault
      ctx.log.warn({ appId, ...detail }, 'the refunds of an app could not be listed')
      if (fault.type === 'StripeConnectionError') break
    }
  }
  return noted
}

async function noteRefundsOfApp(ctx: Context, appId: number): Promise<number> {
  const credentials = await openCredentials(ctx, 'card', CardCredentials, appId)
  if (!credentials) return 0
  const stripe = await stripeClient(ctx.config, credentials.secretKey)
  const since = unixSeconds(addMs(ctx.clock.now(), -LISTED_BACK_MS))
  let noted = 0
  await callStripe(ctx, 'refunds.list', async () => {
    const refunds = stripe.refunds.list({ created: { gte: since }, limit: 100, expand: ['data.charge'] })
    for await (const refund of refunds) {
      if (isMade(refund) && (await noteRefundedCharge(ctx, [appId], refund.charge)) === 'noted') noted += 1
    }
  })
  return noted
}

function isMade(refund: Stripe.Refund): boolean {
  return refund.status !== 'failed' && refund.status !== 'canceled'
}
