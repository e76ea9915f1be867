import type Stripe from 'stripe'
import type { Config } from '#config/config.ts'
import type { Context } from '#context.ts'
import { providerError } from '#providers/account-unavailable.ts'
import type { AppError } from '#shared/errors.ts'

/** One call, connect to last byte. A payer waits for it, also for the retry. */
const TIMEOUT_MS = 8000
const MAX_RETRIES = 1

const clients = new Map<string, Stripe>()

/** The SDK for one secret key, loaded when the first card payment needs it; connections are kept per key. */
export async function stripeClient(config: Pick<Config, 'stripeApiBase'>, secretKey: string): Promise<Stripe> {
  const cached = clients.get(`${config.stripeApiBase ?? ''} ${secretKey}`)
  if (cached) return cached
  const { Stripe } = await import('stripe')
  const client = new Stripe(secretKey, {
    timeout: TIMEOUT_MS,
    maxNetworkRetries: MAX_RETRIES,
    telemetry: false,
    ...(config.stripeApiBase === null ? {} : addressOf(config.stripeApiBase)),
  })
  clients.set(`${config.stripeApiBase ?? ''} ${secretKey}`, client)
  return client
}

function addressOf(base: string): { host: string; port: number; protocol: 'http' | 'https' } {
  const { hostname, port, protocol } = new URL(base)
  const scheme = protocol === 'http:' ? 'http' : 'https'
  return { host: hostname, port: Number(port) || (scheme === 'http' ? 80 : 443), protocol: scheme }
}

/** How a call failed. `unreachable`: Stripe may still have done it. `refused`: Stripe answered. */
export interface StripeFailure {
  readonly kind: 'unreachable' | 'refused'
  readonly type: string
  readonly code: string | null
  readonly param: string | null
  readonly httpStatus: number | null
  readonly requestId: string | null
}

/** Reads an error of the SDK, without its message, which can quote keys and addresses. */
export function stripeFailureOf(thrown: unknown): StripeFailure {
  const { type, code, param, statusCode, requestId } = thrown as Partial<Stripe.errors.StripeError>
  const hasAnswer = typeof statusCode === 'number'
  return {
    kind: hasAnswer ? 'refused' : 'unreachable',
    type: typeof type === 'string' ? type : 'unknown',
    code: code ?? null,
    param: param ?? null,
    httpStatus: hasAnswer ? statusCode : null,
    requestId: requestId ?? null,
  }
}

/** Whether Stripe decided nothing: a request under the same key is running (409), or there are too many requests (429). */
export function isUndecided({ httpStatus }: StripeFailure): boolean {
  return httpStatus === 409 || httpStatus === 429
}

/** Makes a call, counts it and logs its failure. Throws the SDK's error. */
export async function callStripe<T>(ctx: Context, call: string, run: () => Promise<T>): Promise<T> {
  try {
    const answer = await run()
    ctx.count('provider_calls_total', { provider: 'stripe', outcome: 'ok' })
    return answer
  } catch (thrown) {
    const failure = stripeFailureOf(thrown)
    ctx.count('provider_calls_total', { provider: 'stripe', outcome: failure.kind })
    ctx.log.warn({ provider: 'stripe', call, ...failure }, 'a call to the card provider failed')
    throw thrown
  }
}

/** 502 `provider_error` with a message for the payer. */
export function cardProviderError(failure: StripeFailure): AppError {
  const what =
    failure.kind === 'unreachable'
      ? 'the card provider cannot be reached'
      : 'the card provider did not accept the payment request'
  const { httpStatus, type } = failure
  const isConnectionError = type === 'StripeConnectionError'
  return providerError(`${what}; nothing was charged, please try again`, { httpStatus, isConnectionError })
}
