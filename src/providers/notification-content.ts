import { AppError } from '#shared/errors.ts'

/** 400, one message for everything that is wrong with a notification, so that nothing is told apart. */
export function unverified(): AppError {
  return new AppError('invalid_request', 'the notification cannot be verified')
}

/** The JSON value of a notification's bytes; throws `unverified`. A byte-order mark is not part of JSON. */
export function parseContent(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)) as unknown
  } catch {
    throw unverified()
  }
}
