import { constantTimeEqual, hmacHex } from '#shared/crypto.ts'

/** What PayOS signs of an object: keys in order, `key=value` joined by `&`, nothing for null (payos.vn/docs, "Kiểm tra dữ liệu"). */
export function canonicalForm(fields: Readonly<Record<string, unknown>>): string {
  return Object.keys(fields)
    .sort()
    .filter((key) => fields[key] !== undefined)
    .map((key) => `${key}=${canonicalValue(fields[key])}`)
    .join('&')
}

/** Hex HMAC-SHA256 of the canonical form under the checksum key. */
export function signFields(checksumKey: string, fields: Readonly<Record<string, unknown>>): string {
  return hmacHex(checksumKey, canonicalForm(fields))
}

/** Whether the signature is that of the fields; compared in constant time, which the SDK's own check is not. */
export function isSignatureOf(
  checksumKey: string,
  fields: Readonly<Record<string, unknown>>,
  signature: string,
): boolean {
  return constantTimeEqual(signFields(checksumKey, fields), signature)
}

function canonicalValue(value: unknown): string {
  if (value === null || value === 'null' || value === 'undefined') return ''
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  // PayOS sends no other objects; this is what its own SDK makes of one.
  return Array.isArray(value) ? JSON.stringify(value.map(sortKeys)) : '[object Object]'
}

function sortKeys(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null) return entry
  return Object.fromEntries(Object.entries(entry).sort(([a], [b]) => (a < b ? -1 : 1)))
}
