import { isIP, type LookupFunction } from 'node:net'
import { buildConnector } from 'undici'
import { isBlockedAddress } from './blocked-address.ts'
import { CONNECT_MS } from './connection-times.ts'
import { resolveHost, type ResolveHost } from './resolve-host.ts'

export interface GuardOptions {
  /** Allows `http:` and receivers that are not public (`BILLING_WEBHOOK_ALLOW_INSECURE`). */
  readonly allowInsecure: boolean
  readonly resolve?: ResolveHost
  /** Replaces the rule that `allowInsecure` selects. */
  readonly isBlocked?: (address: string) => boolean
}

/** Connects to checked addresses only. */
export function guardedConnector(options: GuardOptions): buildConnector.connector {
  const resolve = options.resolve ?? resolveHost
  const isBlocked = options.isBlocked ?? (options.allowInsecure ? () => false : isBlockedAddress)
  const connect = buildConnector({ allowH2: false, timeout: CONNECT_MS, lookup: checkedLookup(resolve, isBlocked) })
  return (target, callback) => {
    // Node looks up names only, so an address in the URL must be checked here.
    const literal = target.hostname.replace(/^\[|\]$/g, '')
    if (isIP(literal) !== 0 && isBlocked(literal)) {
      callback(new BlockedAddressError(literal), null)
      return
    }
    connect(target, (...[error, socket]) => {
      if (error) {
        callback(error, null)
      } else if (isBlocked(socket.remoteAddress ?? '')) {
        socket.destroy()
        callback(new BlockedAddressError(socket.remoteAddress ?? 'unknown'), null)
      } else {
        callback(null, socket)
      }
    })
  }
}

/** One blocked address blocks the whole name: a name that resolves both to the internet and to our network is an attack. */
function checkedLookup(resolve: ResolveHost, isBlocked: (address: string) => boolean): LookupFunction {
  return (hostname, { all }, callback) => {
    resolve(hostname).then(
      (addresses) => {
        const blocked = addresses.find(isBlocked)
        const [first] = addresses
        if (blocked !== undefined) callback(new BlockedAddressError(blocked), [])
        else if (first === undefined) callback(Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), [])
        else if (all)
          callback(
            null,
            addresses.map((address) => ({ address, family: isIP(address) })),
          )
        else callback(null, first, isIP(first))
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, []),
    )
  }
}

class BlockedAddressError extends Error {
  override readonly name = 'BlockedAddressError'
  readonly code = 'blocked_address'

  constructor(address: string) {
    super(`${address} is not a public address`)
  }
}
