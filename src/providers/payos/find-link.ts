import type { PaymentLink, PayOS } from '@payos/node'
import type { Context } from '#context.ts'
import { openCredentials } from '#providers/credentials.ts'
import type { ProviderSession } from '#providers/store.ts'
import { AppError } from '#shared/errors.ts'
import { callPayos, payosClient, payosFault, payosProviderError } from './client.ts'
import { PayosCredentials } from './credentials.ts'

/** The app's client; throws `payment_method_unavailable` where it has no credentials. */
export async function clientOf(ctx: Context, appId: number): Promise<PayOS> {
  const credentials = await openCredentials(ctx, 'payos', PayosCredentials, appId)
  if (!credentials) throw new AppError('payment_method_unavailable', 'PayOS is not set up for this app')
  return payosClient(ctx.config, credentials)
}

/** The link of one of our sessions, as PayOS has it now; null where it knows none. Throws `provider_error`. */
export async function findLink(ctx: Context, client: PayOS, session: ProviderSession): Promise<PaymentLink | null> {
  try {
    return await callPayos(ctx, 'payment-requests.get', () => client.paymentRequests.get(Number(session.reference)))
  } catch (thrown) {
    const fault = payosFault(thrown)
    // Credentials that are refused say nothing of the order; any other refusal of a read means that there is none.
    if (fault.kind === 'refused' && fault.httpStatus !== 401 && fault.httpStatus !== 403) return null
    throw payosProviderError(fault)
  }
}
