import type { JWT } from 'google-auth-library'
import { readServiceAccount } from '#apps/service-account.ts'
import { secretPlace } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { within, type Budget } from '#shared/budget.ts'
import { messageOf } from '#shared/errors.ts'
import type { AppWithDatabase } from './realtime-key.ts'

/** What the database asks of an access token. */
const SCOPES = ['https://www.googleapis.com/auth/firebase.database', 'https://www.googleapis.com/auth/userinfo.email']
/** A request for a token ends by then, also where nobody waits for it any more. */
const REQUEST_MS = 5000
/** Clients kept, each with its token, which it renews before it ends; the one made first goes first. */
const MAX_CLIENTS = 256

/** By the sealed account, so that another account of the same app is another client. */
const clients = new Map<string, JWT>()

/**
 * An access token for the app's database; throws where none comes within the budget. This is what the SDK's `cert(account)` does
 * inside, without its cache: that one is for the life of the process, so that a request that hangs would be joined by all later ones.
 */
export async function accessToken(ctx: Context, app: AppWithDatabase, leftMs: Budget): Promise<string> {
  const client = await clientOf(ctx, app)
  try {
    const late = new Error('the token endpoint did not answer in time')
    const { token } = await within(client.getAccessToken(), leftMs(), late)
    if (!token) throw new Error('the token endpoint gave no token')
    return token
  } catch (error) {
    if (clients.get(app.realtimeServiceAccount) === client) clients.delete(app.realtimeServiceAccount)
    throw new Error(`no access token for the database: ${messageOf(error)}`, { cause: error })
  }
}

/** Makes the next call ask for another token: the database refused this one. */
export function forgetAccessToken(app: AppWithDatabase, token: string): void {
  const client = clients.get(app.realtimeServiceAccount)
  if (client?.credentials.access_token === token) clients.delete(app.realtimeServiceAccount)
}

async function clientOf(ctx: Context, app: AppWithDatabase): Promise<JWT> {
  const sealed = app.realtimeServiceAccount
  const { JWT: Client } = await import('google-auth-library')
  const known = clients.get(sealed)
  if (known) return known
  const { clientEmail, privateKey } = readServiceAccount(
    ctx.keyring.open(sealed, secretPlace('realtime_service_account', app.apiKey)),
  )
  const client = new Client({
    email: clientEmail,
    key: privateKey,
    scopes: SCOPES,
    transporterOptions: { timeout: REQUEST_MS },
  })
  clients.set(sealed, client)
  const [oldest] = clients.keys()
  if (clients.size > MAX_CLIENTS && oldest !== undefined) clients.delete(oldest)
  return client
}
