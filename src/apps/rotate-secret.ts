import { command, nothing } from '#commands/command.ts'
import { newApiSecret, newWebhookSecret } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { secretPlace, updateAppRow, type App } from './store.ts'

/** Makes a new API secret, and returns it in plain text, once. The old one is void at once. */
export const rotateSecret = command({
  name: 'app.rotate-secret',
  input: nothing,
  async run(tx, _input, { app }: { readonly app: App }) {
    if (app.auth !== 'hmac') throw new AppError('invalid_request', 'an identity-token app has no API secret')
    const secret = newApiSecret()
    await updateAppRow(tx, app.id, { apiSecret: tx.ctx.keyring.seal(secret, secretPlace('api_secret', app.apiKey)) })
    await tx.audit({ appId: app.id, subject: `app ${app.id}` })
    return { api_secret: secret }
  },
})

/** Makes a new webhook secret, and returns it in plain text, once. Deliveries that still wait are signed with it. */
export const rotateWebhookSecret = command({
  name: 'app.rotate-webhook-secret',
  input: nothing,
  async run(tx, _input, { app }: { readonly app: App }) {
    const secret = newWebhookSecret()
    const sealed = tx.ctx.keyring.seal(secret, secretPlace('webhook_secret', app.apiKey))
    await updateAppRow(tx, app.id, { webhookSecret: sealed })
    await tx.audit({ appId: app.id, subject: `app ${app.id}` })
    return { webhook_secret: secret }
  },
})
