import type { RequestListener } from 'node:http'
import { newRequestId } from '#http/errors.ts'

/** Answers while the database is being opened; `/healthz` too, since who waits for it means to call the API next. */
export const answerWhileStarting: RequestListener = (_request, response) => {
  response.writeHead(503, {
    'Content-Type': 'application/json; charset=utf-8',
    'X-Request-Id': newRequestId(),
    'Retry-After': '1',
  })
  response.end(JSON.stringify({ status: 'not_ready', reason: 'starting' }))
}
