import Router, { type RouterContext } from '@koa/router'
import type { Middleware } from 'koa'
import { z } from 'zod'
import type { Caller as CommandCaller } from '#commands/caller.ts'
import type { Command } from '#commands/command.ts'
import { perform } from '#commands/perform.ts'
import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import { AppError, invalidField, type ErrorCode } from '#shared/errors.ts'
import { given } from '#shared/patch.ts'
import type { RealTime } from '#shared/time.ts'
import { refuseOverload } from './admission.ts'
import { API_BODY_BYTES, parseJson, readBody } from './body.ts'
import type { RequestState } from './errors.ts'
import { answerOnce, type Answer, type KeepAnswer } from './idempotency.ts'
import { formatCursor, type Page } from './page-of.ts'
import type { RateLimit } from './rate-limit.ts'

type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH'

/** Who may call: sellers' servers only, or clients with an identity token too. */
export type Access = 'hmac' | 'any'

/** An API call, read and authenticated. `body` is unchecked JSON; undefined for methods without one. */
export interface ApiRequest<Caller> {
  readonly caller: Caller
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | string[] | undefined>>
  readonly body: unknown
}

/** The texts of the reference about a call, in Markdown. */
interface RouteWords {
  /** Its name in client libraries: `createPlan`. */
  readonly id: string
  /** A few words: `Create a plan`. */
  readonly summary: string
  readonly description?: string
  /** The error codes of this call, in addition to the codes of every call. */
  readonly errors?: readonly ErrorCode[]
  /** The query parameters; any other is refused. */
  readonly filter?: z.ZodObject
}

/** A call of the API, as data: the router, the 405 handling, the OpenAPI document and the tests of coverage read it. */
export interface ApiRoute<Caller> {
  readonly method: HttpMethod
  /** With `:name` for parameters. */
  readonly path: string
  readonly access: Access
  readonly status: 200 | 201
  /** The shape of `data`. */
  readonly output: z.ZodType
  /** The shape of the body; null if the call has none. */
  readonly body: z.ZodType | null
  readonly words: RouteWords
  readonly isList: boolean
  readonly work: Work<Caller>
}

/** What a call does. Work that is one transaction calls `keep` as its last step there; the answer of other work is kept after it. */
type Work<Caller> = (ctx: Context, request: ApiRequest<Caller>, keep?: Keep) => Promise<ApiAnswer>

/** Stores the answer in the transaction that it belongs to. */
type Keep = (queries: Queries, answer: ApiAnswer) => Promise<void>

/** `data` of the success envelope; for lists that can grow, the next cursor, null at the end. */
interface ApiAnswer {
  readonly data: unknown
  readonly nextCursor?: string | null
}

interface RouteHead<Output extends z.ZodType> extends RouteWords {
  readonly method: HttpMethod
  readonly path: string
  readonly access: Access
  readonly status?: 200 | 201
  readonly output: Output
}

interface CommandRoute<Caller, Output extends z.ZodType, Scope, Result> extends RouteHead<Output> {
  /** A function if clients may do less than servers. */
  readonly command: Command<Scope, Result> | ((caller: Caller) => Command<Scope, Result>)
  /** The input of a server's command, if the command depends on the caller. */
  readonly body?: z.ZodType
  /** The command's scope. Throws if the caller may not do this, or the path names nothing. */
  scope(request: ApiRequest<Caller>): Scope
  present(result: Result, now: RealTime, request: ApiRequest<Caller>): z.input<Output>
}

interface QueryRoute<Caller, Output extends z.ZodType> extends RouteHead<Output> {
  readonly body?: z.ZodType
  query(ctx: Context, request: ApiRequest<Caller>): Promise<z.input<Output>>
}

interface ListRoute<Caller, Item extends z.ZodType, Row> extends Omit<RouteHead<Item>, 'output'> {
  /** The shape of each of its items. */
  readonly item: Item
  list(ctx: Context, request: ApiRequest<Caller>): Promise<Page<Row>>
  present(row: Row): z.input<Item>
}

/** The kinds of API routes for callers of this type. */
export function routesOf<Caller extends CommandCaller>() {
  return {
    /** A POST, PUT or PATCH that performs a command. Its answer for an `Idempotency-Key` is committed with its work. */
    command: <Output extends z.ZodType, Scope, Result>(
      route: CommandRoute<Caller, Output, Scope, Result>,
    ): ApiRoute<Caller> => ({
      ...headOf(route),
      body: route.body ?? inputOf(route.command),
      async work(ctx, request, keep) {
        const answerOf = (result: Result): ApiAnswer => ({ data: route.present(result, ctx.clock.now(), request) })
        // Returns the very answer that was kept, with the same times.
        const kept: ApiAnswer[] = []
        const keepAnswer = async (queries: Queries, result: Result): Promise<void> => {
          const answer = answerOf(result)
          await keep?.(queries, answer)
          kept.push(answer)
        }
        const { caller, body } = request
        const command = typeof route.command === 'function' ? route.command(caller) : route.command
        const result = await perform(ctx, caller, command, body, route.scope(request), { keep: keep && keepAnswer })
        return kept.at(-1) ?? answerOf(result)
      },
    }),
    /** A route that only reads, or that performs several commands. */
    query: <Output extends z.ZodType>(route: QueryRoute<Caller, Output>): ApiRoute<Caller> => ({
      ...headOf(route),
      body: route.body ?? null,
      work: async (ctx, request) => ({ data: await route.query(ctx, request) }),
    }),
    /** A list that can grow: one page, newest first, and the cursor of the next. */
    list: <Item extends z.ZodType, Row>(route: ListRoute<Caller, Item, Row>): ApiRoute<Caller> => ({
      ...headOf({ ...route, output: z.array(route.item) }),
      isList: true,
      body: null,
      async work(ctx, request) {
        const { rows, next } = await route.list(ctx, request)
        return { data: rows.map((row) => route.present(row)), nextCursor: formatCursor(next) }
      },
    }),
  }
}

/** Null if it depends on the caller or the settings: such a route declares its `body`. */
function inputOf(command: object): z.ZodType | null {
  return 'input' in command && command.input instanceof z.ZodType ? command.input : null
}

function headOf({ method, path, access, status = 200, output, ...rest }: RouteHead<z.ZodType>) {
  const { id, summary, description, errors, filter } = rest
  const words = given({ id, summary, description, errors, filter }) as RouteWords
  return { method, path, access, status, output, words, isList: false }
}

/** How the domain authenticates and authorizes callers; the folder `apps` implements it. */
export interface AuthPolicy<Caller extends CommandCaller & { readonly appId: number }> {
  /** The first read of a request, by `admit` of `admission.ts`. Throws `unauthorized`, `app_disabled` or `rate_limited`. */
  authenticate(ctx: Context, call: SignedCall): Promise<Caller>
  /** Throws `forbidden` if the caller may not use routes of this access. */
  authorize(caller: Caller, access: Access): void
  /** The owner of keys and limits within the app: an end user, or '' for the app's server. */
  subject(caller: Caller): string
}

/** The parts of a request that a signature covers, exactly as sent. */
export interface SignedCall {
  readonly method: string
  /** Path with query, byte for byte. */
  readonly target: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

type Http = RouterContext<RequestState>

/** A router for API routes: body, authentication (with it admission), rate limit, access, idempotency, route, envelope, in this order. */
export function apiRouter<Caller extends CommandCaller & { readonly appId: number }>(
  ctx: Context,
  routes: readonly ApiRoute<Caller>[],
  auth: AuthPolicy<Caller>,
  rateLimit: RateLimit,
): Middleware<RequestState>[] {
  const router = new Router<RequestState>({ strict: true, sensitive: true })
  for (const route of routes) {
    router.register(route.path, [route.method], async (http: Http) => serve(ctx, route, auth, rateLimit, http))
  }
  return [routerRoutes(router), refuseMethods(router)]
}

async function serve<Caller extends CommandCaller & { readonly appId: number }>(
  ctx: Context,
  route: ApiRoute<Caller>,
  auth: AuthPolicy<Caller>,
  rateLimit: RateLimit,
  http: Http,
): Promise<void> {
  refuseOverload(ctx, route.method === 'GET')
  const body = await readBody(http.req, API_BODY_BYTES)
  const target = http.req.url ?? ''
  const caller = await auth.authenticate(ctx, { method: http.method, target, headers: http.req.headers, body })
  http.set({ ...(await rateLimit.take(caller.appId, auth.subject(caller))) })
  auth.authorize(caller, route.access)
  // Not kept under an `Idempotency-Key`: the corrected call has the same path and body.
  refuseUnknownParameters(route.words.filter, http.query)
  send(http, await answerTo(ctx, route, { caller, subject: auth.subject(caller), body }, http))
}

/** A call whose caller may use the route. */
interface AdmittedCall<Caller> {
  readonly caller: Caller
  readonly subject: string
  readonly body: Buffer
}

/** Runs the route's work, or gives the answer that was kept for the call's `Idempotency-Key`. */
async function answerTo<Caller extends CommandCaller & { readonly appId: number }>(
  ctx: Context,
  { method, status, work }: ApiRoute<Caller>,
  { caller, subject, body }: AdmittedCall<Caller>,
  http: Http,
): Promise<Answer> {
  const request = (): ApiRequest<Caller> => ({
    caller,
    params: http.params,
    query: http.query,
    body: bodyOf(method, http, body),
  })
  const run = async (keep?: KeepAnswer): Promise<Answer> => {
    const keepEnveloped: Keep | undefined = keep && ((queries, answer) => keep(queries, envelope(status, answer)))
    return envelope(status, await work(ctx, request(), keepEnveloped))
  }
  if (http.req.headers['idempotency-key'] === undefined || !isKeyed(method)) return run()
  const { path, state } = http
  const key = { appId: caller.appId, path, key: http.get('Idempotency-Key'), subject, body, requestId: state.requestId }
  return answerOnce(ctx, key, run)
}

function send(http: Http, answer: Answer): void {
  // A kept error names the request that it was first sent for.
  if (answer.status >= 400) http.set('X-Request-Id', requestIdOf(answer))
  if (answer.isReplayed) http.set('Idempotent-Replayed', 'true')
  http.status = answer.status
  http.type = 'application/json'
  http.body = answer.body
}

/** Otherwise a misspelt filter would return rows that it should leave out. */
function refuseUnknownParameters(filter: z.ZodObject | undefined, query: ApiRequest<unknown>['query']): void {
  const known = Object.keys(filter?.shape ?? {})
  const unknown = Object.keys(query).find((name) => !known.includes(name))
  if (unknown !== undefined) throw invalidField(unknown, 'is not a query parameter of this call')
}

function requestIdOf(answer: Answer): string {
  const { error } = JSON.parse(answer.body.toString('utf8')) as { error: { request_id: string } }
  return error.request_id
}

function bodyOf(method: HttpMethod, http: Http, body: Buffer): unknown {
  return method === 'GET' ? undefined : parseJson(http.req.headers['content-type'], body)
}

/** A PATCH can be repeated without a key. */
function isKeyed(method: HttpMethod): boolean {
  return method === 'POST' || method === 'PUT'
}

function envelope(status: number, { data, nextCursor }: ApiAnswer): Answer {
  const body = { success: true, data, ...(nextCursor === undefined ? {} : { next_cursor: nextCursor }) }
  return { status, body: Buffer.from(JSON.stringify(body)) }
}

/** The router's own middleware, typed for an application with our state. */
export function routerRoutes(router: Router<RequestState>): Middleware<RequestState> {
  return router.routes() as unknown as Middleware<RequestState>
}

/** 405 with `Allow` if the path is known and the method is not. */
export function refuseMethods(router: Router<RequestState>): Middleware<RequestState> {
  return async (http, next) => {
    const allowed = new Set(router.match(http.path, http.method).path.flatMap((layer) => layer.methods))
    if (allowed.size === 0) {
      await next()
      return
    }
    const allow = [...allowed].sort().join(', ')
    throw new AppError('method_not_allowed', `${http.method} is not allowed here`, { headers: { Allow: allow } })
  }
}
