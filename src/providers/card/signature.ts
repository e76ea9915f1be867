import { constantTimeIncludes, hmacHex } from '#shared/crypto.ts'

/** Stripe sends two while an endpoint's secret is rolled. The limit bounds the comparisons, one per candidate and app. */
const MAX_CANDIDATES = 5

/** A parsed `Stripe-Signature` header. */
export interface CardSignature {
  readonly timestamp: string
  /** Several while the seller rolls the endpoint's secret: five at most, of 64 hex digits each. */
  readonly candidates: readonly string[]
}

/**
 * Reads `t=…,v1=…[,v1=…][,v0=…]`; null for anything else, also for two headers, which arrive joined by a comma and a blank.
 */
export function parseSignature(header: string | undefined): CardSignature | null {
  let timestamp: string | null = null
  const candidates: string[] = []
  for (const item of (header ?? '').split(',')) {
    const match = /^([a-z]\w{0,9})=([0-9A-Za-z]+)$/.exec(item)
    if (!match) return null
    const [, scheme, value = ''] = match
    if (scheme === 't') {
      if (timestamp !== null || !/^[1-9]\d{0,11}$/.test(value)) return null
      timestamp = value
    } else if (scheme === 'v1') {
      if (candidates.length === MAX_CANDIDATES || !/^[0-9a-f]{64}$/.test(value)) return null
      candidates.push(value)
    }
  }
  return timestamp === null || candidates.length === 0 ? null : { timestamp, candidates }
}

/** Whether one of the signatures signs exactly these bytes with the endpoint's secret. */
export function isSignedWith(secret: string, signature: CardSignature, body: Buffer): boolean {
  return constantTimeIncludes(signature.candidates, hmacHex(secret, `${signature.timestamp}.`, body))
}
