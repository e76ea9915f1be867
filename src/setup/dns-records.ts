import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { KeyObject } from 'node:crypto'
import { domainOf } from '#config/settings.ts'
import { dkimRecord } from '#shared/dkim-key.ts'
import { isLoopbackHost } from '#shared/loopback.ts'
import type { Answers } from './answers.ts'

export interface DnsRecord {
  readonly type: 'A' | 'AAAA' | 'TXT'
  readonly name: string
  readonly value: string
}

const LOOKUP = { timeout: 1500, tries: 1 }

/** The records to publish; without a key, all but the record of the key. */
export function dnsRecords(answers: Answers, dkim: { key: KeyObject; selector: string } | null): DnsRecord[] {
  const { baseUrl, mailFrom, smtpUrl } = answers
  const host = withoutBrackets(baseUrl.hostname)
  const domain = domainOf(mailFrom)
  const txt = (name: string, value: string): DnsRecord => ({ type: 'TXT', name, value })
  return [
    ...(isIP(host) || isLoopbackHost(host) ? [] : addressRecords(host)),
    txt(domain, spf(host, new URL(smtpUrl).hostname)),
    ...(dkim ? [txt(`${dkim.selector}._domainkey.${domain}`, dkimRecord(dkim.key))] : []),
    txt(`_dmarc.${domain}`, 'v=DMARC1; p=quarantine; adkim=r; aspf=r'),
  ]
}

/** The addresses of a machine behind a router are private ones: see `needsPublicAddress`. */
function addressRecords(name: string): DnsRecord[] {
  const all = Object.values(networkInterfaces())
    .flat()
    .filter((found) => found !== undefined)
  const outer = all.filter(({ internal, address }) => !internal && !/^fe80/i.test(address))
  const open = outer.filter(({ address }) => isPublic(address))
  const found = [open, outer, all].find((each) => each.length > 0) ?? []
  return found.map(({ family, address }) => ({ type: family === 'IPv6' ? 'AAAA' : 'A', name, value: address }))
}

/** Whether this machine knows no address of its own that others can reach. */
export function needsPublicAddress(records: readonly DnsRecord[]): boolean {
  return records.some(({ type, value }) => type !== 'TXT' && !isPublic(value))
}

const PRIVATE =
  /^(10\.|127\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|169\.254\.|::1$|f[cd]|fe80)/i

function isPublic(address: string): boolean {
  return !PRIVATE.test(address)
}

/**
 * Allows the mail server, or this machine if it is the mail server. Others fail softly, because a provider may send from other machines of
 * its own.
 */
function spf(host: string, smtpHost: string): string {
  const sender = isLoopbackHost(smtpHost) ? host : smtpHost
  const bare = withoutBrackets(sender)
  const mechanism = isIP(bare) === 0 ? `a:${bare}` : `ip${isIP(bare)}:${bare}`
  return `v=spf1 ${mechanism} ~all`
}

/** URLs write `[::1]`. */
function withoutBrackets(host: string): string {
  return host.replace(/^\[|\]$/g, '')
}

/** How many of the records are in DNS already, as this machine sees it. */
export async function countPublished(records: readonly DnsRecord[]): Promise<number> {
  const resolver = new Resolver(LOOKUP)
  const found = await Promise.all(records.map((record) => isPublished(resolver, record).catch(() => false)))
  return found.filter(Boolean).length
}

async function isPublished(resolver: Resolver, { type, name, value }: DnsRecord): Promise<boolean> {
  if (type === 'TXT') return (await resolver.resolveTxt(name)).some((parts) => parts.join('') === value)
  const addresses = type === 'A' ? await resolver.resolve4(name) : await resolver.resolve6(name)
  return addresses.includes(value)
}
