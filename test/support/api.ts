import { createServer, type Server } from 'node:http'
import { request } from 'undici'
import { signRequest } from '#apps/call-signature.ts'
import { MailReader } from '#bank-mail/mail-reader.ts'
import { API_ROUTES, createHttpApp } from '#daemon/app.ts'
import { answerClientErrors } from '#daemon/client-errors.ts'
import { openMetrics } from '#daemon/metrics.ts'
import { errorCodesOf } from '#reference/openapi.ts'
import { ERROR_STATUS } from '#shared/errors.ts'
import { unixSeconds } from '#shared/time.ts'
import type { Called, Envelope, Read, Written } from './answers.ts'
import { testContext, type TestClock, type TestContext } from './context.ts'
import type { TestDb } from './database.ts'
import { listen, stopServer } from './http-server.ts'
import { parsed } from './parsed.ts'

/** A response over real HTTP. `body` is the parsed JSON; what is not JSON is read as `text`. */
export interface Response<Body = Envelope<unknown>> {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  readonly body: Body
}

/** A response of the API. */
export type Answer<Data> = Response<Envelope<Data>>

export interface SellerKeys {
  readonly apiKey: string
  readonly secret: string
}

export interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>
  /** Sent unchanged, instead of the body as JSON. */
  readonly raw?: Buffer | string
}

/** A seller's signed calls. */
export interface SellerClient {
  get<Path extends string>(path: Path, options?: CallOptions): Promise<Answer<Read<Path>>>
  post<Path extends string>(path: Path, body: unknown, options?: CallOptions): Promise<Answer<Written<Path>>>
  put<Path extends string>(path: Path, body: unknown, options?: CallOptions): Promise<Answer<Written<Path>>>
  patch<Path extends string>(path: Path, body: unknown, options?: CallOptions): Promise<Answer<Written<Path>>>
}

/** The whole HTTP application on a port of its own. */
export interface TestService {
  readonly ctx: TestContext
  readonly url: string
  readonly server: Server
  seller(keys: SellerKeys): SellerClient
  /** An unsigned call; redirects are not followed. `path` may be an address of the service. */
  call<Method extends string, Path extends string>(
    method: Method,
    path: Path,
    options?: CallOptions,
  ): Promise<Answer<Called<Method, Path>>>
  /** What the API does not answer: pages, health. */
  call<Body>(method: string, path: string, options?: CallOptions): Promise<Response<Body>>
  stop(): Promise<void>
}

/** Starts the application, on the test database unless another is given; stop it in `afterEach`. */
export async function startService(
  settings: Readonly<Record<string, string>> = {},
  clock?: TestClock,
  db?: TestDb,
): Promise<TestService> {
  const server = createServer({ requireHostHeader: false })
  answerClientErrors(server)
  const url = `http://127.0.0.1:${await listen(server)}`
  const ctx = { ...testContext(settings, { baseUrl: url }, clock), ...(db ? { db } : {}) }
  const handle = createHttpApp(ctx, openMetrics(), { isStopping: false }, mailReaderOf(ctx)).callback()
  server.on('request', (incoming, outgoing) => void handle(incoming, outgoing))
  const call = async (method: string, path: string, options: CallOptions = {}) => {
    const address = new URL(path, url)
    const answer = await send(method, address.href, options)
    expectDeclared(method, address.pathname, answer)
    return answer
  }
  return {
    ctx,
    url,
    server,
    call,
    seller: (keys) => sellerClient(ctx, keys, call),
    stop: () => stopServer(server),
  }
}

const mailReaders = new Map<string, MailReader>()

/** Shared by all services with the same settings, because each reader starts a thread and loads the parser. */
function mailReaderOf({ config: { relay } }: TestContext): MailReader {
  const { authservIds, trustedForwarders, trustedArcSealers } = relay
  const key = JSON.stringify({ authservIds, trustedForwarders, trustedArcSealers })
  const reader = mailReaders.get(key) ?? new MailReader(relay)
  mailReaders.set(key, reader)
  return reader
}

function sellerClient(ctx: TestContext, keys: SellerKeys, call: TestService['call']): SellerClient {
  const signed = (method: string, path: string, body: unknown, { headers = {}, raw }: CallOptions = {}) => {
    const bytes = Buffer.from(raw ?? (body === undefined ? '' : JSON.stringify(body)))
    const timestamp = String(unixSeconds(ctx.clock.now()))
    return call<never>(method, path, {
      raw: bytes,
      headers: {
        'X-App-Key': keys.apiKey,
        'X-Timestamp': timestamp,
        'X-Signature': signRequest(keys.secret, timestamp, { method, target: path, body: bytes }),
        ...(bytes.length > 0 ? { 'Content-Type': 'application/json' } : {}),
        ...headers,
      },
    })
  }
  return {
    get: (path, options) => signed('GET', path, undefined, options),
    post: (path, body, options) => signed('POST', path, body, options),
    put: (path, body, options) => signed('PUT', path, body, options),
    patch: (path, body, options) => signed('PATCH', path, body, options),
  }
}

async function send(method: string, url: string, { headers = {}, raw }: CallOptions): Promise<Response<never>> {
  const hasBody = raw !== undefined && raw.length > 0
  const answer = await request(url, { method: method as 'GET', headers, ...(hasBody ? { body: raw } : {}) })
  const text = await answer.body.text()
  return { status: answer.statusCode, headers: answer.headers, text, body: parsed(text) as never }
}

const DECLARED = API_ROUTES.map((route) => ({
  route,
  pattern: new RegExp(`^${route.path.replace(/:\w+/g, '[^/]+')}$`),
}))

/** Throws unless the response has the shape that its route declares: the declared output, or an error with a declared code. */
function expectDeclared(method: string, path: string, { status, body }: Response): void {
  const route = DECLARED.find(({ route, pattern }) => route.method === method && pattern.test(path))?.route
  if (!route) return
  if (status >= 400) {
    const { code, message, field, request_id } = body.error
    const isShaped = [message, request_id].every((text) => typeof text === 'string') && field !== undefined
    if (isShaped && errorCodesOf(route).includes(code) && ERROR_STATUS[code] === status) return
    throw new Error(`${method} ${route.path} answers ${status} ${code}, which it does not declare`)
  }
  const checked = route.output.safeParse(body.data)
  if (!checked.success) throw new Error(`${method} ${route.path} answers another shape: ${checked.error.message}`)
}
