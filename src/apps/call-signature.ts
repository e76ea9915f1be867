import type { Context } from '#context.ts'
import type { SignedCall } from '#http/api-router.ts'
import { constantTimeEqual, hmacHex } from '#shared/crypto.ts'
import { earlierSecrets } from './earlier-secrets.ts'
import { secretPlace, type App } from './store.ts'

/** The string that an HMAC app signs: `{timestamp}.{METHOD}.{path with query, as sent}.{raw body}` (R2). */
export function signRequest(
  secret: string,
  timestamp: string,
  call: Pick<SignedCall, 'method' | 'target' | 'body'>,
): string {
  return hmacHex(secret, `${timestamp}.${call.method}.${call.target}.`, call.body)
}

/** The encrypted secrets that an app's calls may be signed with: the present one, and those that a rotation left valid (R330). */
export type ApiSecrets = Pick<App, 'apiSecret' | 'earlierApiSecrets'>

/** What a call says of its signature; both have the right form. */
interface Sent {
  readonly apiKey: string
  readonly timestamp: string
  readonly signature: string
}

/**
 * The signature of one call. The same secrets are tried once, however often they are asked about: a key that is in use, whose secrets are
 * known before its app is read, must not take longer than an unknown one.
 */
export class CallSignature {
  readonly #ctx: Context
  readonly #call: SignedCall
  readonly #sent: Sent
  #tried: { readonly secrets: ApiSecrets | null; readonly fit: boolean } | null = null

  constructor(ctx: Context, call: SignedCall, sent: Sent) {
    this.#ctx = ctx
    this.#call = call
    this.#sent = sent
  }

  /** Whether one of an app's secrets signed the call. Null, for an unknown key, takes as long as a wrong signature. */
  isBy(secrets: ApiSecrets | null): boolean {
    if (!this.#tried || !areSame(this.#tried.secrets, secrets)) this.#tried = { secrets, fit: this.#fit(secrets) }
    return this.#tried.fit
  }

  #fit(secrets: ApiSecrets | null): boolean {
    if (!secrets?.apiSecret) {
      this.#fits('sk_none')
      return false
    }
    const { apiKey } = this.#sent
    const present = this.#ctx.keyring.open(secrets.apiSecret, secretPlace('api_secret', apiKey))
    const earlier = () => earlierSecrets(this.#ctx, { apiKey, ...secrets }, this.#ctx.clock.now())
    return this.#fits(present) || earlier().some(({ secret }) => this.#fits(secret))
  }

  #fits(secret: string): boolean {
    return constantTimeEqual(signRequest(secret, this.#sent.timestamp, this.#call), this.#sent.signature)
  }
}

function areSame(one: ApiSecrets | null, other: ApiSecrets | null): boolean {
  return one?.apiSecret === other?.apiSecret && one?.earlierApiSecrets === other?.earlierApiSecrets
}
