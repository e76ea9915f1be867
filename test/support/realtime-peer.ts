import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { text } from 'node:stream/consumers'
import { cert, deleteApp, initializeApp } from 'firebase-admin/app'
import { getDatabase } from 'firebase-admin/database'
import FirebaseServer from 'firebase-server'
import { listen, stopServer } from './http-server.ts'
import { aServiceAccount } from './service-account.ts'

/** A call of the REST API, as received. */
export interface RestCall {
  readonly method: string
  /** The keys of the path, decoded. */
  readonly keys: readonly string[]
  readonly namespace: string | null
  readonly headers: IncomingMessage['headers']
  readonly body: unknown
}

/** `hang` accepts and never answers; a number answers that status to everything. */
export type Behaviour = 'ok' | 'hang' | number

/**
 * A realtime database: firebase-server behind its own wire protocol, which the SDKs speak, and the REST API in front of the same
 * data with authorization, ETags and conditional writes as Firebase documents them.
 */
export interface RealtimePeer {
  readonly host: string
  readonly url: string
  readonly calls: RestCall[]
  behaviour: Behaviour
  /** The access token that the REST API accepts now. */
  token: string
  /** Whether GET returns ETags; PUT always honours its conditions. */
  givesEtags: boolean
  /** Awaited before a call is carried out, so that a test can delay it. */
  beforeCall: (call: RestCall) => Promise<void> | void
  /** Writes of nodes that were carried out. */
  puts(): RestCall[]
  /** Refuses writes over its own protocol; the REST API stays as it is. */
  refuseSocketWrites(): void
  /** Stops listening; `reopen` listens at the same address again, with the same data. */
  shut(): Promise<void>
  reopen(): Promise<void>
  /** Reads by the SDK over its own protocol: a second client, independent of the REST API. Absent is null. */
  read(path: string): Promise<unknown>
  /** Writes by the SDK. */
  write(path: string, value: unknown): Promise<void>
  stop(): Promise<void>
}

interface Reference {
  child(path: string): Reference
  set(value: unknown): void
  once(event: 'value', callback: (snapshot: { val(): unknown }) => void): void
}

export interface PeerOptions {
  /** Served over TLS with this certificate. */
  readonly tls?: { readonly key: string; readonly cert: string }
  /** The access token that is accepted; `owner` as an emulator. */
  readonly token?: string
}

export async function startRealtimePeer(options: PeerOptions = {}): Promise<RealtimePeer> {
  const { tls, token = 'owner' } = options
  const http: Server = tls ? createTlsServer(tls) : createServer()
  const port = await listen(http)
  // The secret admits the SDK's client over its own protocol.
  const store = new FirebaseServer({ server: http }, 'localhost')
  store.setAuthSecret(token)
  const data = (store as unknown as { baseRef: Reference }).baseRef
  const url = tls ? `https://localhost:${port}?ns=demo-proj` : `http://127.0.0.1:${port}?ns=demo-proj`
  const sdk = openSdk(url, token)
  const peer: RealtimePeer = {
    host: `127.0.0.1:${port}`,
    url,
    calls: [],
    behaviour: 'ok',
    token,
    givesEtags: true,
    beforeCall: () => undefined,
    puts: () => peer.calls.filter(({ method }) => method === 'PUT'),
    refuseSocketWrites: () => store.setRules({ rules: { '.read': true, '.write': false } }),
    shut: () => stopServer(http),
    async reopen() {
      await listen(http, port)
    },
    async read(path) {
      const snapshot = await getDatabase(sdk).ref(path).once('value')
      return snapshot.val() as unknown
    },
    write: (path, value) => getDatabase(sdk).ref(path).set(value),
    async stop() {
      getDatabase(sdk).goOffline()
      await deleteApp(sdk)
      await stopServer(http)
    },
  }
  http.on('request', (request: IncomingMessage, response: ServerResponse) => {
    void answerTo(peer, data, request).then((answer) => {
      if (!answer) return
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
      response.end(JSON.stringify(answer.value))
    })
  })
  return peer
}

interface Answer {
  readonly status: number
  readonly value: unknown
  readonly headers?: Readonly<Record<string, string>>
}

async function answerTo(peer: RealtimePeer, data: Reference, request: IncomingMessage): Promise<Answer | null> {
  const url = new URL(request.url ?? '/', 'http://peer')
  const body = await text(request)
  const keys = url.pathname
    .slice(1)
    .replace(/\.json$/, '')
    .split('/')
    .map(decodeURIComponent)
  const parsed: unknown = body === '' ? undefined : JSON.parse(body)
  const { method = '', headers } = request
  const call = { method, keys, namespace: url.searchParams.get('ns'), headers, body: parsed }
  peer.calls.push(call)
  await peer.beforeCall(call)
  if (peer.behaviour === 'hang') return null
  if (peer.behaviour !== 'ok') return { status: peer.behaviour, value: { error: 'refused by the test' } }
  if (headers.authorization !== `Bearer ${peer.token}`)
    return { status: 401, value: { error: 'Unauthorized request.' } }
  if (!url.pathname.endsWith('.json') || keys.some((key) => key === '' || /[.$#[\]/]/.test(key))) {
    return { status: 400, value: { error: 'Invalid path.' } }
  }
  return carryOut(peer, data.child(keys.join('/')), call)
}

/** Reads and writes without a pause, so that conditions hold. */
function carryOut(peer: RealtimePeer, place: Reference, { method, headers, body }: RestCall): Answer {
  let value: unknown
  place.once('value', (snapshot) => (value = snapshot.val()))
  const etag = etagOf(value)
  if (method === 'GET') {
    const isAsked = headers['x-firebase-etag'] === 'true' && peer.givesEtags
    return { status: 200, value, headers: isAsked ? { etag } : {} }
  }
  if (method !== 'PUT') return { status: 405, value: { error: 'method' } }
  const condition = headers['if-match']
  if (condition !== undefined && condition !== etag) return { status: 412, value, headers: { etag } }
  place.set(body)
  return { status: 200, value: body }
}

function etagOf(value: unknown): string {
  return value === null || value === undefined
    ? 'null_etag'
    : createHash('sha1').update(JSON.stringify(value)).digest('base64')
}

function openSdk(databaseURL: string, token: string) {
  const isPlain = databaseURL.startsWith('http:')
  const { projectId, clientEmail, privateKey } = aServiceAccount()
  const credential = isPlain
    ? cert({ projectId, clientEmail, privateKey })
    : { getAccessToken: () => Promise.resolve({ access_token: token, expires_in: 3600 }) }
  return initializeApp({ credential, databaseURL, projectId }, `peer ${databaseURL}`)
}
