import { constantTimeIncludes, hmacHex } from '#shared/crypto.ts'

/** The signed fields of a notification: no lists and no objects. */
export type SignedFields = Readonly<Record<string, string | number | boolean | null>>

/** Whether one of the checksum keys signed the fields; compared in constant time, which the SDK's own check is not. */
export function isSignedByOne(checksumKeys: readonly string[], fields: SignedFields, signature: string): boolean {
  const form = canonicalForm(fields)
  const expected = checksumKeys.map((key) => hmacHex(key, form))
  return constantTimeIncludes(expected, signature)
}

/**
 * The text that PayOS signs for an object: keys in order, `key=value` joined by `&`, nothing for null (payos.vn/docs, "Kiểm tra dữ liệu").
 */
function canonicalForm(fields: SignedFields): string {
  return Object.keys(fields)
    .sort()
    .map((key) => `${key}=${canonicalValue(fields[key] ?? null)}`)
    .join('&')
}

function canonicalValue(value: string | number | boolean | null): string {
  return value === null || value === 'null' || value === 'undefined' ? '' : String(value)
}
