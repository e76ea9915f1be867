import type { Config } from '#config/config.ts'
import { defineCredentials, type CredentialsCheck } from '#providers/credentials-spec.ts'
import { payosClient, payosFailureOf } from './client.ts'
import { PayosCredentials } from './accounts.ts'

export const payosCredentials = defineCredentials({
  schema: PayosCredentials,
  questions: [
    { field: 'clientId', variable: 'BILLING_CLI_PAYOS_CLIENT_ID', message: 'PayOS client id:' },
    { field: 'apiKey', variable: 'BILLING_CLI_PAYOS_API_KEY', message: 'PayOS API key:' },
    { field: 'checksumKey', variable: 'BILLING_CLI_PAYOS_CHECKSUM_KEY', message: 'PayOS checksum key:' },
  ],
  check: checkPayosCredentials,
})

/** An order code that we never use: ours have at least seven digits. */
const NO_ORDER = 1

/** Tries client id and API key at PayOS with an order that does not exist. Only the first payment can prove the checksum key. */
async function checkPayosCredentials(
  config: Pick<Config, 'payosApiBase'>,
  credentials: PayosCredentials,
): Promise<CredentialsCheck> {
  const client = await payosClient(config, credentials)
  try {
    await client.paymentRequests.get(NO_ORDER)
  } catch (thrown) {
    const failure = payosFailureOf(thrown)
    if (failure.httpStatus === 401 || failure.httpStatus === 403) {
      return { result: 'refused', message: 'PayOS does not know this client id and API key' }
    }
    if (failure.kind === 'unreachable') {
      return { result: 'unreachable', message: 'PayOS cannot be reached now; the credentials were not checked' }
    }
  }
  return {
    result: 'ok',
    message: 'PayOS accepts client id and API key; only the first payment can prove the checksum key',
  }
}
