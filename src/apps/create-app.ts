import { z } from 'zod'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { newApiSecret, randomHex } from '#shared/crypto.ts'
import { text, validate } from '#shared/validate.ts'
import { insertApp, secretPlace } from './store.ts'
import { webhookUrl } from './webhook-url.ts'

export const createAppInput = (allowInsecure: boolean) =>
  z.strictObject({
    name: text(191),
    auth: z.enum(['hmac', 'identity'], 'must be hmac or identity'),
    sandbox: z.boolean().default(false),
    webhook_url: webhookUrl(allowInsecure).optional(),
  })

export interface CreatedApp {
  readonly app_id: number
  readonly api_key: string
  /** In plain text, this once; null for an identity-token app. */
  readonly api_secret: string | null
}

/** Registers a seller's app (contract 6). */
export async function createApp(ctx: Context, actor: string, input: unknown): Promise<CreatedApp> {
  const { name, auth, sandbox, webhook_url = null } = validate(createAppInput(ctx.config.webhook.allowInsecure), input)
  const apiKey = `pk_${sandbox ? 'test' : 'live'}_${randomHex(12)}`
  const secret = auth === 'hmac' ? newApiSecret() : null
  return inTransaction(ctx, async (tx) => {
    const appId = await insertApp(tx, {
      name,
      apiKey,
      auth,
      isSandbox: sandbox,
      disabledAt: null,
      apiSecret: secret && ctx.keyring.seal(secret, secretPlace('api_secret', apiKey)),
      webhookUrl: webhook_url,
      webhookSecret: null,
      mailFrom: null,
      identity: null,
      allowsClientAmounts: false,
      returnOrigins: null,
      realtimeDatabaseUrl: null,
      realtimeServiceAccount: null,
      realtimePath: null,
      bankAccountId: null,
      clockOffsetMs: 0,
      createdAt: tx.now,
      updatedAt: tx.now,
    })
    const after = { name, auth, sandbox, webhook_url }
    await recordAudit(tx, { actor, action: 'app.create', appId, subject: `app ${appId}`, after })
    return { app_id: appId, api_key: apiKey, api_secret: secret }
  })
}
