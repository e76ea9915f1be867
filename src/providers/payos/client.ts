import type { PayOS } from '@payos/node'
import type { Config } from '#config/config.ts'
import type { CallFailure, ProviderApi } from '#providers/call-provider.ts'
import type { PayosCredentials } from './accounts.ts'

const API_BASE = 'https://api-merchant.payos.vn'
/** One call, connect to last byte. A payer waits for it, also for the retry. */
const TIMEOUT_MS = 8000
const MAX_RETRIES = 1

/** The SDK for one merchant, loaded when the first PayOS payment needs it. Its log is off: it would contain credentials. */
export async function payosClient(config: Pick<Config, 'payosApiBase'>, credentials: PayosCredentials): Promise<PayOS> {
  const sdk = await import('@payos/node')
  return new sdk.PayOS({
    ...credentials,
    partnerCode: null,
    baseURL: config.payosApiBase ?? API_BASE,
    timeout: TIMEOUT_MS,
    maxRetries: MAX_RETRIES,
    logLevel: 'off',
    // A redirect would carry the credentials to another host.
    fetchOptions: { redirect: 'error' },
  })
}

/** How a call failed. `unreachable`: PayOS may still have done it. `refused`: it did not. */
export interface PayosFailure extends CallFailure {
  /** PayOS's own code, such as 231 for an order code that is taken. */
  readonly code: string | null
}

/** Reads an error of the SDK. */
export function payosFailureOf(thrown: unknown): PayosFailure {
  const { name, code, status } = thrown as { name?: unknown; code?: unknown; status?: unknown }
  const httpStatus = typeof status === 'number' ? status : null
  return {
    kind: httpStatus === null || httpStatus >= 500 || httpStatus === 429 ? 'unreachable' : 'refused',
    type: typeof name === 'string' ? name : 'unknown',
    code: typeof code === 'string' || typeof code === 'number' ? String(code) : null,
    httpStatus,
  }
}

export const payosApi: ProviderApi = {
  code: 'payos',
  name: 'the bank-transfer provider',
  advice: 'please try again',
  connectionErrors: ['ConnectionError', 'ConnectionTimeoutError'],
  failureOf: payosFailureOf,
  logFailure: ({ log }, fields) => log.warn(fields, 'a call to the bank-transfer provider failed'),
}
