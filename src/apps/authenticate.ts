import type { Caller } from '#commands/caller.ts'
import type { Context } from '#context.ts'
import { admitByKey, RecentlyProven } from '#http/admission.ts'
import { routesOf, type Access, type ApiRoute, type AuthPolicy, type SignedCall } from '#http/route.ts'
import { constantTimeEqual, hmacHex, sha256Hex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { unixSeconds } from '#shared/time.ts'
import { earlierSecrets } from './earlier-secrets.ts'
import { explainRefusal, TIMESTAMP_TOLERANCE_SECONDS } from './explain-refusal.ts'
import { appsByKey, secretPlace, type App } from './store.ts'
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

/** The string that an HMAC app signs: `{timestamp}.{METHOD}.{path with query, as sent}.{raw body}` (R2). */
export function signRequest(
  secret: string,
  timestamp: string,
  call: Pick<SignedCall, 'method' | 'target' | 'body'>,
): string {
  return hmacHex(secret, `${timestamp}.${call.method}.${call.target}.`, call.body)
}

/** The form in which `createApp` makes them. */
const API_KEY = /^pk_(?:live|test)_[0-9a-f]{24}$/
/** A JWT: three parts in base64url. */
const BEARER = /^Bearer ([\w-]+\.[\w-]+\.[\w-]+)$/i

/** The encrypted secrets of apps that have signed recently, by api_key. */
const provenSecrets = new RecentlyProven<ApiSecrets>()
/** Hashes of recently accepted identity tokens, each with its app's key. */
const provenTokens = new RecentlyProven()

/** Who calls the API, what they may use, and to whom their idempotency keys and limits belong. */
export const authPolicy: AuthPolicy<ApiCaller> = {
  async authenticate(ctx, call) {
    const credentials = readCredentials(ctx, call)
    if (!credentials) throw unauthorized(ctx, call)
    const { apiKey, isTimely, bearer } = credentials
    const last = isTimely ? provenSecrets.get(apiKey) : undefined
    const fitsLast = last !== undefined && isSignedBy(ctx, { apiKey, ...last }, call)
    const proof = bearer === null ? null : sha256Hex(`${apiKey} ${bearer}`)
    const isKnown = fitsLast || (proof !== null && provenTokens.get(proof) === true)
    const app = await admitByKey(ctx, isKnown ? 'known' : 'stranger', appsByKey, apiKey)
    const token = app?.auth === 'identity' && bearer !== null ? await tokenOf(ctx, app, bearer) : null
    if (token !== null && proof !== null) provenTokens.add(proof, true)
    // The same secrets give the same signatures: they are not computed twice.
    const isSigned = last && app && haveSameSecrets(last, app) ? fitsLast : isTimely && isSignedBy(ctx, app, call)
    if (!app || (app.auth === 'identity' ? token === null : !isSigned)) throw unauthorized(ctx, call, app)
    if (isSigned) provenSecrets.add(apiKey, { apiSecret: app.apiSecret, earlierApiSecrets: app.earlierApiSecrets })
    if (app.disabledAt) throw new AppError('app_disabled', 'this app is disabled')
    return { ...nameOf(app, token), appId: app.id, app, endUser: token?.sub ?? null, token }
  },
  authorize(caller: ApiCaller, access: Access) {
    if (access === 'hmac' && caller.app.auth !== 'hmac') throw forbidden()
  },
  subject: (caller) => caller.endUser ?? '',
}

function nameOf(app: App, token: EndUserToken | null): Caller {
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
  /** Whether it can be an HMAC app's call: the signature is well-formed, and the timestamp is near. */
  readonly isTimely: boolean
  /** The identity token of an identity-token app's call. */
  readonly bearer: string | null
}

/** Null for malformed credentials, which are refused without asking the database. */
function readCredentials(ctx: Context, call: SignedCall): Credentials | null {
  const apiKey = header(call, 'x-app-key')
  const timestamp = header(call, 'x-timestamp')
  const isTimely =
    /^[0-9a-f]{64}$/.test(header(call, 'x-signature')) &&
    /^\d{1,12}$/.test(timestamp) &&
    Math.abs(Number(timestamp) - unixSeconds(ctx.clock.now())) <= TIMESTAMP_TOLERANCE_SECONDS
  const bearer = BEARER.exec(header(call, 'authorization'))?.[1] ?? null
  return API_KEY.test(apiKey) && (isTimely || bearer !== null) ? { apiKey, isTimely, bearer } : null
}

/** The encrypted secrets that an app's calls may be signed with: the present one, and those that a rotation left valid (R330). */
type ApiSecrets = Pick<App, 'apiSecret' | 'earlierApiSecrets'>

function haveSameSecrets(one: ApiSecrets, other: ApiSecrets): boolean {
  return one.apiSecret === other.apiSecret && one.earlierApiSecrets === other.earlierApiSecrets
}

/** Whether one of the app's secrets signed the call. */
function isSignedBy(ctx: Context, app: (ApiSecrets & Pick<App, 'apiKey'>) | null, call: SignedCall): boolean {
  if (app?.apiSecret) {
    const present = ctx.keyring.open(app.apiSecret, secretPlace('api_secret', app.apiKey))
    return fits(present, call) || earlierSecrets(ctx, app, ctx.clock.now()).some(({ secret }) => fits(secret, call))
  }
  // A signature is also computed for an unknown key, so that the response takes as long.
  signRequest('sk_none', header(call, 'x-timestamp'), call)
  return false
}

function fits(secret: string, call: SignedCall): boolean {
  return constantTimeEqual(signRequest(secret, header(call, 'x-timestamp'), call), header(call, 'x-signature'))
}

async function tokenOf(ctx: Context, app: App, bearer: string): Promise<EndUserToken | null> {
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
