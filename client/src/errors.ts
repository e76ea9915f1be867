import type { ErrorBody } from './types.ts'

/** The error codes of the API. Later versions may add more. */
export type ErrorCode = ErrorBody['error']['code']

/** The base class of this client's errors. */
export class PaygateError extends Error {
  override name = 'PaygateError'
}

/** The service refused the request. */
export class ApiError extends PaygateError {
  override name = 'ApiError'
  readonly status: number
  readonly code: ErrorCode
  /** The dotted path of the invalid field, or null. */
  readonly field: string | null
  /** Quote it when you report a problem. Null if a proxy answered instead of the service. */
  readonly requestId: string | null

  constructor(status: number, body: ErrorBody['error'] | null) {
    super(body?.message ?? `the service answered ${status}`)
    this.status = status
    this.code = body?.code ?? 'internal_error'
    this.field = body?.field ?? null
    this.requestId = body?.request_id ?? null
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
