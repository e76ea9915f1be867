import type { ErrorBody } from './types.ts'

/** What the service calls an error. There may be further codes one day. */
export type ErrorCode = ErrorBody['error']['code']

/** Everything that this client throws on purpose. */
export class PaygateError extends Error {
  override name = 'PaygateError'
}

/** The service refused the request. */
export class ApiError extends PaygateError {
  override name = 'ApiError'
  readonly status: number
  readonly code: ErrorCode
  /** The dotted path of the field at fault, or null. */
  readonly field: string | null
  /** Quote it when you report a fault. Null where a proxy answered in place of the service. */
  readonly requestId: string | null

  constructor(status: number, body: ErrorBody['error'] | null) {
    super(body?.message ?? `the service answered ${status}`)
    this.status = status
    this.code = body?.code ?? 'internal_error'
    this.field = body?.field ?? null
    this.requestId = body?.request_id ?? null
  }
}

/** No answer came: the network failed, or the time was up. It is not known whether the request was carried out. */
export class ConnectionError extends PaygateError {
  override name = 'ConnectionError'
}

/** A webhook that is not genuine, or too old. */
export class WebhookError extends PaygateError {
  override name = 'WebhookError'
}
