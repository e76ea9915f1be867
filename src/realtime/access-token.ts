import type { JWT } from 'google-auth-library'
import { readServiceAccount } from '#apps/service-account.ts'
import { secretPlace } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { BoundedMap } from '#shared/bounded-map.ts'
import { withTimeout, type Budget } from '#shared/budget.ts'
import { messageOf } from '#shared/errors.ts'
import type { AppWithDatabase } from './realtime-key.ts'

/** The scopes that the database requires. */
const SCOPES = ['https://www.googleapis.com/auth/firebase.database', 'https://www.googleapis.com/auth/userinfo.email']
/** A token request is aborted after this time, even if no caller waits for it any more. */
const REQUEST_MS = 5000
/** Cached clients, each with a token that it renews before it expires. */
const MAX_CLIENTS = 256

/** By app and encrypted account: a new account gets a new client, and one that was moved to another app's row must not open. */
const clients = new BoundedMap<string, JWT>(MAX_CLIENTS)

/**
 * An access token for the app's database; throws if none arrives within the budget. The SDK's `cert(account)` does the same, but caches
 * its request for the lifetime of the process, so that all later calls would wait for one that hangs.
 */
export async function accessToken(ctx: Context, app: AppWithDatabase, leftMs: Budget): Promise<string> {
  const client = await clientOf(ctx, app)
  try {
    const late = new Error('the token endpoint did not answer in time')
    const { token } = await withTimeout(client.getAccessToken(), leftMs(), late)
    if (!token) throw new Error('the token endpoint returned no token')
    return token
  } catch (error) {
    if (clients.get(keyOf(app)) === client) clients.delete(keyOf(app))
    throw new Error(`no access token for the database: ${messageOf(error)}`, { cause: error })
  }
}

/** Makes the next call request another token, after the database refused this one. */
export function forgetAccessToken(app: AppWithDatabase, token: string): void {
  const client = clients.get(keyOf(app))
  if (client?.credentials.access_token === token) clients.delete(keyOf(app))
}

function keyOf({ apiKey, realtimeServiceAccount }: AppWithDatabase): string {
  return `${apiKey} ${realtimeServiceAccount}`
}

async function clientOf(ctx: Context, app: AppWithDatabase): Promise<JWT> {
  const { JWT: Client } = await import('google-auth-library')
  const known = clients.get(keyOf(app))
  if (known) return known
  const { clientEmail, privateKey } = readServiceAccount(
    ctx.keyring.open(app.realtimeServiceAccount, secretPlace('realtime_service_account', app.apiKey)),
  )
  const client = new Client({
    email: clientEmail,
    key: privateKey,
    scopes: SCOPES,
    transporterOptions: { timeout: REQUEST_MS },
  })
  clients.set(keyOf(app), client)
  return client
}
