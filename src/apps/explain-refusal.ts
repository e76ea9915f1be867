import { unixSeconds, type RealTime } from '#shared/time.ts'
import type { App } from './store.ts'

/** How far `X-Timestamp` may be from the service's clock, either way (R3). */
export const TIMESTAMP_TOLERANCE_SECONDS = 300

/** The headers of a signed call, empty if they are missing, and the text that the signature must cover. */
export interface SignedHeaders {
  readonly apiKey: string
  readonly timestamp: string
  readonly signature: string
  readonly signedText: string
}

const MAX_SHOWN = 500

/**
 * Says which part of a call's credentials is wrong, for developers who try a sandbox app. Null for live keys and identity tokens, which
 * get the same message for every error. `app` is null if no app has the key, and undefined if the database was not asked.
 */
export function explainRefusal(sent: SignedHeaders, app: App | null | undefined, now: RealTime): string | null {
  const { apiKey, timestamp, signature, signedText } = sent
  const isSigned = timestamp !== '' || signature !== ''
  if (!apiKey.startsWith('pk_test_') || app?.auth === 'identity' || (app !== null && !isSigned)) return null
  if (app === null || !/^pk_test_[0-9a-f]{24}$/.test(apiKey)) return 'X-App-Key: no app has this key'
  if (timestamp === '') return 'X-Timestamp: is missing'
  if (!/^\d{1,12}$/.test(timestamp)) return 'X-Timestamp: must be Unix seconds, in digits alone'
  const behind = unixSeconds(now) - Number(timestamp)
  if (Math.abs(behind) > TIMESTAMP_TOLERANCE_SECONDS) {
    const side = behind > 0 ? 'behind' : 'ahead of'
    return `X-Timestamp: is ${Math.abs(behind)} s ${side} our clock; at most ${TIMESTAMP_TOLERANCE_SECONDS} s are allowed`
  }
  if (signature === '') return 'X-Signature: is missing'
  if (!/^[0-9a-f]{64}$/.test(signature)) return 'X-Signature: must be 64 hex digits in lower case'
  const shown = signedText.length > MAX_SHOWN ? `${signedText.slice(0, MAX_SHOWN)}…` : signedText
  const length = Buffer.byteLength(signedText)
  return `X-Signature: is not the HMAC-SHA256 of these ${length} bytes, keyed with the api_secret: ${JSON.stringify(shown)}`
}
