import type { PayOS } from '@payos/node'
import type { Config } from '#config.ts'
import type { Context } from '#context.ts'
import { providerError } from '#providers/account-unavailable.ts'
import type { AppError } from '#shared/errors.ts'
import type { PayosCredentials } from './keys.ts'

const API_BASE = 'https://api-merchant.payos.vn'
/** One call, connect to last byte. A payer is waiting, so that two tries must end while they still do. */
const TIMEOUT_MS = 8000
const MAX_RETRIES = 1

/** The SDK for one merchant, loaded when the first PayOS payment needs it. It is silent: its log would carry credentials. */
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

/** What went wrong in a call: `unreachable` may have been done all the same, `refused` was not. */
export interface PayosFault {
  readonly kind: 'unreachable' | 'refused'
  readonly type: string
  /** PayOS's own code, such as 231 for an order code that is taken. */
  readonly code: string | null
  readonly httpStatus: number | null
}

/** Reads what the SDK threw. */
export function payosFault(thrown: unknown): PayosFault {
  const { name, code, status } = thrown as { name?: unknown; code?: unknown; status?: unknown }
  const httpStatus = typeof status === 'number' ? status : null
  return {
    kind: httpStatus === null || httpStatus >= 500 || httpStatus === 429 ? 'unreachable' : 'refused',
    type: typeof name === 'string' ? name : 'unknown',
    code: typeof code === 'string' || typeof code === 'number' ? String(code) : null,
    httpStatus,
  }
}

/** Makes a call, counts it and logs its failure; what is thrown is the SDK's error, for the caller to judge. */
export async function callPayos<T>(ctx: Context, call: string, run: () => Promise<T>): Promise<T> {
  try {
    const answer = await run()
    ctx.count('provider_calls_total', { provider: 'payos', outcome: 'ok' })
    return answer
  } catch (thrown) {
    const fault = payosFault(thrown)
    ctx.count('provider_calls_total', { provider: 'payos', outcome: fault.kind })
    ctx.log.warn({ provider: 'payos', call, ...fault }, 'a call to the bank-transfer provider failed')
    throw thrown
  }
}

/** 502 `provider_error` in words for the payer. */
export function payosProviderError(fault: PayosFault): AppError {
  const what =
    fault.kind === 'unreachable'
      ? 'the bank-transfer provider cannot be reached'
      : 'the bank-transfer provider did not accept the payment request'
  const { httpStatus, type } = fault
  const isConnectionFault = type === 'ConnectionError' || type === 'ConnectionTimeoutError'
  return providerError(`${what}; please try again`, { httpStatus, isConnectionFault })
}
