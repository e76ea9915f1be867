import { z } from 'zod'
import type { ProviderSession } from '#providers/store.ts'
import { toStripeAmount } from './amount.ts'

/** The fields of a Checkout Session that we use, from a notification or a look-up. */
export const CardSession = z.looseObject({
  id: z.string().min(1).max(191),
  object: z.literal('checkout.session').optional(),
  mode: z.string().nullish(),
  status: z.string().nullish(),
  payment_status: z.string(),
  amount_total: z.number().nullish(),
  currency: z.string().nullish(),
  payment_intent: z.union([z.string(), z.looseObject({ id: z.string() })]).nullish(),
  client_reference_id: z.string().nullish(),
  metadata: z.looseObject({ transaction_id: z.string().optional() }).nullish(),
})
export type CardSession = z.infer<typeof CardSession>

/** Whether the money has been received. `no_payment_required` is not what we asked for; `unpaid` is reported again once it is paid. */
export function isPaid(session: CardSession): boolean {
  return session.payment_status === 'paid'
}

/** How a paid session differs from the one that we opened; empty if it does not (R211). */
export function differences(session: CardSession, stored: ProviderSession): string[] {
  const found: string[] = []
  const asked = toStripeAmount(stored.amount, stored.currency)
  if (session.amount_total !== asked) {
    found.push(`amount_total is ${session.amount_total ?? 'missing'} (requested: ${asked ?? 'none'})`)
  }
  if (session.currency?.toUpperCase() !== stored.currency) {
    found.push(`currency is ${session.currency ?? 'missing'} (requested: ${stored.currency})`)
  }
  if (session.mode && session.mode !== 'payment') found.push(`mode is ${session.mode}`)
  for (const named of [session.client_reference_id, session.metadata?.transaction_id]) {
    if (named && named !== String(stored.transactionId)) found.push('it names another transaction')
  }
  return found
}

/** The id of the payment intent of a session or a refund; null if there is none yet. */
export function intentOf(object: {
  readonly payment_intent?: string | { readonly id: string } | null | undefined
}): string | null {
  const { payment_intent: intent } = object
  return typeof intent === 'string' ? intent : (intent?.id ?? null)
}
