import { isIP } from 'node:net'
import type { z } from 'zod'
import { isBlockedAddress } from '#http/outbound/blocked-address.ts'
import { webAddress } from '#shared/validate.ts'

/**
 * The address of an app's webhooks. Unless insecure receivers are allowed, `http:` and literal loopback or private addresses are refused
 * here; delivery always checks what the name resolves to (R157).
 */
export function webhookUrl(allowInsecure: boolean): z.ZodType<string> {
  return webAddress.refine((value) => allowInsecure || isPublicHttps(value), {
    error: 'must be an https address of a public host',
    params: { isPolicy: true },
  })
}

function isPublicHttps(value: string): boolean {
  if (!URL.canParse(value)) return false
  const { protocol, hostname } = new URL(value)
  const host = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (protocol !== 'https:' || /(^|\.)localhost$/i.test(host)) return false
  return isIP(host) === 0 || !isBlockedAddress(host)
}
