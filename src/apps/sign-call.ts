import type { Context } from '#context.ts'
import { AppError } from '#shared/errors.ts'
import { unixSeconds } from '#shared/time.ts'
import { signRequest } from './call-signature.ts'
import { secretPlace, type App } from './store.ts'

export interface UnsignedCall {
  readonly method: string
  /** Path with query, as it is sent. */
  readonly target: string
  readonly body: Buffer
}

/** The headers that sign a call as the app's (R2). Throws `invalid_request` for an app without a secret. */
export function signCall(ctx: Context, app: App, call: UnsignedCall): Record<string, string> {
  if (app.apiSecret === null) {
    throw new AppError('invalid_request', `app ${app.id} uses identity tokens: it has no secret to sign with`)
  }
  const secret = ctx.keyring.open(app.apiSecret, secretPlace('api_secret', app.apiKey))
  const timestamp = String(unixSeconds(ctx.clock.now()))
  return {
    'X-App-Key': app.apiKey,
    'X-Timestamp': timestamp,
    'X-Signature': signRequest(secret, timestamp, call),
    ...(call.body.length === 0 ? {} : { 'Content-Type': 'application/json' }),
  }
}
