import { perform } from '#commands/perform.ts'
import { operator } from '#commands/caller.ts'
import type { JWTPayload } from 'jose'
import { setIdentity } from '#apps/set-identity.ts'
import type { Context } from '#context.ts'
import { anApp, type TestApp } from './factories.ts'
import { startOidcIssuer } from './oidc-issuer.ts'

/** An issuer, the apps that trust it, and the calls of their end users. */
export interface IdentityClients {
  /** A sandbox identity-token app. */
  app(ctx: Context): Promise<TestApp>
  /** The headers with which the end user `sub` calls the API through the app now; `claims` are added to its token. */
  headers(ctx: Context, app: TestApp, sub: string, claims?: JWTPayload): Promise<Record<string, string>>
  stop(): Promise<void>
}

export async function startIdentityClients(): Promise<IdentityClients> {
  const issuer = await startOidcIssuer()
  const { issuer: name, audience, jwksUrl } = issuer
  return {
    async app(ctx) {
      const made = await anApp(ctx, { auth: 'identity' })
      const identity = { provider: 'oidc', issuer: name, audience, jwksUrl }
      return { ...made, app: await perform(ctx, operator('tester'), setIdentity, identity, { app: made.app }) }
    },
    async headers(ctx, { apiKey }, sub, claims = {}) {
      const token = await issuer.token(ctx.clock.now(), sub, claims)
      return { 'X-App-Key': apiKey, Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    },
    stop: () => issuer.stop(),
  }
}
