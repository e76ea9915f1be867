import type { ErrorCode } from '#shared/errors.ts'

/** What each error code means, in Markdown. */
export const ERROR_WORDS: Readonly<Record<ErrorCode, string>> = {
  invalid_request:
    'A field, a query parameter, a header or the body is wrong or unknown: `message` says what, `field` names it.',
  price_not_found: 'The price is unknown, archived, or of an archived plan.',
  payment_method_unavailable:
    'The app has not enabled the payment method, or it cannot take the amount or the currency.',
  promotion_not_valid:
    'The promotion is unknown, archived, over, used up, or not for this plan, currency or end user: `message` says which. Clients of end users read one message for all.',
  unauthorized: 'The key, signature, timestamp or token is missing or wrong.',
  forbidden: 'This kind of app, or its clients, may not make this call.',
  app_disabled: 'An operator disabled the app.',
  not_found: 'The object does not exist, or it belongs to another app.',
  method_not_allowed: 'The address does not support this method: see the `Allow` header.',
  plan_code_taken: 'The app already has a plan with this code.',
  promotion_code_taken: 'The app already has a promotion with this code.',
  already_lifetime: 'The end user owns a lifetime subscription.',
  idempotency_conflict: 'The `Idempotency-Key` was used with another body, or its first request is still running.',
  checkout_expired:
    'The checkout link has expired, the subscription has changed since, so that the payment would not be applied, or a newer checkout took over its promotion.',
  payload_too_large: 'The body is larger than 100 KB.',
  rate_limited:
    'Too many requests, or too many open checkouts of one end user. Nothing was changed: try again after `Retry-After` seconds.',
  internal_error: 'An error in the service. Quote the `request_id`.',
  provider_error: 'The payment provider cannot be reached, or refused the request. Try again.',
  service_unavailable:
    'The database could not complete the work in time. Try again after `Retry-After` seconds, with the same `Idempotency-Key`, because the change may have been committed.',
}
