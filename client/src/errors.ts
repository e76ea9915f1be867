import type { ErrorBody } from './types.ts'

/** The error codes of the API, and `unexpected_response`: what answered is not the API. Later versions may add more. */
export type ErrorCode = ErrorBody['error']['code'] | 'unexpected_response'

/** The base class of this client's errors. */
export class PaygateError extends Error {
  override name = 'PaygateError'
}

interface ErrorFields {
  readonly code: ErrorCode
  readonly message: string
  readonly field?: string | null
  readonly request_id?: string
}

/** The service refused the request, or something else answered in its place. */
export class ApiError extends PaygateError {
  override name = 'ApiError'
  /** The HTTP status; 0 where the runtime hides that of a redirect. */
  readonly status: number
  readonly code: ErrorCode
  /** The dotted path of the invalid field, or null. */
  readonly field: string | null
  /** Quote it when you report a problem. Null if something else answered instead of the service. */
  readonly requestId: string | null

  constructor(status: number, { code, message, field = null, request_id = '' }: ErrorFields) {
    super(message)
    this.status = status
    this.code = code
    this.field = field
    this.requestId = request_id === '' ? null : request_id
  }
}

/** No response came: the network failed, or the request timed out. It may or may not have been carried out. */
export class ConnectionError extends PaygateError {
  override name = 'ConnectionError'
}

/** A webhook that is forged, or too old. */
export class WebhookError extends PaygateError {
  override name = 'WebhookError'
}
