import { z } from 'zod'
import { command, type CommandTx } from '#commands/command.ts'
import type { Config } from '#config/config.ts'
import { newApiSecret, randomHex } from '#shared/crypto.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { name } from '#shared/validate.ts'
import { insertApp, secretPlace, type App } from './store.ts'
import { webhookUrl } from './webhook-url.ts'

const createAppInput = ({ webhook }: Config) =>
  z.strictObject({
    name: name(191),
    auth: z.enum(['hmac', 'identity'], 'must be hmac or identity'),
    sandbox: z.boolean().default(false),
    webhook_url: webhookUrl(webhook.allowInsecure).optional(),
  })

export interface CreatedApp {
  readonly app_id: number
  readonly api_key: string
  /** In plain text, shown only once; null for an identity-token app. */
  readonly api_secret: string | null
}

/** Registers a seller's app. */
export const createApp = command({
  name: 'app.create',
  input: createAppInput,
  async run(tx, { name, auth, sandbox, webhook_url = null, ...others }): Promise<CreatedApp> {
    noFieldsLeft(others)
    const apiKey = `pk_${sandbox ? 'test' : 'live'}_${randomHex(12)}`
    return registerApp(tx, { name, auth, isSandbox: sandbox, webhookUrl: webhook_url, apiKey, clockOffsetMs: 0 })
  },
})

type NewApp = Pick<App, 'name' | 'auth' | 'isSandbox' | 'webhookUrl' | 'apiKey' | 'clockOffsetMs'>

/** Writes a new app with a secret of its own. A step. */
export async function registerApp(tx: CommandTx, app: NewApp): Promise<CreatedApp> {
  const { name, auth, apiKey, isSandbox: sandbox, webhookUrl: webhook_url } = app
  const secret = auth === 'hmac' ? newApiSecret() : null
  const appId = await insertApp(tx, {
    ...app,
    disabledAt: null,
    apiSecret: secret && tx.ctx.keyring.seal(secret, secretPlace('api_secret', apiKey)),
    earlierApiSecrets: null,
    webhookSecret: null,
    nextWebhookSecret: null,
    mailFrom: null,
    identity: null,
    allowsClientAmounts: false,
    returnOrigins: null,
    realtimeDatabaseUrl: null,
    realtimeServiceAccount: null,
    realtimePath: null,
    bankAccountId: null,
    pageSettings: null,
    moreEvents: null,
    createdAt: tx.now,
    updatedAt: tx.now,
  })
  await tx.audit({ appId, subject: `app ${appId}`, after: { name, auth, sandbox, webhook_url } })
  return { app_id: appId, api_key: apiKey, api_secret: secret }
}
