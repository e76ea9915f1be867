import type { IncomingMessage } from 'node:http'
import type { Middleware } from 'koa'
import { AppError, invalidField } from '#shared/errors.ts'
import { duplicateField } from './duplicate-field.ts'
import type { RequestState } from './errors.ts'

/** Largest body of an API call (R23). */
export const API_BODY_BYTES = 100 * 1024

/** How long the rest of a body that is too large is read. */
const MAX_REST_MS = 1000

/**
 * Refuses a GET or HEAD with a body on any path, before any work is done: 400 `invalid_request` (R7). The signed text does not mark the end
 * of the path, so the signature of `GET …/a.x` would be valid for `GET …/a` with the body `x.`.
 */
export const refuseBodyOfReads: Middleware<RequestState> = async (http, next) => {
  if ((http.method === 'GET' || http.method === 'HEAD') && hasBody(http.req)) {
    throw new AppError('invalid_request', 'a GET or HEAD must not have a body', { headers: { Connection: 'close' } })
  }
  await next()
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

/**
 * The exact bytes of the body, as signatures cover them.
 * Throws `payload_too_large` (413) beyond `limit` bytes.
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return refuseLonger(request, limit)
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) return refuseLonger(request, limit)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The JSON value of a body. Throws `invalid_request` for another content type, invalid JSON, and a repeated field. */
export function parseJson(contentType: string | undefined, body: Buffer): unknown {
  if (!isJson(contentType ?? '')) {
    throw new AppError('invalid_request', 'the content type must be application/json, and its charset UTF-8')
  }
  const { json, value } = decodeJson(body)
  const repeated = duplicateField(json)
  if (repeated !== null) throw invalidField(repeated, 'is repeated')
  return value
}

/** Whether it is JSON in UTF-8. A charset parameter is allowed only if it names UTF-8. */
function isJson(contentType: string): boolean {
  const [type, ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase())
  const charsets = parameters.filter((parameter) => parameter.startsWith('charset='))
  return type === 'application/json' && charsets.every((charset) => /^charset="?utf-?8"?$/.test(charset))
}

function decodeJson(body: Buffer): { json: string; value: unknown } {
  try {
    const json = new TextDecoder('utf-8', { fatal: true }).decode(body)
    return { json, value: JSON.parse(json) as unknown }
  } catch {
    throw new AppError('invalid_request', 'the body is not valid JSON in UTF-8')
  }
}

/**
 * Discards the rest of the body before it answers: closing the connection earlier would reset it, and the caller or the proxy in front
 * would never see the response.
 */
async function refuseLonger(request: IncomingMessage, limit: number): Promise<never> {
  const over = Promise.withResolvers<null>()
  const deadline = setTimeout(over.resolve, MAX_REST_MS, null)
  request.once('end', () => over.resolve(null)).once('close', () => over.resolve(null))
  request.resume()
  await over.promise
  clearTimeout(deadline)
  throw new AppError('payload_too_large', `the body is larger than ${limit} bytes`, {
    headers: { Connection: 'close' },
  })
}

/** Loaded for the first form, so that a service without pages does not load it. */
let formReader: Promise<Middleware> | null = null

/** Reads the body of a page's form, or of the same call as JSON, into `http.request.body`. */
export const pageBody: Middleware = async (http, next) => {
  const read = await (formReader ??= openFormReader())
  await read(http, next)
}

async function openFormReader(): Promise<Middleware> {
  const { koaBody } = await import('koa-body')
  return koaBody({
    multipart: false,
    text: false,
    formLimit: API_BODY_BYTES,
    jsonLimit: API_BODY_BYTES,
    onError(error) {
      const { status } = error as { status?: unknown }
      if (status === 413) throw new AppError('payload_too_large', `the body is larger than ${API_BODY_BYTES} bytes`)
      throw new AppError('invalid_request', 'the body is neither a valid form nor valid JSON in UTF-8', {
        cause: error,
      })
    },
  })
}
