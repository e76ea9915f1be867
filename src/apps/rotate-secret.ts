import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { newApiSecret, newWebhookSecret } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { secretPlace, updateAppRow, type App } from './store.ts'

/** A new API secret in plain text, this once; the old one is void at once. */
export async function rotateSecret(ctx: Context, actor: string, app: App): Promise<{ api_secret: string }> {
  if (app.auth !== 'hmac') throw new AppError('invalid_request', 'an identity-token app has no API secret')
  const secret = newApiSecret()
  await inTransaction(ctx, async (tx) => {
    await updateAppRow(tx, app.id, { apiSecret: ctx.keyring.seal(secret, secretPlace('api_secret', app.apiKey)) })
    await recordAudit(tx, { actor, action: 'app.rotate-secret', appId: app.id, subject: `app ${app.id}` })
  })
  return { api_secret: secret }
}

/** A new webhook secret in plain text, this once; deliveries still waiting are signed with it. */
export async function rotateWebhookSecret(ctx: Context, actor: string, app: App): Promise<{ webhook_secret: string }> {
  const secret = newWebhookSecret()
  await inTransaction(ctx, async (tx) => {
    await updateAppRow(tx, app.id, {
      webhookSecret: ctx.keyring.seal(secret, secretPlace('webhook_secret', app.apiKey)),
    })
    await recordAudit(tx, { actor, action: 'app.rotate-webhook-secret', appId: app.id, subject: `app ${app.id}` })
  })
  return { webhook_secret: secret }
}
