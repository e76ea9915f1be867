import { randomUUID } from 'node:crypto'
import type { Middleware } from 'koa'
import type { Context } from '#context.ts'
import { isDatabaseBusy } from '#db/database-error.ts'
import { AppError } from '#shared/errors.ts'

/** Sent if the database could not serve a caller. */
const RETRY_AFTER_SECONDS = 1

/** What a request carries through the middlewares. */
export interface RequestState {
  requestId: string
}

export function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '')}`
}

/** Gives each request an id for its response and its log lines. */
export const requestIds: Middleware<RequestState> = async (http, next) => {
  http.state.requestId = newRequestId()
  http.set('X-Request-Id', http.state.requestId)
  await next()
}

/** The error body of every answer that refuses (R20). */
export function errorBody(error: AppError, requestId: string): object {
  const { code, message, field } = error
  return { success: false, error: { code, message, field, request_id: requestId } }
}

/** Turns anything that is thrown into the error envelope. Answers errors other than `AppError` without details; see `asAppError`. */
export function errorEnvelope(ctx: Context): Middleware<RequestState> {
  return async (http, next) => {
    try {
      await next()
    } catch (thrown) {
      const error = asAppError(ctx, thrown, http.state.requestId, placeOf(http))
      http.status = error.status
      http.set(error.headers)
      http.body = errorBody(error, http.state.requestId)
    }
  }
}

/** Method and route of a request for the log, never its path: paths hold tokens. */
export function placeOf(http: { readonly method: string }): string {
  const route = (http as { _matchedRoute?: unknown })._matchedRoute
  return `${http.method} ${typeof route === 'string' ? route : 'unknown'}`
}

/** The error that the caller may see. Logs errors on our side. */
export function asAppError(ctx: Context, thrown: unknown, requestId: string, place: string): AppError {
  if (thrown instanceof AppError) {
    if (thrown.status >= 500) ctx.log.error({ error: thrown, requestId, place }, 'a request failed')
    return thrown
  }
  if (isClientError(thrown)) return new AppError('invalid_request', 'the request cannot be read')
  if (isDatabaseBusy(thrown)) {
    ctx.log.warn({ error: thrown, requestId, place }, 'the database could not serve a request')
    const headers = { 'Retry-After': String(RETRY_AFTER_SECONDS) }
    return new AppError('service_unavailable', `not possible at this moment: try again in ${RETRY_AFTER_SECONDS} s`, {
      headers,
    })
  }
  ctx.log.error({ error: thrown, requestId, place }, 'a request failed')
  return new AppError('internal_error', `something went wrong on our side; quote ${requestId} when you report it`)
}

/** Errors of the HTTP parser and of path decoding, caused by the request. */
function isClientError(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false
  const { status, code } = thrown as { status?: unknown; code?: unknown }
  // Node's error for a request whose sender disconnected. A reset of one of our own connections, for example to the database, has another
  // message.
  const isCutOff = code === 'ECONNRESET' && thrown.message === 'aborted'
  return status === 400 || isCutOff || code === 'ERR_HTTP_REQUEST_TIMEOUT' || thrown instanceof URIError
}
