import type { PayOS } from '@payos/node'
import type { Config } from '#config/config.ts'
import type { Context } from '#context.ts'
import { providerError } from '#providers/account-unavailable.ts'
import type { AppError } from '#shared/errors.ts'
import type { PayosCredentials } from './keys.ts'

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
export interface PayosFailure {
  readonly kind: 'unreachable' | 'refused'
  readonly type: string
  /** PayOS's own code, such as 231 for an order code that is taken. */
  readonly code: string | null
  readonly httpStatus: number | null
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

/** Makes a call, counts it and logs its failure. Throws the SDK's error. */
export async function callPayos<T>(ctx: Context, call: string, run: () => Promise<T>): Promise<T> {
  try {
    const answer = await run()
    ctx.count('provider_calls_total', { provider: 'payos', outcome: 'ok' })
    return answer
  } catch (thrown) {
    const failure = payosFailureOf(thrown)
    ctx.count('provider_calls_total', { provider: 'payos', outcome: failure.kind })
    ctx.log.warn({ provider: 'payos', call, ...failure }, 'a call to the bank-transfer provider failed')
    throw thrown
  }
}

/** 502 `provider_error` with a message for the payer. */
export function payosProviderError(failure: PayosFailure): AppError {
  const what =
    failure.kind === 'unreachable'
      ? 'the bank-transfer provider cannot be reached'
      : 'the bank-transfer provider did not accept the payment request'
  const { httpStatus, type } = failure
  const isConnectionError = type === 'ConnectionError' || type === 'ConnectionTimeoutError'
  return providerError(`${what}; please try again`, { httpStatus, isConnectionError })
}
