import type { JWTPayload } from 'jose'
import type { Context } from '#context.ts'
import { AppError } from '#shared/errors.ts'
import { unixSeconds } from '#shared/time.ts'
import type { App, IdentityProvider } from './store.ts'

/** How far the issuer's clock may be from ours (R8). */
const LEEWAY_SECONDS = 60
/** Longer than any issuer's token; longer ones are refused unread. */
const MAX_TOKEN_LENGTH = 8192
/** The longest `external_ref`, since the subject is one. */
const MAX_SUBJECT_CHARACTERS = 191

/** The verified claims of a token. */
export interface EndUserToken {
  /** The end user. */
  readonly sub: string
  /** The address that the issuer has verified; null without one. */
  readonly verifiedEmail: string | null
}

/**
 * Checks an end user's identity token against the app's identity provider: signature by an allowed algorithm, issuer, audience,
 * expiry, subject, and that it is not from the future. Keys come only from the provider's address, whatever the token says.
 * Throws `unauthorized`, the same for every error.
 */
export async function verifyIdentityToken(ctx: Context, app: App, token: string): Promise<EndUserToken> {
  try {
    if (!app.identity) throw new Error('the app has no identity provider')
    if (token.length > MAX_TOKEN_LENGTH) throw new Error('the token is too long')
    const claims = await verifiedClaims(ctx, app.identity, token)
    return { sub: subjectOf(claims, unixSeconds(ctx.clock.now())), verifiedEmail: verifiedEmailOf(claims) }
  } catch (error) {
    ctx.log.debug({ appId: app.id, error }, 'an identity token was refused')
    throw new AppError('unauthorized', 'the identity token is not valid', { cause: error })
  }
}

/** The libraries are imported here, so that only processes that receive tokens load them. */
async function verifiedClaims(ctx: Context, identity: IdentityProvider, token: string): Promise<JWTPayload> {
  const { decodeProtectedHeader } = await import('jose')
  const { alg, kid } = decodeProtectedHeader(token)
  switch (identity.provider) {
    case 'firebase': {
      const { verifyFirebaseToken } = await import('./firebase-token.ts')
      // The SDK checks no signature at all while FIREBASE_AUTH_EMULATOR_HOST is set, but then takes `none` alone.
      if (alg !== 'RS256' || typeof kid !== 'string') throw new Error('the token is not signed as Firebase signs')
      return verifyFirebaseToken(ctx, identity.projectId, token)
    }
    case 'oidc': {
      const { verifyOidcToken } = await import('./oidc-token.ts')
      return verifyOidcToken(ctx, identity, token, LEEWAY_SECONDS)
    }
  }
}

/** The subject of claims that are valid now; throws for others. */
function subjectOf(claims: JWTPayload, nowSeconds: number): string {
  const { sub, exp, iat, auth_time: authTime } = claims
  if (typeof exp !== 'number' || exp + LEEWAY_SECONDS <= nowSeconds) throw new Error('the token has expired')
  for (const past of [iat, authTime]) {
    if (past === undefined) continue
    if (typeof past !== 'number' || past > nowSeconds + LEEWAY_SECONDS) throw new Error('the token is from the future')
  }
  if (typeof sub !== 'string' || sub === '' || Array.from(sub).length > MAX_SUBJECT_CHARACTERS) {
    throw new Error('the token names no end user')
  }
  return sub
}

/** Some issuers write `email_verified` as a string. */
function verifiedEmailOf({ email, email_verified: isVerified }: JWTPayload): string | null {
  return typeof email === 'string' && email !== '' && (isVerified === true || isVerified === 'true') ? email : null
}
