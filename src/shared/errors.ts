import { truncate } from './truncate.ts'

/** Every error a caller can see: its code, and the HTTP status that code always has (R21). */
export const ERROR_STATUS = {
  invalid_request: 400,
  price_not_found: 400,
  payment_method_unavailable: 400,
  promotion_not_valid: 400,
  unauthorized: 401,
  forbidden: 403,
  app_disabled: 403,
  not_found: 404,
  method_not_allowed: 405,
  plan_code_taken: 409,
  promotion_code_taken: 409,
  already_lifetime: 409,
  idempotency_conflict: 409,
  checkout_expired: 410,
  payload_too_large: 413,
  rate_limited: 429,
  internal_error: 500,
  provider_error: 502,
  service_unavailable: 503,
} as const
export type ErrorCode = keyof typeof ERROR_STATUS
export const ERROR_CODES = Object.keys(ERROR_STATUS) as readonly ErrorCode[]

export interface AppErrorOptions extends ErrorOptions {
  /** Dotted path of the invalid field, indexes as numbers: `prices.0.trial.amount`. */
  readonly field?: string
  /** Extra response headers, such as `Retry-After` or `Allow`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** An error that the caller is meant to see. Anything else that is thrown answers 500. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly field: string | null
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options)
    this.code = code
    this.field = options.field === undefined ? null : clipped(options.field)
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return ERROR_STATUS[this.code]
  }
}

/** Maximum number of characters of a caller's text that an answer repeats. */
const MAX_REPEATED = 200

/** The text, cut to 200 characters with a final `…` where it is longer. */
export function clipped(text: string): string {
  return truncate(text, MAX_REPEATED) === text ? text : `${truncate(text, MAX_REPEATED - 1)}…`
}

/** 400 `invalid_request` that names the field in its message and in `field`, at most 200 characters of it. */
export function invalidField(field: string, rule: string): AppError {
  return new AppError('invalid_request', `${clipped(field)}: ${rule}`, { field })
}

/** 404 `not_found`; `what` is a noun such as `plan`. */
export function notFound(what: string): AppError {
  return new AppError('not_found', `${what} not found`)
}

/** Returns the row; throws `not_found`, which names `what`, if there is none. */
export function found<T>(row: T | null | undefined, what: string): T {
  if (row === null || row === undefined) throw notFound(what)
  return row
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
