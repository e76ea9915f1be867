import type { IncomingMessage } from 'node:http'
import { readBody } from '#http/body.ts'
import { AppError } from '#shared/errors.ts'

/** The exact bytes. Throws `unverified` (400) for a body that is too long, as for every transport problem. */
export async function notificationBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  try {
    return await readBody(request, limit)
  } catch (thrown) {
    if (!(thrown instanceof AppError) || thrown.code !== 'payload_too_large') throw thrown
    throw unverified(thrown.headers)
  }
}

/** 400 with one message for everything that is wrong with a notification, so that it reveals nothing. */
export function unverified(headers: Readonly<Record<string, string>> = {}): AppError {
  return new AppError('invalid_request', 'the notification cannot be verified', { headers })
}

/** The JSON value of a notification's bytes; throws `unverified`, also for a byte-order mark, which JSON does not allow. */
export function parseContent(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)) as unknown
  } catch {
    throw unverified()
  }
}
