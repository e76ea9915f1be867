/** HMAC-SHA256 by Web Crypto, which Node, Deno, Bun, browsers and edge runtimes all have. */
const ALGORITHM = { name: 'HMAC', hash: 'SHA-256' }
const encoder = new TextEncoder()

type Bytes = Uint8Array<ArrayBuffer>

/** Concatenates the parts; text is encoded as UTF-8. */
export function bytesOf(...parts: readonly (string | Uint8Array)[]): Bytes {
  const chunks = parts.map((part) => (typeof part === 'string' ? encoder.encode(part) : part))
  const whole = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}

export async function sign(key: Bytes, content: Bytes): Promise<Bytes> {
  const imported = await crypto.subtle.importKey('raw', key, ALGORITHM, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, content))
}

/** Compares in constant time. */
export async function isSigned(key: Bytes, signature: Bytes | null, content: Bytes): Promise<boolean> {
  if (signature === null) return false
  const imported = await crypto.subtle.importKey('raw', key, ALGORITHM, false, ['verify'])
  return crypto.subtle.verify('HMAC', imported, signature, content)
}

export function toHex(bytes: Bytes): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Null for invalid hex. */
export function fromHex(text: string): Bytes | null {
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(text)) return null
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

export function toBase64(bytes: Bytes): string {
  return btoa(String.fromCharCode(...bytes))
}

/** Null for invalid base64. */
export function fromBase64(text: string): Bytes | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}
