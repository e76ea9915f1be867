import type { Context } from '#context.ts'
import { cleanText, requestEndpoint } from '#http/outbound.ts'
import type { EndpointAnswer } from '#http/outbound.ts'
import { accessToken, forgetAccessToken } from './access-token.ts'
import type { Budget } from '#shared/budget.ts'
import { nodeKeys } from './realtime-key.ts'
import type { AppWithDatabase } from './realtime-key.ts'
import type { RealtimeNode } from './node.ts'

/** How much of the database's refusal is told. */
const REFUSAL_BYTES = 300

/** What is at a node's place now. */
export interface PresentNode {
  readonly node: unknown
  /** Names this content: a write under this condition fails where the content changed since. Null where the database gives none. */
  readonly etag: string | null
}

/** The place of one end user's node in an app's database; calls share one budget. */
export interface NodePlace {
  read(): Promise<PresentNode>
  /** Replaces the whole node; false where its content is no longer the one that `etag` names. */
  replace(node: RealtimeNode, etag: string | null): Promise<boolean>
}

/**
 * Speaks to the database by REST rather than by the SDK, whose `set` never settles while the server is away and may send a stale
 * write afterwards. Each call throws where the database refuses or gives no answer within the budget.
 */
export function nodePlace(ctx: Context, app: AppWithDatabase, externalRef: string, leftMs: Budget): NodePlace {
  const address = addressOf(ctx, app, externalRef)
  return {
    async read() {
      const answer = await call(ctx, app, address, leftMs, 'GET', { 'x-firebase-etag': 'true' })
      // What cannot be read here can still be written: the write's own answer decides.
      if (answer.status === 404 || answer.status === 405 || answer.status === 501) return { node: null, etag: null }
      if (answer.status !== 200) throw refusalOf(answer)
      const etag = answer.headers['etag']
      return { node: parseNode(answer.body), etag: typeof etag === 'string' ? etag : null }
    },
    async replace(node, etag) {
      const condition = etag === null ? {} : { 'if-match': etag }
      const answer = await call(ctx, app, address, leftMs, 'PUT', condition, JSON.stringify(node))
      if (answer.status === 412) return false
      if (answer.status !== 200 && answer.status !== 204) throw refusalOf(answer)
      return true
    },
  }
}

interface Address {
  readonly url: string
  /** Whether it is an emulator, which takes writes as `owner` instead of with a token. */
  readonly isEmulator: boolean
}

function addressOf(ctx: Context, app: AppWithDatabase, externalRef: string): Address {
  const database = new URL(app.realtimeDatabaseUrl)
  const path = nodeKeys(app.realtimePath, externalRef).map(encodeURIComponent).join('/')
  const namespace = database.searchParams.get('ns')
  const emulator = ctx.config.firebaseDatabaseEmulatorHost
  if (emulator) {
    const name = namespace ?? database.hostname.split('.')[0] ?? ''
    return { url: `http://${emulator}/${path}.json?ns=${encodeURIComponent(name)}`, isEmulator: true }
  }
  const isPlain = database.protocol !== 'https:'
  if (isPlain && ctx.config.env !== 'development') throw new Error('the address of the database must be https')
  const query = namespace === null ? '' : `?ns=${encodeURIComponent(namespace)}`
  return { url: `${database.origin}/${path}.json${query}`, isEmulator: isPlain }
}

async function call(
  ctx: Context,
  app: AppWithDatabase,
  { url, isEmulator }: Address,
  leftMs: Budget,
  method: 'GET' | 'PUT',
  headers: Readonly<Record<string, string>>,
  body?: string,
): Promise<EndpointAnswer> {
  const send = async (bearer: string): Promise<EndpointAnswer> =>
    requestEndpoint({
      method,
      url,
      headers: {
        ...headers,
        authorization: `Bearer ${bearer}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body } : {}),
      deadlineMs: leftMs(),
    })
  if (isEmulator) return send('owner')
  const token = await accessToken(ctx, app, leftMs)
  const answer = await send(token)
  if (answer.status !== 401) return answer
  // The token may have been withdrawn before its time.
  forgetAccessToken(app, token)
  return send(await accessToken(ctx, app, leftMs))
}

function refusalOf({ status, body }: EndpointAnswer): Error {
  return new Error(`the database answered ${status}: ${cleanText(Buffer.from(body), REFUSAL_BYTES).trim()}`)
}

function parseNode(body: string): unknown {
  try {
    return JSON.parse(body) as unknown
  } catch {
    return null
  }
}
