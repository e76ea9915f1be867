import { BlockList, isIP } from 'node:net'

/** Ranges of the special-purpose registries (RFC 6890 and its updates), and two metadata services outside of them. */
const BLOCKED_IPV4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  // Azure's metadata and health service has a public address.
  ['168.63.129.16', 32],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

/** Inside of 2000::/3, which is all that is public: protocol assignments with Teredo, documentation, 6to4. */
const BLOCKED_IPV6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
]

const blockedIpv4 = new BlockList()
for (const [network, prefix] of BLOCKED_IPV4) blockedIpv4.addSubnet(network, prefix, 'ipv4')
const blockedIpv6 = new BlockList()
for (const [network, prefix] of BLOCKED_IPV6) blockedIpv6.addSubnet(network, prefix, 'ipv6')
const publicIpv6 = new BlockList()
publicIpv6.addSubnet('2000::', 3, 'ipv6')
const nat64 = new BlockList()
nat64.addSubnet('64:ff9b::', 96, 'ipv6')

/**
 * Whether an address is not on the public internet: loopback, private, link-local, mapped, metadata, reserved, multicast (R157). Text that
 * is not an address is blocked too.
 */
export function isBlockedAddress(address: string): boolean {
  const version = isIP(address)
  if (version === 4) return blockedIpv4.check(address, 'ipv4')
  // A zone (`fe80::1%eth0`) belongs to link-local addresses only.
  if (version !== 6 || address.includes('%')) return true
  // IPv6-only hosts reach public IPv4 receivers through NAT64, so the embedded address decides.
  if (nat64.check(address, 'ipv6')) return blockedIpv4.check(lastFourBytes(address), 'ipv4')
  return !publicIpv6.check(address, 'ipv6') || blockedIpv6.check(address, 'ipv6')
}

function lastFourBytes(address: string): string {
  const dotted = /(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})$/.exec(address)
  if (dotted) return dotted[1] as string
  // The URL parser writes the shortest form: at most one `::`, two groups of the last 32 bits in hexadecimal.
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const groups = canonical.split(':').slice(-2)
  const value = groups.reduce((sum, group) => sum * 0x10000 + parseInt(group || '0', 16), 0)
  return [24, 16, 8, 0].map((shift) => String((value >>> shift) & 0xff)).join('.')
}
