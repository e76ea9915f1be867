import Router, { type RouterContext } from '@koa/router'
import type { Middleware } from 'koa'
import type { z } from 'zod'
import type { Caller as CommandCaller } from '#commands/caller.ts'
import type { Context } from '#context.ts'
import { invalidField } from '#shared/errors.ts'
import { refuseOverload } from './admission.ts'
import { API_BODY_BYTES, parseJson, readBody } from './body.ts'
import type { RequestState } from './errors.ts'
import { answerOnce, type Answer, type KeepAnswer } from './idempotency.ts'
import type { RateLimit } from './rate-limit.ts'
import {
  isKeyed,
  type Access,
  type ApiAnswer,
  type ApiRequest,
  type ApiRoute,
  type HttpMethod,
  type Keep,
} from './route.ts'
import { refuseMethods, routerRoutes } from './router.ts'

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
  const query = readQuery(route.words.filter, http.query)
  send(http, await answerTo(ctx, route, { caller, subject: auth.subject(caller), query, body }, http))
}

/** A call whose caller may use the route. */
interface AdmittedCall<Caller> {
  readonly caller: Caller
  readonly subject: string
  readonly query: ApiRequest<Caller>['query']
  readonly body: Buffer
}

/** Runs the route's work, or gives the answer that was kept for the call's `Idempotency-Key`. */
async function answerTo<Caller extends CommandCaller & { readonly appId: number }>(
  ctx: Context,
  { method, status, work }: ApiRoute<Caller>,
  { caller, subject, query, body }: AdmittedCall<Caller>,
  http: Http,
): Promise<Answer> {
  const request = (): ApiRequest<Caller> => ({
    caller,
    params: http.params,
    query,
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

/**
 * The parameters of a query. Throws `invalid_request` for an unknown one, such as a misspelt filter, and for a repeated one: a list would
 * have other rows than the caller asked for.
 */
function readQuery(filter: z.ZodObject | undefined, given: Http['query']): Readonly<Record<string, string>> {
  const known = Object.keys(filter?.shape ?? {})
  const query: Record<string, string> = {}
  for (const [name, value] of Object.entries(given)) {
    if (!known.includes(name)) throw invalidField(name, 'is not a query parameter of this call')
    if (typeof value !== 'string') throw invalidField(name, 'is repeated')
    query[name] = value
  }
  return query
}

function requestIdOf(answer: Answer): string {
  const { error } = JSON.parse(answer.body.toString('utf8')) as { error: { request_id: string } }
  return error.request_id
}

function bodyOf(method: HttpMethod, http: Http, body: Buffer): unknown {
  return method === 'GET' ? undefined : parseJson(http.req.headers['content-type'], body)
}

function envelope(status: number, { data, nextCursor }: ApiAnswer): Answer {
  const body = { success: true, data, ...(nextCursor === undefined ? {} : { next_cursor: nextCursor }) }
  return { status, body: Buffer.from(JSON.stringify(body)) }
}
