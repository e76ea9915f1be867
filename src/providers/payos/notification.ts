import { z } from 'zod'
import { Transfer } from './transfers.ts'

/** PayOS's notifications have about 700 bytes and 20 fields. Anybody can send more, and all of it is processed before it is verified. */
export const NOTIFICATION_BYTES = 32 * 1024
const MAX_FIELDS = 100

const Envelope = z.object({ signature: z.string().regex(/^[0-9a-f]{64}$/), data: z.unknown() })

const Data = Transfer.extend({
  orderCode: z.number().int().min(1).max(Number.MAX_SAFE_INTEGER),
  paymentLinkId: z.string(),
  code: z.string(),
  // PayOS sends only scalars. Nested values would make the signed form expensive before it is verified.
}).catchall(z.union([z.string(), z.number(), z.boolean(), z.null()]))

export interface PayosNotification {
  readonly signature: string
  /** The signed fields. */
  readonly data: z.infer<typeof Data>
}

/** Reads a notification's JSON; null if it does not have the form of one. The cheapest checks come first, before any field is read. */
export function readNotification(content: unknown): PayosNotification | null {
  const envelope = Envelope.safeParse(content)
  if (!envelope.success) return null
  const { signature, data: fields } = envelope.data
  if (typeof fields !== 'object' || fields === null || Object.keys(fields).length > MAX_FIELDS) return null
  const data = Data.safeParse(fields)
  return data.success ? { signature, data: data.data } : null
}
