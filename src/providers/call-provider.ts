import type { Context } from '#context.ts'
import { AppError } from '#shared/errors.ts'

/** How a call to a provider failed, without the SDK's message, which can quote keys and addresses. */
export interface CallFailure {
  /** `unreachable`: the provider may still have done what it was asked. */
  readonly kind: 'unreachable' | 'refused'
  /** The SDK's name of the error. */
  readonly type: string
  /** Null if no answer came. */
  readonly httpStatus: number | null
}

/** What all calls to one provider share. */
export interface ProviderApi {
  /** The provider's code. */
  readonly code: string
  /** For payers, such as `the card provider`. */
  readonly name: string
  /** What a payer reads after the cause of a failure. */
  readonly advice: string
  /** The types of failures by which the SDK reports that the connection failed or timed out. */
  readonly connectionErrors: readonly string[]
  /** Reads an error of the SDK. */
  failureOf(thrown: unknown): CallFailure
  logFailure(ctx: Context, fields: CallFailure & { readonly provider: string; readonly call: string }): void
}

/** Makes a call, counts it and logs its failure. Throws the SDK's error. */
export async function callProvider<T>(ctx: Context, api: ProviderApi, call: string, run: () => Promise<T>): Promise<T> {
  const provider = api.code
  try {
    const answer = await run()
    ctx.count('provider_calls_total', { provider, outcome: 'ok' })
    return answer
  } catch (thrown) {
    const failure = api.failureOf(thrown)
    ctx.count('provider_calls_total', { provider, outcome: failure.kind })
    api.logFailure(ctx, { provider, call, ...failure })
    throw thrown
  }
}

/**
 * 502 `provider_error` that affects every call for the account: the provider does not answer, or refuses the credentials. A 5xx answer
 * counts too, although it may affect only one call.
 */
export class AccountUnavailable extends AppError {
  /** Whether the provider does not answer, so that other accounts would fail too. */
  readonly isUnreachable: boolean
  /** Whether it answered 5xx. */
  readonly isServerError: boolean
  /** For operators. */
  readonly reason: string

  constructor(message: string, httpStatus: number | null) {
    super('provider_error', message)
    this.isServerError = httpStatus !== null && httpStatus >= 500
    this.isUnreachable = httpStatus === null || this.isServerError
    this.reason = httpStatus === null ? 'no answer' : `answered ${httpStatus}`
  }
}

/**
 * 502 `provider_error` for an error of the SDK, with a message for the payer; an `AccountUnavailable` unless the failure is about one
 * session (R214).
 */
export function providerError(api: ProviderApi, thrown: unknown): AppError {
  const { kind, type, httpStatus } = api.failureOf(thrown)
  const cause = kind === 'unreachable' ? 'cannot be reached' : 'did not accept the payment request'
  const message = `${api.name} ${cause}; ${api.advice}`
  const isOfAccount =
    httpStatus === null
      ? api.connectionErrors.includes(type)
      : httpStatus >= 500 || httpStatus === 401 || httpStatus === 403
  return isOfAccount ? new AccountUnavailable(message, httpStatus) : new AppError('provider_error', message)
}
