import { CREDENTIALS, openCredentials } from '#apps/methods.ts'
import { credentialsPlace, listAppsWithMethod } from '#apps/store.ts'
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

/** The secrets of all apps, in one read. A secret that does not open is left out: it must not stop the other apps' payments. */
export async function listWebhookSecrets(ctx: Context): Promise<WebhookSecret[]> {
  const secrets: WebhookSecret[] = []
  for (const { appId, credentials } of await listAppsWithMethod(ctx.db, 'card')) {
    if (credentials === null) continue
    try {
      const opened = ctx.keyring.open(credentials, credentialsPlace(appId, 'card'))
      secrets.push({ appId, secret: CREDENTIALS.card.parse(JSON.parse(opened)).webhookSecret })
    } catch (error) {
      ctx.log.error({ error, appId }, 'the card credentials of an app do not open')
    }
  }
  return secrets
}
