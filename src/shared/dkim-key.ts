import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'

/** RFC 8301: receivers verify any longer key, and one of 4096 bits does not fit into the record of many providers. */
const BITS = 2048
const MIN_BITS = 1024

/** A new private key as PEM. */
export function newDkimKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: BITS })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Reads a private RSA key from PEM, or from the base64 of PKCS#8 on one line. Throws if it is not one; the message does not repeat any of it. */
export function parseDkimKey(text: string): KeyObject {
  const key = readKey(text)
  if (key?.asymmetricKeyType !== 'rsa' || (key.asymmetricKeyDetails?.modulusLength ?? 0) < MIN_BITS)
    throw new Error(`must be a private RSA key of at least ${MIN_BITS} bits, as PEM or as base64 of PKCS#8`)
  return key
}

function readKey(text: string): KeyObject | null {
  try {
    if (text.startsWith('-----')) return createPrivateKey(text)
    return createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' })
  } catch {
    return null
  }
}

/** The text of the DNS record `<selector>._domainkey.<domain>` (RFC 6376). */
export function dkimRecord(key: KeyObject): string {
  const bytes = createPublicKey(key).export({ type: 'spki', format: 'der' })
  return `v=DKIM1; k=rsa; p=${bytes.toString('base64')}`
}
