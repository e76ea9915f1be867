import {
  createRemoteJWKSet,
  customFetch,
  jwtVerify,
  type JWTHeaderParameters,
  type JWTPayload,
  type JWTVerifyGetKey,
} from 'jose'
import type { Context } from '#context.ts'
import { requestEndpoint } from '#http/outbound/request-endpoint.ts'
import { BoundedMap } from '#shared/bounded-map.ts'
import { isHttpsOrOwn } from '#shared/loopback.ts'
import type { IdentityProvider } from './store.ts'

type OidcProvider = Extract<IdentityProvider, { provider: 'oidc' }>

/** Asymmetric algorithms only: otherwise the issuer's public key could be used as a shared secret (RFC 8725, 2.1). */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519']
/** Keys are fetched again at this age, or when a token names an unknown one. */
const KEYS_FRESH_MS = 10 * 60 * 1000
const FETCH_MS = 4000
/** Anyone can send tokens with invented key ids, so fetches are limited: this many at once, then one per interval. */
const FETCH_BURST = 10
const FETCH_EVERY_MS = 5000
/** Key sets by their addresses, which operators choose: no token can drop one. */
const MAX_KEY_SETS = 256

const keySets = new BoundedMap<string, JWTVerifyGetKey>(MAX_KEY_SETS)

/**
 * The claims of an identity token that the provider signed for this audience and that has not expired, give or take the leeway. Throws for
 * any other token, also for other kinds of tokens that the provider signs with the same keys (R9).
 */
export async function verifyOidcToken(
  ctx: Context,
  provider: OidcProvider,
  token: string,
  leewaySeconds: number,
): Promise<JWTPayload> {
  const { payload, protectedHeader } = await jwtVerify(token, keySetOf(ctx, provider.jwksUrl), {
    issuer: provider.issuer,
    audience: provider.audience,
    algorithms: ALGORITHMS,
    clockTolerance: leewaySeconds,
    currentDate: ctx.clock.now(),
  })
  refuseOtherKinds(protectedHeader, payload, provider.audience)
  return payload
}

/** Access tokens have another type, logout and security event tokens have events, and tokens for another client have another `azp`. */
function refuseOtherKinds({ typ }: JWTHeaderParameters, claims: JWTPayload, audience: string): void {
  // A type is a media type, and so case-insensitive (RFC 7515, 4.1.9).
  if (typ !== undefined && !(typeof typ === 'string' && typ.toUpperCase() === 'JWT'))
    throw new Error('the token has another type')
  if ('events' in claims) throw new Error('the token has events: it is not an identity token')
  if (claims['azp'] !== undefined && claims['azp'] !== audience)
    throw new Error('the token was issued to another client')
}

function keySetOf(ctx: Context, jwksUrl: string): JWTVerifyGetKey {
  return keySets.getOrCreate(jwksUrl, () => openKeySet(ctx, jwksUrl))
}

function openKeySet(ctx: Context, jwksUrl: string): JWTVerifyGetKey {
  const url = new URL(jwksUrl)
  if (!isHttpsOrOwn(url, ctx.config.env === 'development')) throw new Error('the address of the key set must be https')
  const allowance = new FetchAllowance()
  return createRemoteJWKSet(url, {
    cacheMaxAge: KEYS_FRESH_MS,
    // Replaced by the allowance, so that a new key is accepted at once.
    cooldownDuration: 0,
    timeoutDuration: FETCH_MS,
    [customFetch]: () => fetchKeys(ctx, url, allowance),
  })
}

async function fetchKeys(ctx: Context, url: URL, allowance: FetchAllowance): Promise<Response> {
  if (!allowance.take()) throw new Error('the key set was fetched too often recently')
  try {
    const answer = await requestEndpoint({
      method: 'GET',
      url: url.href,
      headers: { accept: 'application/json, application/jwk-set+json' },
      deadlineMs: FETCH_MS,
    })
    if (answer.status !== 200) throw new Error(`the key set's server answered ${answer.status}`)
    return new Response(answer.body)
  } catch (error) {
    ctx.log.warn({ jwksOrigin: url.origin, error }, 'the keys for identity tokens could not be fetched')
    throw error
  }
}

/** A token bucket. */
class FetchAllowance {
  #left = FETCH_BURST
  #countedMs = performance.now()

  /** Takes one fetch; false if none is left now. */
  take(): boolean {
    const nowMs = performance.now()
    this.#left = Math.min(FETCH_BURST, this.#left + (nowMs - this.#countedMs) / FETCH_EVERY_MS)
    this.#countedMs = nowMs
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
