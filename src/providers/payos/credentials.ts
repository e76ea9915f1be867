import type { Config } from '#config.ts'
import { defineCredentials, type CredentialsCheck } from '#providers/credentials-spec.ts'
import { payosClient, payosFault } from './client.ts'
import { PayosCredentials } from './keys.ts'

export const payosCredentials = defineCredentials({
  schema: PayosCredentials,
  questions: [
    { field: 'clientId', variable: 'BILLING_CLI_PAYOS_CLIENT_ID', message: 'PayOS client id:' },
    { field: 'apiKey', variable: 'BILLING_CLI_PAYOS_API_KEY', message: 'PayOS API key:' },
    { field: 'checksumKey', variable: 'BILLING_CLI_PAYOS_CHECKSUM_KEY', message: 'PayOS checksum key:' },
  ],
  check: checkPayosCredentials,
})

/** An order code of the length of ours that is never drawn: transaction 0 does not exist. */
const NO_ORDER = 1

/** Tries client id and API key at PayOS by asking for an order that does not exist. The checksum key shows in the first payment. */
async function checkPayosCredentials(
  config: Pick<Config, 'payosApiBase'>,
  credentials: PayosCredentials,
): Promise<CredentialsCheck> {
  const client = await payosClient(config, credentials)
  try {
    await client.paymentRequests.get(NO_ORDER)
  } catch (thrown) {
    const fault = payosFault(thrown)
    if (fault.httpStatus === 401 || fault.httpStatus === 403) {
      return { result: 'refused', message: 'PayOS does not know this client id and API key' }
    }
    if (fault.kind === 'unreachable') {
      return { result: 'unreachable', message: 'PayOS cannot be reached now; the credentials were not checked' }
    }
  }
  return { result: 'ok', message: 'PayOS accepts client id and API key; the checksum key shows in the first payment' }
}
