import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { errorBody, newRequestId } from '#http/errors.ts'
import { AppError } from '#shared/errors.ts'

/** Maximum wait for a client that does not read its response. */
const FLUSH_MS = 1000

/**
 * Answers malformed requests, headers that are too large and requests that take too long with the error body (R20), and
 * frees the socket at once (R30).
 */
export function answerClientErrors(server: Server): void {
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Duplex) => {
    if (code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else refuse(socket, code)
  })
  // Refuses CONNECT: this server is no proxy.
  server.on('connect', (_request, socket: Duplex) => refuse(socket))
  // Unknown expectations are ignored (RFC 9110, 10.1.1): Node's own refusal would have no X-Request-Id.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
}

function refuse(socket: Duplex, code?: string): void {
  // An ended socket stays open until its client closes it.
  const deadline = setTimeout(() => socket.destroy(), FLUSH_MS)
  socket.once('close', () => clearTimeout(deadline))
  socket.end(answerTo(code), () => socket.destroy())
}

function answerTo(code: string | undefined): string {
  const requestId = newRequestId()
  const refusal = refusalOf(code)
  const body = JSON.stringify(errorBody(refusal.error, requestId))
  const head = [
    `HTTP/1.1 ${refusal.status}`,
    'Content-Type: application/json; charset=utf-8',
    `X-Request-Id: ${requestId}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

function refusalOf(code = ''): { readonly status: string; readonly error: AppError } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return {
        status: '431 Request Header Fields Too Large',
        error: new AppError('invalid_request', 'the headers are too large'),
      }
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: '408 Request Timeout', error: new AppError('invalid_request', 'the request took too long') }
    default:
      return { status: '400 Bad Request', error: new AppError('invalid_request', 'this is not a valid HTTP request') }
  }
}
