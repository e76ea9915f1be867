import type { App } from '#apps/store.ts'
import { AppError, invalidField } from '#shared/errors.ts'

interface ClientChoices {
  readonly mode: 'subscription' | 'payment'
  readonly success_url: string
  readonly cancel_url: string
  readonly plan_name?: string | undefined
}

/** Refuses metadata from a client before the rest of its body is checked, whatever the value is (R17). Throws `forbidden`. */
export function refuseClientMetadata(body: unknown): void {
  if (typeof body === 'object' && body !== null && 'metadata' in body)
    throw new AppError('forbidden', 'metadata: only servers that sign their requests may give it')
}

/**
 * Refuses what a client may not choose: the amount of a payment, unless an operator allowed it, and return addresses outside
 * the origins that an operator named (R13, R14). Throws `forbidden` and `invalid_request`.
 */
export function refuseClientChoices(app: App, input: ClientChoices): void {
  if (input.mode === 'payment' && !app.allowsClientAmounts)
    throw new AppError(
      'forbidden',
      'clients of this app may not open checkouts of mode payment: they would choose the amount',
    )
  // The page shows it under the seller's name.
  if (/:\/\/|www\./i.test(input.plan_name ?? '')) throw invalidField('plan_name', 'must not contain an address')
  for (const field of ['success_url', 'cancel_url'] as const) {
    if (app.returnOrigins && !app.returnOrigins.includes(new URL(input[field]).origin))
      throw invalidField(field, 'must have one of the origins that the app allows')
  }
}
