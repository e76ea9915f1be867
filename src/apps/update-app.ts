import { z } from 'zod'
import type { Config } from '#config.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { emailAddress, text, validate } from '#shared/validate.ts'
import { presentApp } from './present.ts'
import { realtimePath } from './realtime-path.ts'
import { returnOrigins } from './return-origins.ts'
import { getApp, updateAppRow, type App } from './store.ts'
import { webhookUrl } from './webhook-url.ts'

const updateAppInput = ({ env, webhook }: Config) =>
  z.strictObject({
    name: text(191).optional(),
    /** Null takes the address away; events are kept all the same. */
    webhook_url: webhookUrl(webhook.allowInsecure).nullish(),
    mail_from: emailAddress.nullish(),
    path: realtimePath.optional(),
    client_amounts: z.boolean().optional(),
    /** Null allows any again. */
    return_origins: returnOrigins(env === 'development').nullish(),
  })

/** Changes an app's settings; null clears one. Throws `invalid_request` where nothing is to be changed. */
export async function updateApp(ctx: Context, actor: string, app: App, input: unknown): Promise<App> {
  const changes = validate(updateAppInput(ctx.config), input)
  if (Object.keys(changes).length === 0) throw new AppError('invalid_request', 'nothing to change: name a setting')
  if (changes.path && !app.realtimeDatabaseUrl)
    throw invalidField('path', 'needs a realtime database: use app set-realtime')
  refuseForServers(app, changes)
  return inTransaction(ctx, async (tx) => {
    await updateAppRow(tx, app.id, {
      ...(changes.name === undefined ? {} : { name: changes.name }),
      ...(changes.webhook_url === undefined ? {} : { webhookUrl: changes.webhook_url }),
      ...(changes.mail_from === undefined ? {} : { mailFrom: changes.mail_from }),
      ...(changes.path === undefined ? {} : { realtimePath: changes.path }),
      ...(changes.client_amounts === undefined ? {} : { allowsClientAmounts: changes.client_amounts }),
      ...(changes.return_origins === undefined ? {} : { returnOrigins: changes.return_origins }),
    })
    const updated = await getApp(tx, app.id)
    const [before, after] = [presentApp(app), presentApp(updated)]
    await recordAudit(tx, { actor, action: 'app.update', appId: app.id, subject: `app ${app.id}`, before, after })
    return updated
  })
}

/** These limit clients alone: on an app whose server signs they would seem to protect and do nothing. */
function refuseForServers(app: App, changes: object): void {
  const field = ['client_amounts', 'return_origins'].find((name) => name in changes)
  if (field !== undefined && app.auth !== 'identity')
    throw invalidField(field, 'only identity-token apps have clients to limit: this one signs its requests')
}

/** Disables or enables an app. What was opened before completes all the same (contract 4). */
export async function setAppDisabled(ctx: Context, actor: string, app: App, isDisabled: boolean): Promise<App> {
  return inTransaction(ctx, async (tx) => {
    await updateAppRow(tx, app.id, { disabledAt: isDisabled ? tx.now : null })
    const action = isDisabled ? 'app.disable' : 'app.enable'
    await recordAudit(tx, {
      actor,
      action,
      appId: app.id,
      subject: `app ${app.id}`,
      before: { disabled: app.disabledAt !== null },
      after: { disabled: isDisabled },
    })
    return getApp(tx, app.id)
  })
}
