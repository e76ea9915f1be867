import { AppError } from '#shared/errors.ts'

/** How a call to a provider failed. */
export interface CallFailure {
  /** Null where no answer came. */
  readonly httpStatus: number | null
  /** No answer came for want of a connection or of time. */
  readonly isConnectionFault: boolean
}

/** 502 `provider_error` that every call for the same account would meet now: the provider does not answer, or refuses the credentials. */
export class AccountUnavailable extends AppError {
  /** Whether the provider is away, which other accounts would find too. */
  readonly isProviderAway: boolean
  /** For operators. */
  readonly reason: string

  constructor(message: string, { httpStatus }: CallFailure) {
    super('provider_error', message)
    this.isProviderAway = httpStatus === null || httpStatus >= 500
    this.reason = httpStatus === null ? 'no answer' : `answered ${httpStatus}`
  }
}

/** 502 `provider_error` with words for the payer: `AccountUnavailable` where it is not about the one session (contract 7). */
export function providerError(message: string, failure: CallFailure): AppError {
  const { httpStatus, isConnectionFault } = failure
  const isOfAccount =
    httpStatus === null ? isConnectionFault : httpStatus >= 500 || httpStatus === 401 || httpStatus === 403
  return isOfAccount ? new AccountUnavailable(message, failure) : new AppError('provider_error', message)
}
