import { openAllCredentials, openCredentials } from '#apps/methods.ts'
import type { Context } from '#context.ts'

/** A secret that notifications of an app's card provider are signed with. */
export interface WebhookSecret {
  readonly appId: number
  readonly secret: string
}

/** The secret of one app, enabled or not: its open payments complete. Empty where it has none. */
export async function webhookSecretOf(ctx: Context, appId: number): Promise<WebhookSecret[]> {
  const credentials = await openCredentials(ctx, appId, 'card')
  return credentials ? [{ appId, secret: credentials.webhookSecret }] : []
}

/** The secrets of all apps. */
export async function listWebhookSecrets(ctx: Context): Promise<WebhookSecret[]> {
  const all = await openAllCredentials(ctx, 'card')
  return all.map(({ appId, credentials }) => ({ appId, secret: credentials.webhookSecret }))
}
