import { AppError } from '#shared/errors.ts'

/** How a call to a provider failed. */
export interface CallFailure {
  /** Null if no answer came. */
  readonly httpStatus: number | null
  /** No answer came because the connection failed or timed out. */
  readonly isConnectionError: boolean
}

/** 502 `provider_error` that every call for the same account would get now: the provider does not answer, or refuses the credentials. */
export class AccountUnavailable extends AppError {
  /** Whether the provider does not answer, so that other accounts would fail too. */
  readonly isUnreachable: boolean
  /** For operators. */
  readonly reason: string

  constructor(message: string, { httpStatus }: CallFailure) {
    super('provider_error', message)
    this.isUnreachable = httpStatus === null || httpStatus >= 500
    this.reason = httpStatus === null ? 'no answer' : `answered ${httpStatus}`
  }
}

/** 502 `provider_error` with a message for the payer; an `AccountUnavailable` unless the failure is about one session (R214). */
export function providerError(message: string, failure: CallFailure): AppError {
  const { httpStatus, isConnectionError } = failure
  const isOfAccount =
    httpStatus === null ? isConnectionError : httpStatus >= 500 || httpStatus === 401 || httpStatus === 403
  return isOfAccount ? new AccountUnavailable(message, failure) : new AppError('provider_error', message)
}
