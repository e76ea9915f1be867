import type { RequestListener } from 'node:http'
import { errorBody, newRequestId } from '#http/errors.ts'
import { AppError } from '#shared/errors.ts'

const STARTING = new AppError('service_unavailable', 'the service is starting: try again in 1 s')

/** Answers 503 while the database is being opened; `/healthz` too, because its caller calls the API next. */
export const answerWhileStarting: RequestListener = ({ url = '' }, response) => {
  const requestId = newRequestId()
  const isProbe = ['/healthz', '/readyz'].includes(url.split('?')[0] ?? '')
  response.writeHead(STARTING.status, {
    'Content-Type': 'application/json; charset=utf-8',
    'X-Request-Id': requestId,
    'Retry-After': '1',
  })
  response.end(JSON.stringify(isProbe ? { status: 'not_ready', reason: 'starting' } : errorBody(STARTING, requestId)))
}
