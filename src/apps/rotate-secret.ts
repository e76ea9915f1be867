import { z } from 'zod'
import { command, nothing } from '#commands/command.ts'
import type { Context } from '#context.ts'
import { newApiSecret, newWebhookSecret } from '#shared/crypto.ts'
import { AppError } from '#shared/errors.ts'
import { addMs, DAY_MS, SECOND_MS } from '#shared/time.ts'
import { earlierSecrets, sealEarlier } from './earlier-secrets.ts'
import { lockApp, secretPlace, updateAppRow, type App } from './store.ts'

const MAX_OVERLAP_SECONDS = (7 * DAY_MS) / SECOND_MS

const Rotation = z.strictObject({
  /** How long the present secret stays valid, in seconds; absent: it and every earlier one are void at once. */
  overlap_seconds: z.int().min(1).max(MAX_OVERLAP_SECONDS).optional(),
})

interface Subject {
  readonly app: App
}

/** Makes a new API secret, and returns it in plain text, once (R330). */
export const rotateSecret = command({
  name: 'app.rotate-secret',
  input: Rotation,
  async run(tx, { overlap_seconds: overlap }, subject: Subject) {
    // Another rotation may have made a secret since the caller read the app.
    const app = await lockApp(tx, subject.app.id)
    if (app.auth !== 'hmac') throw new AppError('invalid_request', 'an identity-token app has no API secret')
    const secret = newApiSecret()
    const validUntil = overlap === undefined ? null : addMs(tx.now, overlap * SECOND_MS)
    const kept =
      validUntil === null ? [] : [...earlierSecrets(tx.ctx, app, tx.now), ...presentSecret(tx.ctx, app, validUntil)]
    await updateAppRow(tx, app.id, {
      apiSecret: tx.ctx.keyring.seal(secret, secretPlace('api_secret', app.apiKey)),
      earlierApiSecrets: sealEarlier(tx.ctx, app.apiKey, kept),
    })
    await tx.audit({
      appId: app.id,
      subject: `app ${app.id}`,
      after: validUntil && { old_secret_valid_until: validUntil },
    })
    return { api_secret: secret }
  },
})

function presentSecret(ctx: Context, app: App, validUntil: Date): { secret: string; validUntil: string }[] {
  if (app.apiSecret === null) return []
  const secret = ctx.keyring.open(app.apiSecret, secretPlace('api_secret', app.apiKey))
  return [{ secret, validUntil: validUntil.toISOString() }]
}

/** Makes a new webhook secret, and returns it in plain text. Deliveries that still wait are signed with it; a prepared one is void. */
export const rotateWebhookSecret = command({
  name: 'app.rotate-webhook-secret',
  input: nothing,
  async run(tx, _input, { app }: Subject) {
    const secret = newWebhookSecret()
    await updateAppRow(tx, app.id, { webhookSecret: sealWebhookSecret(tx.ctx, app, secret), nextWebhookSecret: null })
    await tx.audit({ appId: app.id, subject: `app ${app.id}` })
    return { webhook_secret: secret }
  },
})

/** Makes the next webhook secret, and returns it in plain text: it signs nothing before `activateWebhookSecret` (R331). */
export const prepareWebhookSecret = command({
  name: 'app.prepare-webhook-secret',
  input: nothing,
  async run(tx, _input, { app }: Subject) {
    const secret = newWebhookSecret()
    const sealed = tx.ctx.keyring.seal(secret, secretPlace('next_webhook_secret', app.apiKey))
    await updateAppRow(tx, app.id, { nextWebhookSecret: sealed })
    await tx.audit({ appId: app.id, subject: `app ${app.id}` })
    return { webhook_secret: secret }
  },
})

/** Signs with the prepared secret from now on, which was shown when it was prepared. Throws `invalid_request` if none is prepared. */
export const activateWebhookSecret = command({
  name: 'app.activate-webhook-secret',
  input: nothing,
  async run(tx, _input, subject: Subject) {
    const app = await lockApp(tx, subject.app.id)
    if (app.nextWebhookSecret === null)
      throw new AppError(
        'invalid_request',
        'no webhook secret is prepared: run app rotate-webhook-secret with --prepare',
      )
    const secret = tx.ctx.keyring.open(app.nextWebhookSecret, secretPlace('next_webhook_secret', app.apiKey))
    await updateAppRow(tx, app.id, { webhookSecret: sealWebhookSecret(tx.ctx, app, secret), nextWebhookSecret: null })
    await tx.audit({ appId: app.id, subject: `app ${app.id}` })
    return { webhook_secret: null }
  },
})

function sealWebhookSecret(ctx: Context, app: App, secret: string): string {
  return ctx.keyring.seal(secret, secretPlace('webhook_secret', app.apiKey))
}
