import { lookup, Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'

/** Turns a host name into its addresses; tests put their own in its place. */
export type ResolveHost = (hostname: string) => Promise<string[]>

const resolver = new Resolver({ timeout: 2000, tries: 2 })

/**
 * All addresses of a host, IPv4 first. Asks the name servers directly: `dns.lookup` holds one of the four threads of libuv's pool,
 * so that a few receivers with slow name servers would hold back every other. Names that the name servers do not know are looked
 * up there all the same (`localhost`, the hosts file). Throws where there is no address.
 */
export async function resolveHost(hostname: string): Promise<string[]> {
  if (isIP(hostname) !== 0) return [hostname]
  if (!hostname.includes('.') || hostname.endsWith('.localhost')) return resolveBySystem(hostname)
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (addresses.length > 0) return addresses
  for (const answer of answers) if (answer.status === 'rejected' && isSilence(answer.reason)) throw answer.reason
  return resolveBySystem(hostname)
}

/** The name servers said nothing: the system would wait for them as long, in one of its threads. */
function isSilence(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ETIMEOUT'
}

async function resolveBySystem(hostname: string): Promise<string[]> {
  return (await lookup(hostname, { all: true, order: 'ipv4first' })).map(({ address }) => address)
}
