import { secondsBehind, SIGNED_TIME_TOLERANCE_SECONDS } from '#shared/signed-time.ts'
import type { RealTime } from '#shared/time.ts'
import type { App } from './store.ts'

/** The headers of a call, empty if they are missing, and the text that the signature must cover. */
export interface SentHeaders {
  readonly apiKey: string
  readonly authorization: string
  readonly timestamp: string
  readonly signature: string
  readonly signedText: string
}

const MAX_SHOWN = 500

/**
 * Says which part of a call's credentials is wrong, for developers who try a sandbox app (R4). Null for live keys, which get the same
 * message for every error. `app` is null if no app has the key, and undefined if the database was not asked.
 */
export function explainRefusal(sent: SentHeaders, app: App | null | undefined, now: RealTime): string | null {
  if (!sent.apiKey.startsWith('pk_test_')) return null
  if (app === null || !/^pk_test_[0-9a-f]{24}$/.test(sent.apiKey)) return 'X-App-Key: no app has this key'
  if (app?.auth === 'identity') return explainToken(sent)
  if (app || sent.timestamp !== '' || sent.signature !== '') return explainSignature(sent, now)
  if (sent.authorization !== '') return explainToken(sent)
  return 'X-Timestamp and X-Signature are missing, or, for an identity-token app, Authorization: Bearer with a token'
}

function explainToken({ authorization }: SentHeaders): string {
  return authorization === ''
    ? 'Authorization: Bearer with an identity token is missing'
    : 'Authorization: must be Bearer with an identity token that is valid for this app and has not expired'
}

function explainSignature({ timestamp, signature, signedText }: SentHeaders, now: RealTime): string {
  if (timestamp === '') return 'X-Timestamp: is missing'
  const behind = secondsBehind(timestamp, now)
  if (behind === null) return 'X-Timestamp: must be Unix seconds, in digits alone'
  if (Math.abs(behind) > SIGNED_TIME_TOLERANCE_SECONDS) {
    const side = behind > 0 ? 'behind' : 'ahead of'
    return `X-Timestamp: is ${Math.abs(behind)} s ${side} our clock; at most ${SIGNED_TIME_TOLERANCE_SECONDS} s are allowed`
  }
  if (signature === '') return 'X-Signature: is missing'
  if (!/^[0-9a-f]{64}$/.test(signature)) return 'X-Signature: must be 64 hex digits in lower case'
  const shown = signedText.length > MAX_SHOWN ? `${signedText.slice(0, MAX_SHOWN)}…` : signedText
  const length = Buffer.byteLength(signedText)
  return `X-Signature: is not the HMAC-SHA256 of these ${length} bytes, keyed with the api_secret: ${JSON.stringify(shown)}`
}
