import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

/** Resolves a host name to its addresses. */
export type ResolveHost = (hostname: string) => Promise<string[]>

const resolver = new Resolver({ timeout: 2000, tries: 2 })

/**
 * All addresses of a host, IPv4 first. Asks the name servers directly: `dns.lookup` occupies one of the four threads of libuv's pool, so a
 * few receivers with slow name servers would delay all others. Only names that the name servers do not know (`localhost`, the hosts file)
 * use `dns.lookup`. Throws if there is no address.
 */
export async function resolveHost(hostname: string): Promise<string[]> {
  if (isIP(hostname) !== 0) return [hostname]
  if (!hostname.includes('.') || hostname.endsWith('.localhost')) return resolveBySystem(hostname)
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (addresses.length > 0) return addresses
  for (const answer of answers) if (answer.status === 'rejected' && isTimeout(answer.reason)) throw answer.reason
  return resolveBySystem(hostname)
}

/** The name servers did not answer: the system would wait for them just as long, and occupy one of its threads. */
function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ETIMEOUT'
}

async function resolveBySystem(hostname: string): Promise<string[]> {
  return (await lookup(hostname, { all: true, order: 'ipv4first' })).map(({ address }) => address)
}
