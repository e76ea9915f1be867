import { connect, type Socket } from 'node:net'
import type { Response } from './api.ts'
import { parsed } from './parsed.ts'

/**
 * Writes these bytes to the service's port and reads one response, for requests that no HTTP library would send. They must ask for
 * `Connection: close`. The status is 0 when the service closes the connection without a response.
 */
export async function sendRaw(
  url: string,
  ...given: readonly (string | Buffer | { readonly onReset: () => void })[]
): Promise<Response> {
  const chunks = given.filter((each) => typeof each === 'string' || Buffer.isBuffer(each))
  const watch = given.find((each) => typeof each === 'object' && 'onReset' in each)
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const received: Buffer[] = []
  const closed = new Promise<void>((resolve) => {
    // After its response, a service resets the connection of a sender that does not stop.
    socket.on('error', () => watch?.onReset()).on('close', () => resolve())
  })
  socket.on('data', (chunk: Buffer) => void received.push(chunk))
  for (const chunk of chunks) await write(socket, chunk)
  await closed
  return parseAnswer(Buffer.concat(received))
}

/** A request's head: the request line, the headers, and the blank line. */
export function head(requestLine: string, headers: readonly (readonly [name: string, value: string])[]): string {
  const lines = [['Host', 'localhost'], ['Connection', 'close'], ...headers].map(([name, value]) => `${name}: ${value}`)
  return [`${requestLine} HTTP/1.1`, ...lines, '', ''].join('\r\n')
}

function write(socket: Socket, chunk: string | Buffer): Promise<void> {
  // Latin-1 keeps each character one byte.
  const bytes = typeof chunk === 'string' ? Buffer.from(chunk, 'latin1') : chunk
  return new Promise((resolve) => {
    socket.once('close', resolve)
    socket.write(bytes, () => resolve())
  })
}

function parseAnswer(received: Buffer): Response {
  // Interim responses (100 Continue) come before the real one.
  const text = received.toString('utf8').replace(/^(HTTP\/1\.1 1\d\d [^\r]*\r\n(?:[^\r]+\r\n)*\r\n)+/, '')
  const [lines = '', ...rest] = text.split('\r\n\r\n')
  const [statusLine = '', ...fields] = lines.split('\r\n')
  const headers = Object.fromEntries(
    fields.map((line) => [line.split(':')[0]!.toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  const body = headers['transfer-encoding'] === 'chunked' ? unchunked(rest.join('\r\n\r\n')) : rest.join('\r\n\r\n')
  return { status: Number(statusLine.split(' ')[1] ?? 0), headers, text: body, body: parsed(body) as Response['body'] }
}

function unchunked(text: string): string {
  const size = Number.parseInt(text, 16)
  if (!(size > 0)) return ''
  const start = text.indexOf('\r\n') + 2
  return text.slice(start, start + size) + unchunked(text.slice(start + size + 2))
}
