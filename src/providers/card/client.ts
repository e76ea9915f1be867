import type Stripe from 'stripe'
import type { Config } from '#config/config.ts'
import type { CallFailure, ProviderApi } from '#providers/call-provider.ts'

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
export interface StripeFailure extends CallFailure {
  readonly code: string | null
  readonly param: string | null
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

export const stripeApi: ProviderApi = {
  code: 'stripe',
  name: 'the card provider',
  advice: 'nothing was charged, please try again',
  connectionErrors: ['StripeConnectionError'],
  failureOf: stripeFailureOf,
  logFailure: ({ log }, fields) => log.warn(fields, 'a call to the card provider failed'),
}
