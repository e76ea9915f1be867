import type { PaymentLink, PayOS } from '@payos/node'
import type { Context } from '#context.ts'
import { callProvider, providerError } from '#providers/call-provider.ts'
import type { ProviderSession } from '#providers/store.ts'
import { payosApi, payosClient, payosFailureOf } from './client.ts'
import { payosAccounts } from './accounts.ts'

/** The client of the account that the session was opened under. */
export async function clientOf(ctx: Context, { providerAccountId }: ProviderSession): Promise<PayOS> {
  const { credentials } = await payosAccounts.get(ctx, providerAccountId)
  return payosClient(ctx.config, credentials)
}

/** The link of one of our sessions at PayOS now; null if there is none. Throws `provider_error`. */
export async function findLink(ctx: Context, client: PayOS, session: ProviderSession): Promise<PaymentLink | null> {
  try {
    return await callProvider(ctx, payosApi, 'payment-requests.get', () =>
      client.paymentRequests.get(Number(session.reference)),
    )
  } catch (thrown) {
    const failure = payosFailureOf(thrown)
    // Refused credentials say nothing about the order; any other refusal of a read means that there is none.
    if (failure.kind === 'refused' && failure.httpStatus !== 401 && failure.httpStatus !== 403) return null
    throw providerError(payosApi, thrown)
  }
}
