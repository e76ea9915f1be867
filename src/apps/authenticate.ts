import type { Context } from '#context.ts'
import type { Access, ApiRoute, Gate, SignedCall } from '#http/route.ts'
import { constantTimeEqual, hmacHex } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { unixSeconds } from '#shared/time.ts'
import { findAppByKey, secretPlace } from './store.ts'
import type { App } from './store.ts'
import { verifyIdentityToken } from './verify-identity-token.ts'
import type { EndUserToken } from './verify-identity-token.ts'

/** How far `X-Timestamp` may be from the service's clock, either way (contract 2). */
export const TIMESTAMP_TOLERANCE_SECONDS = 300

/** Who calls: an app's server, or one end user of an app through its client. */
export interface Caller {
  readonly appId: number
  readonly app: App
  /** The `sub` of the identity token; null for a seller's server, which speaks for all end users. */
  readonly endUser: string | null
  /** What counts of that token; null for a seller's server. */
  readonly token: EndUserToken | null
}

export type AppRoute = ApiRoute<Caller>

/** The string that an HMAC app signs: `{timestamp}.{METHOD}.{path with query, as sent}.{raw body}` (contract 2). */
export function signRequest(
  secret: string,
  timestamp: string,
  call: Pick<SignedCall, 'method' | 'target' | 'body'>,
): string {
  return hmacHex(secret, `${timestamp}.${call.method}.${call.target}.`, call.body)
}

/** The gate of the API: who calls, what they may use, and what tells repeated requests of different callers apart. */
export const gate: Gate<Caller> = {
  async authenticate(ctx, call) {
    const app = await findAppByKey(ctx.db, header(call, 'x-app-key'))
    const token = app?.auth === 'identity' ? await tokenOf(ctx, app, call) : null
    const genuine = app?.auth === 'identity' ? token !== null : isSigned(ctx, app, call)
    if (!app || !genuine) throw unauthorized()
    if (app.disabledAt) throw new AppError('app_disabled', 'this app is disabled')
    return { appId: app.id, app, endUser: token?.sub ?? null, token }
  },
  admit(caller: Caller, access: Access) {
    if (access === 'hmac' && caller.app.auth !== 'hmac') throw forbidden()
  },
  subject: (caller) => caller.endUser ?? '',
}

/** Throws `forbidden` where a client names another end user than itself (contract 2, identity-token apps). */
export function requireSelf(caller: Caller, externalRef: string): void {
  if (caller.endUser !== null && caller.endUser !== externalRef) throw forbidden()
}

export function forbidden(): AppError {
  return new AppError('forbidden', 'this app may not do that')
}

/** One message for every fault, so that nothing is told apart. */
function unauthorized(): AppError {
  return new AppError('unauthorized', 'the key, signature, timestamp or token is missing or wrong')
}

function isSigned(ctx: Context, app: App | null, call: SignedCall): boolean {
  const timestamp = header(call, 'x-timestamp')
  const isTimely =
    /^\d{1,12}$/.test(timestamp) &&
    Math.abs(Number(timestamp) - unixSeconds(ctx.clock.now())) <= TIMESTAMP_TOLERANCE_SECONDS
  // An unknown key is checked against a secret too, so that the answer takes as long.
  const secret = app?.apiSecret ? ctx.keyring.open(app.apiSecret, secretPlace('api_secret', app.apiKey)) : 'sk_none'
  const isRight = constantTimeEqual(signRequest(secret, timestamp, call), header(call, 'x-signature'))
  return isRight && isTimely && app?.apiSecret !== null && app !== null
}

async function tokenOf(ctx: Context, app: App, call: SignedCall): Promise<EndUserToken | null> {
  const token = /^Bearer ([A-Za-z0-9._-]+)$/i.exec(header(call, 'authorization'))?.[1]
  if (!token) return null
  try {
    return await verifyIdentityToken(ctx, app, token)
  } catch (error) {
    if (error instanceof AppError && error.code === 'unauthorized') return null
    throw error
  }
}

function header(call: SignedCall, name: string): string {
  const value = call.headers[name]
  return typeof value === 'string' ? value : ''
}
