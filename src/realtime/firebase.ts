import type { Context } from '#context.ts'
import { requestEndpoint, type EndpointAnswer, type EndpointRequest } from '#http/outbound/request-endpoint.ts'
import { cleanText } from '#http/outbound/exchange.ts'
import { accessToken, forgetAccessToken } from './access-token.ts'
import type { Budget } from '#shared/budget.ts'
import { parseJson } from '#shared/parse-json.ts'
import { replaceBySocket, type EmulatorAddress } from './emulator-socket.ts'
import { nodeKeys, type AppWithDatabase } from './realtime-key.ts'
import type { RealtimeNode } from './node.ts'

/** How much of the database's error response an error message contains. */
const REFUSAL_BYTES = 300
/** The answer of emulators that support only the SDKs' own protocol. */
const UPGRADE_REQUIRED = 426
const UNREADABLE: ReadonlySet<number> = new Set([404, 405, UPGRADE_REQUIRED, 501])

/** The current content of a node. */
export interface PresentNode {
  readonly node: unknown
  /** A write on this condition fails if the content has changed since. Null if the database sends none. */
  readonly etag: string | null
}

/** One end user's node in an app's database. Its calls share one budget. */
export interface NodeReference {
  read(): Promise<PresentNode>
  /** Replaces the whole node; false if its content has changed since `etag`. */
  replace(node: RealtimeNode, etag: string | null): Promise<boolean>
}

/**
 * Uses REST rather than the SDK, whose `set` waits without a limit while the server is unreachable and may send a stale write later. Only
 * emulators without REST are written through the SDK. Each call throws if the database refuses or does not answer within the budget.
 */
export function nodeReference(ctx: Context, app: AppWithDatabase, externalRef: string, leftMs: Budget): NodeReference {
  const target = { app, address: addressOf(ctx, app, externalRef), leftMs }
  return {
    async read() {
      const answer = await call(ctx, target, { method: 'GET', headers: { 'x-firebase-etag': 'true' } })
      // A node that cannot be read may still be writable: the answer to the write decides.
      if (UNREADABLE.has(answer.status)) return { node: null, etag: null }
      if (answer.status !== 200) throw refusedBy(answer)
      const etag = answer.headers['etag']
      return { node: parseJson(answer.body), etag: typeof etag === 'string' ? etag : null }
    },
    async replace(node, etag) {
      const condition = etag === null ? {} : { 'if-match': etag }
      const headers = { 'content-type': 'application/json', ...condition }
      const answer = await call(ctx, target, { method: 'PUT', headers, body: JSON.stringify(node) })
      if (answer.status === 412) return false
      if (answer.status === UPGRADE_REQUIRED && target.address.emulator) {
        await replaceBySocket(target.address.emulator, node, leftMs)
        return true
      }
      if (answer.status !== 200 && answer.status !== 204) throw refusedBy(answer)
      return true
    },
  }
}

interface Address {
  readonly url: string
  /** Set for an emulator, which accepts writes as `owner`, without a token. */
  readonly emulator: EmulatorAddress | null
}

function addressOf(ctx: Context, app: AppWithDatabase, externalRef: string): Address {
  const database = new URL(app.realtimeDatabaseUrl)
  const keys = nodeKeys(app.realtimePath, externalRef)
  const path = keys.map(encodeURIComponent).join('/')
  const given = database.searchParams.get('ns')
  const namespace = given ?? database.hostname.split('.')[0] ?? ''
  const host = ctx.config.firebaseDatabaseEmulatorHost
  if (host) {
    return {
      url: `http://${host}/${path}.json?ns=${encodeURIComponent(namespace)}`,
      emulator: { host, namespace, keys },
    }
  }
  const isPlain = database.protocol !== 'https:'
  if (isPlain && ctx.config.env !== 'development') throw new Error('the address of the database must be https')
  const query = given === null ? '' : `?ns=${encodeURIComponent(given)}`
  return {
    url: `${database.origin}/${path}.json${query}`,
    emulator: isPlain ? { host: database.host, namespace, keys } : null,
  }
}

async function call(
  ctx: Context,
  { app, address, leftMs }: { readonly app: AppWithDatabase; readonly address: Address; readonly leftMs: Budget },
  request: Pick<EndpointRequest, 'method' | 'headers' | 'body'>,
): Promise<EndpointAnswer> {
  const send = async (bearer: string): Promise<EndpointAnswer> =>
    requestEndpoint({
      ...request,
      url: address.url,
      headers: { ...request.headers, authorization: `Bearer ${bearer}` },
      deadlineMs: leftMs(),
    })
  if (address.emulator) return send('owner')
  const token = await accessToken(ctx, app, leftMs)
  const answer = await send(token)
  if (answer.status !== 401) return answer
  // The token may have been revoked before it expired.
  forgetAccessToken(app, token)
  return send(await accessToken(ctx, app, leftMs))
}

function refusedBy({ status, body }: EndpointAnswer): Error {
  return new Error(`the database answered ${status}: ${cleanText(Buffer.from(body), REFUSAL_BYTES).trim()}`)
}
