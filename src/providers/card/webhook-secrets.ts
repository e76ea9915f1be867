import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import { openAllCredentials, openCredentials } from '#providers/credentials.ts'
import { CardCredentials } from './credentials.ts'

/** A secret that notifications of an app's card provider are signed with. */
export interface WebhookSecret {
  readonly appId: number
  readonly secret: string
}

/** The secret of one app, enabled or not: its open payments complete. Empty where it has none. */
export async function webhookSecretOf(ctx: Context, db: Queries, appId: number): Promise<WebhookSecret[]> {
  const credentials = await openCredentials(ctx, 'card', CardCredentials, appId, db)
  return credentials ? [{ appId, secret: credentials.webhookSecret }] : []
}

/** The secrets of all apps. */
export async function listWebhookSecrets(ctx: Context, db: Queries): Promise<WebhookSecret[]> {
  const all = await openAllCredentials(ctx, 'card', CardCredentials, db)
  return all.map(({ appId, credentials }) => ({ appId, secret: credentials.webhookSecret }))
}
