import { z } from 'zod'
import { unverified } from '#providers/notification-content.ts'

/** A post of the relay: the unchanged mail, and its envelope recipient. */
export interface RelayedMail {
  readonly envelopeTo: string
  readonly raw: Buffer
}

const Envelope = z.strictObject({ envelope_to: z.string().min(1).max(1000), raw: z.string().min(1) })

/** Reads a post's JSON value; throws `invalid_request` if it is not `{"envelope_to", "raw": base64}`. */
export function readEnvelope(content: unknown): RelayedMail {
  const envelope = Envelope.safeParse(content)
  if (!envelope.success) throw unverified()
  const base64 = envelope.data.raw.replace(/[\r\n]/g, '')
  if (base64.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) throw unverified()
  return { envelopeTo: envelope.data.envelope_to, raw: Buffer.from(base64, 'base64') }
}

/**
 * The forward code in the envelope recipient: the one run of exactly ten digits before the `@`. Null if there is none or more
 * than one. The rest of the address does not matter: only the code is secret.
 */
export function forwardCodeIn(envelopeTo: string): string | null {
  const localPart = /^<?([^@]*)@[^@]+$/.exec(envelopeTo.trim())?.[1] ?? ''
  const [code, ...others] = localPart.match(/(?<!\d)\d{10}(?!\d)/g) ?? []
  return code !== undefined && others.length === 0 ? code : null
}
