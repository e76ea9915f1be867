import type { Caller } from '#commands/caller.ts'
import type { Context } from '#context.ts'
import { admitByKey, recentlyProven } from '#http/admission.ts'
import type { AuthPolicy, SignedCall } from '#http/api-router.ts'
import { routesOf, type Access, type ApiRoute } from '#http/route.ts'
import { sha256Hex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { isTimely } from '#shared/signed-time.ts'
import { CallSignature, type ApiSecrets } from './call-signature.ts'
import { explainRefusal } from './explain-refusal.ts'
import { appsByKey, type App } from './store.ts'
import { verifyIdentityToken, type EndUserToken } from './verify-identity-token.ts'

/** Who calls: an app's server, or one end user of an app through its client. */
export interface ApiCaller extends Caller {
  readonly appId: number
  readonly app: App
  /** The `sub` of the identity token; null for a seller's server, which acts for all end users. */
  readonly endUser: string | null
  /** The verified claims of that token; null for a seller's server. */
  readonly token: EndUserToken | null
}

export type AppRoute = ApiRoute<ApiCaller>
/** Makes the routes of the API. */
export const route = routesOf<ApiCaller>()

/** The form in which `createApp` makes them. */
const API_KEY = /^pk_(?:live|test)_[0-9a-f]{24}$/
/** In lower-case hex, as `signRequest` writes it. */
const SIGNATURE = /^[0-9a-f]{64}$/
/** A JWT: three parts in base64url. */
const BEARER = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i

/** The encrypted secrets of apps that have signed recently, by api_key. */
const provenSecrets = recentlyProven<ApiSecrets>()
/** Hashes of recently accepted identity tokens, each with its app's key. */
const provenTokens = recentlyProven<true>()

/** Who calls the API, what they may use, and to whom their idempotency keys and limits belong. */
export const authPolicy: AuthPolicy<ApiCaller> = {
  async authenticate(ctx, call) {
    const credentials = readCredentials(ctx, call)
    if (!credentials) throw unauthorized(ctx, call)
    const standing = isKnown(credentials) ? 'known' : 'stranger'
    const app = await admitByKey(ctx, standing, appsByKey, credentials.apiKey)
    const isSigned = credentials.signature?.isBy(app) ?? false
    const token = app?.auth === 'identity' ? await tokenOf(ctx, app, credentials) : null
    if (!app || (app.auth === 'identity' ? token === null : !isSigned)) throw unauthorized(ctx, call, app)
    remember(credentials, app)
    if (app.disabledAt) throw new AppError('app_disabled', 'this app is disabled')
    return { ...callerOf(app, token), appId: app.id, app, endUser: token?.sub ?? null, token }
  },
  authorize(caller: ApiCaller, access: Access) {
    if (access === 'hmac' && caller.app.auth !== 'hmac') throw forbidden()
  },
  subject: (caller) => caller.endUser ?? '',
}

function callerOf(app: App, token: EndUserToken | null): Caller {
  return token ? { kind: 'end_user', name: token.sub } : { kind: 'server', name: `app ${app.id}` }
}

/** Throws `forbidden` if a client names another end user than itself (R10). */
export function requireSelf(caller: ApiCaller, externalRef: string): void {
  if (caller.endUser !== null && caller.endUser !== externalRef) throw forbidden()
}

export function forbidden(): AppError {
  return new AppError('forbidden', 'this app may not do that')
}

/** The same message for every error, so that callers learn nothing from it; for sandbox keys it says what is wrong. */
function unauthorized(ctx: Context, call: SignedCall, app?: App | null): AppError {
  const timestamp = header(call, 'x-timestamp')
  const sent = {
    apiKey: header(call, 'x-app-key'),
    authorization: header(call, 'authorization'),
    timestamp,
    signature: header(call, 'x-signature'),
    signedText: `${timestamp}.${call.method}.${call.target}.${call.body.toString('utf8')}`,
  }
  const explained = explainRefusal(sent, app, ctx.clock.now())
  return new AppError('unauthorized', explained ?? 'the key, signature, timestamp or token is missing or wrong')
}

/** Credentials that have the right form. */
interface Credentials {
  readonly apiKey: string
  /** That of an HMAC app's call; null if it is malformed, or its timestamp is not near. */
  readonly signature: CallSignature | null
  /** The identity token of an identity-token app's call. */
  readonly bearer: string | null
}

/** Null for malformed credentials, which are refused without asking the database. */
function readCredentials(ctx: Context, call: SignedCall): Credentials | null {
  const apiKey = header(call, 'x-app-key')
  const timestamp = header(call, 'x-timestamp')
  const signature = header(call, 'x-signature')
  const isUsable = SIGNATURE.test(signature) && isTimely(timestamp, ctx.clock.now())
  const bearer = BEARER.exec(header(call, 'authorization'))?.[1] ?? null
  if (!API_KEY.test(apiKey) || (!isUsable && bearer === null)) return null
  return { apiKey, signature: isUsable ? new CallSignature(ctx, call, { apiKey, timestamp, signature }) : null, bearer }
}

/** Whether the same credentials, or the same app's signature, were accepted recently. It only decides how long the caller may wait. */
function isKnown({ apiKey, signature, bearer }: Credentials): boolean {
  const secrets = provenSecrets.get(apiKey)
  if (secrets && signature?.isBy(secrets)) return true
  return bearer !== null && provenTokens.get(hashOf(apiKey, bearer)) === true
}

function remember({ apiKey, bearer }: Credentials, { auth, apiSecret, earlierApiSecrets }: App): void {
  if (auth === 'hmac') provenSecrets.set(apiKey, { apiSecret, earlierApiSecrets })
  else if (bearer !== null) provenTokens.set(hashOf(apiKey, bearer), true)
}

function hashOf(apiKey: string, bearer: string): string {
  return sha256Hex(`${apiKey} ${bearer}`)
}

async function tokenOf(ctx: Context, app: App, { bearer }: Credentials): Promise<EndUserToken | null> {
  if (bearer === null) return null
  try {
    return await verifyIdentityToken(ctx, app, bearer)
  } catch (error) {
    if (error instanceof AppError && error.code === 'unauthorized') return null
    throw error
  }
}

function header(call: SignedCall, name: string): string {
  const value = call.headers[name]
  return typeof value === 'string' ? value : ''
}
