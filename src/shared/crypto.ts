import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hash,
  randomBytes,
  randomInt,
  timingSafeEqual,
  type KeyObject,
} from 'node:crypto'
import { BoundedMap } from './bounded-map.ts'

/** The signing key. A string means its UTF-8 bytes. */
export type HmacKey = string | Buffer | KeyObject

/** A key to reuse: signing takes 2 µs with it, 14 µs with a Buffer. */
export function hmacKey(bytes: Buffer): KeyObject {
  return createSecretKey(bytes)
}

/** Lower-case hex HMAC-SHA256. */
export function hmacHex(key: HmacKey, ...parts: readonly (string | Buffer)[]): string {
  return hmac(key, parts).digest('hex')
}

/** Base64 HMAC-SHA256. */
export function hmacBase64(key: HmacKey, ...parts: readonly (string | Buffer)[]): string {
  return hmac(key, parts).digest('base64')
}

function hmac(key: HmacKey, parts: readonly (string | Buffer)[]): ReturnType<typeof createHmac> {
  const mac = createHmac('sha256', Buffer.isBuffer(key) ? hmacKey(key) : key)
  for (const part of parts) if (part.length > 0) mac.update(part)
  return mac
}

/** Whether two texts are equal. The time that it takes depends neither on where they differ nor on their lengths. */
export function constantTimeEqual(a: string, b: string): boolean {
  // Digests have one length: timingSafeEqual does not throw, and reveals no length.
  return timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'))
}

/** Whether `text` is among the texts. Compares all of them, so that the time does not depend on which one it is. */
export function constantTimeIncludes(texts: readonly string[], text: string): boolean {
  return texts.filter((one) => constantTimeEqual(one, text)).length > 0
}

/** The form in which a content security policy names an inline style. */
export function sha256Base64(content: string): string {
  return createHash('sha256').update(content).digest('base64')
}

export function sha256Hex(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Whether the text is 64 lower-case hex digits, as `sha256Hex` and `randomHex(32)` write them. */
export function isHex64(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text)
}

/** `bytes` random bytes in lower-case hex. */
export function randomHex(bytes: number): string {
  return randomBytes(bytes).toString('hex')
}

/** A random number of 48 bits, never 0. */
export function randomNumber(): number {
  return randomInt(1, 2 ** 48)
}

/** An app's API secret: `sk_` and 256 random bits. */
export function newApiSecret(): string {
  return `sk_${randomBytes(32).toString('base64url')}`
}

/** A webhook secret in the form of Standard Webhooks: `whsec_` and 256 random bits in base64. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** A random number of exactly `digits` decimal digits, as text. */
export function randomDigits(digits: number): string {
  let text = ''
  while (text.length < digits) {
    for (const byte of randomBytes(digits)) {
      // Bytes from 250 on are dropped: they would make the digits 0 to 5 more frequent.
      if (byte < 250 && text.length < digits) text += String(byte % 10)
    }
  }
  return text
}

export interface EncryptionKey {
  readonly id: string
  readonly key: Buffer
}

/** More than there are secrets in an installation. */
const MAX_OPENED = 10_000

/** Keys for secrets at rest. The first encrypts; all decrypt, so that keys can be rotated. */
export class Keyring {
  /**
   * Secrets that were opened before, by place and sealed text. Every call of the API needs one, and opening it takes longer than checking
   * the signature.
   */
  readonly #opened = new BoundedMap<string, string>(MAX_OPENED)
  /** As key objects: a secret opens in 5 µs with one, in 19 µs with a Buffer. */
  readonly #keys: readonly { readonly id: string; readonly key: KeyObject }[]
  readonly #current: { readonly id: string; readonly key: KeyObject }

  constructor(keys: readonly EncryptionKey[]) {
    this.#keys = keys.map(({ id, key }) => ({ id, key: createSecretKey(key) }))
    const [current] = this.#keys
    if (!current) throw new Error('a keyring needs at least one key')
    this.#current = current
  }

  get currentId(): string {
    return this.#current.id
  }

  get ids(): readonly string[] {
    return this.#keys.map(({ id }) => id)
  }

  /**
   * AES-256-GCM, written `v1.<key id>.<iv>.<ciphertext>.<tag>` in base64url. `place` (table, column and owner, such as
   * `apps.api_secret:<api key>`) is authenticated with it: a secret moved to another row cannot be decrypted.
   */
  seal(plaintext: string, place: string): string {
    const { id, key } = this.#current
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(place))
    const ciphertext = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()])
    const parts = [iv, ciphertext, cipher.getAuthTag()].map((part) => part.toString('base64url'))
    return ['v1', id, ...parts].join('.')
  }

  /** Throws if the key is missing, or if text or place were changed. */
  open(sealed: string, place: string): string {
    return this.#opened.getOrCreate(`${place} ${sealed}`, () => this.#decrypt(sealed, place))
  }

  #decrypt(sealed: string, place: string): string {
    const [version, id, iv, ciphertext, tag] = sealed.split('.')
    if (version !== 'v1' || !iv || ciphertext === undefined || !tag) throw new Error(`no sealed secret at ${place}`)
    const entry = this.#keys.find((candidate) => candidate.id === id)
    if (!entry)
      throw new Error(`the secret at ${place} needs encryption key "${id ?? ''}", which BILLING_ENCRYPTION_KEYS lacks`)
    const decipher = createDecipheriv('aes-256-gcm', entry.key, Buffer.from(iv, 'base64url'), { authTagLength: 16 })
    decipher.setAAD(Buffer.from(place)).setAuthTag(Buffer.from(tag, 'base64url'))
    try {
      return Buffer.concat([decipher.update(Buffer.from(ciphertext, 'base64url')), decipher.final()]).toString('utf8')
    } catch (cause) {
      throw new Error(`the secret at ${place} was changed or moved: it cannot be decrypted with key "${entry.id}"`, {
        cause,
      })
    }
  }

  /** Whether the sealed text was encrypted with an older key than the current one. */
  isStale(sealed: string): boolean {
    return sealed.split('.')[1] !== this.currentId
  }
}

/** Reads `id:base64(32 bytes)[,id:…]`. Throws an error that says what is wrong and never contains a key. */
export function parseKeyring(text: string): Keyring {
  const keys = text.split(',').map((entry) => {
    const match = /^([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/]{43}=)$/.exec(entry.trim())
    if (!match) throw new Error('must be id:base64(32 bytes)[,id:base64(32 bytes)…]')
    return { id: match[1] as string, key: Buffer.from(match[2] as string, 'base64') }
  })
  if (new Set(keys.map(({ id }) => id)).size !== keys.length) throw new Error('repeats a key id')
  return new Keyring(keys)
}
