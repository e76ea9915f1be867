import Router, { type RouterContext } from '@koa/router'
import type { Middleware } from 'koa'
import type { Context } from '#context.ts'
import { AppError } from '#shared/errors.ts'
import { API_BODY_BYTES, parseJson, readBody } from './body.ts'
import type { RequestState } from './errors.ts'
import { answerOnce, type Answer } from './idempotency.ts'
import type { RateLimit } from './rate-limit.ts'

type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH'

/** Who may call: sellers' servers only, or clients with an identity token too. */
export type Access = 'hmac' | 'any'

/** One API call, read and authenticated. `body` is unchecked JSON; undefined where the method has none. */
export interface ApiRequest<Caller> {
  readonly caller: Caller
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | string[] | undefined>>
  readonly body: unknown
}

/** What a route answers: `data` in the success envelope, or a page of a list with its cursor. */
export interface ApiAnswer {
  readonly status?: 200 | 201
  readonly data: unknown
  /** Present on lists that can grow: where to go on, or null at the end. */
  readonly nextCursor?: string | null
}

export interface ApiRoute<Caller> {
  readonly method: HttpMethod
  /** With `:name` for parameters. */
  readonly path: string
  readonly access: Access
  run(ctx: Context, request: ApiRequest<Caller>): Promise<ApiAnswer>
  /** Makes the answer of the outcome of the one transaction of `run`, so that it can be kept with it; see `commandRoute`. */
  readonly answerOf?: (ctx: Context, request: ApiRequest<Caller>, outcome: unknown) => ApiAnswer
}

interface CommandRoute<Caller, Outcome> extends Pick<ApiRoute<Caller>, 'method' | 'path' | 'access'> {
  /** Runs one transaction, and returns what that returned. */
  run(ctx: Context, request: ApiRequest<Caller>): Promise<Outcome>
  answer(ctx: Context, request: ApiRequest<Caller>, outcome: Outcome): ApiAnswer
}

/** A route whose command is one transaction: under an `Idempotency-Key` its answer is committed with its work, or neither is. */
export function commandRoute<Caller, Outcome>(route: CommandRoute<Caller, Outcome>): ApiRoute<Caller> {
  const { method, path, access } = route
  return {
    method,
    path,
    access,
    run: async (ctx, request) => route.answer(ctx, request, await route.run(ctx, request)),
    answerOf: (ctx, request, outcome) => route.answer(ctx, request, outcome as Outcome),
  }
}

/** What the kit must be told of the domain, which lies to its right. */
export interface Gate<Caller extends { readonly appId: number }> {
  /** The first read of a request, by `admit` of `admission.ts`. Throws `unauthorized`, `app_disabled` or `rate_limited`. */
  authenticate(ctx: Context, call: SignedCall): Promise<Caller>
  /** Throws `forbidden` where the caller may not use routes of this access. */
  admit(caller: Caller, access: Access): void
  /** Whom keys and limits belong to within the app: an end user, or '' for the app's server. */
  subject(caller: Caller): string
}

/** The parts of a request that a signature covers, as they were sent. */
export interface SignedCall {
  readonly method: string
  /** Path with query, byte for byte. */
  readonly target: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

type Http = RouterContext<RequestState>

/** A router for API routes: body, authentication (with it admission), access, rate limit, idempotency, route, envelope, in this order. */
export function apiRouter<Caller extends { readonly appId: number }>(
  ctx: Context,
  routes: readonly ApiRoute<Caller>[],
  gate: Gate<Caller>,
  rateLimit: RateLimit,
): Middleware<RequestState>[] {
  const router = new Router<RequestState>({ strict: true, sensitive: true })
  for (const route of routes) {
    router.register(route.path, [route.method], async (http: Http) => serve(ctx, route, gate, rateLimit, http))
  }
  return [routerRoutes(router), refuseMethods(router)]
}

async function serve<Caller extends { readonly appId: number }>(
  ctx: Context,
  route: ApiRoute<Caller>,
  gate: Gate<Caller>,
  rateLimit: RateLimit,
  http: Http,
): Promise<void> {
  const body = await readBody(http.req, API_BODY_BYTES)
  const target = http.req.url ?? ''
  const caller = await gate.authenticate(ctx, { method: http.method, target, headers: http.req.headers, body })
  gate.admit(caller, route.access)
  await rateLimit.take(caller.appId, gate.subject(caller))
  const request = (): ApiRequest<Caller> => ({
    caller,
    params: http.params,
    query: http.query,
    body: bodyOf(route.method, http, body),
  })
  const run = async (inner: Context): Promise<Answer> => envelope(await route.run(inner, request()))
  const { answerOf } = route
  const answerIn = answerOf && ((outcome: unknown): Answer => envelope(answerOf(ctx, request(), outcome)))
  const key = http.get('Idempotency-Key')
  const repeatable =
    http.request.headers['idempotency-key'] !== undefined && (route.method === 'POST' || route.method === 'PUT')
  const answer = repeatable
    ? await answerOnce(
        ctx,
        {
          appId: caller.appId,
          path: http.path,
          key,
          subject: gate.subject(caller),
          body,
          requestId: http.state.requestId,
        },
        { run, answerIn },
      )
    : await run(ctx)
  // An error that is given again names the request that it was first given to.
  if (answer.status >= 400) http.set('X-Request-Id', requestIdOf(answer))
  http.status = answer.status
  http.type = 'application/json'
  http.body = answer.body
}

function requestIdOf(answer: Answer): string {
  const { error } = JSON.parse(answer.body.toString('utf8')) as { error: { request_id: string } }
  return error.request_id
}

function bodyOf(method: HttpMethod, http: Http, body: Buffer): unknown {
  return method === 'GET' ? undefined : parseJson(http.req.headers['content-type'], body)
}

function envelope(answer: ApiAnswer): Answer {
  const { status = 200, data, nextCursor } = answer
  const body = { success: true, data, ...(nextCursor === undefined ? {} : { next_cursor: nextCursor }) }
  return { status, body: Buffer.from(JSON.stringify(body)) }
}

/** The router's own middleware, typed for an application with our state. */
export function routerRoutes(router: Router<RequestState>): Middleware<RequestState> {
  return router.routes() as unknown as Middleware<RequestState>
}

/** 405 with `Allow` where the path is known and the method is not. */
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
