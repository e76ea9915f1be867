import { z } from 'zod'
import { command, nothing } from '#commands/command.ts'
import type { Config } from '#config/config.ts'
import type { Tx } from '#commands/transaction.ts'
import { sha256Hex } from '#shared/crypto.ts'
import { AppError, InvalidInput, invalidField } from '#shared/errors.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { given } from '#shared/patch.ts'
import { emailAddress, name } from '#shared/validate.ts'
import { moreEvents } from './more-events.ts'
import { changeSettings, pageSettingsInput, takeSettings } from './page-settings.ts'
import { presentApp } from './present.ts'
import { realtimePath } from './realtime-path.ts'
import { returnOrigins } from './return-origins.ts'
import { readLogo } from './logo.ts'
import { getApp, lockApp, replaceLogo, updateAppRow, type App } from './store.ts'
import { webhookUrl } from './webhook-url.ts'

const updateAppInput = ({ env, webhook }: Config) =>
  z.strictObject({
    name: name(191).optional(),
    /** Null removes the address; events are still stored. */
    webhook_url: webhookUrl(webhook.allowInsecure).nullish(),
    mail_from: emailAddress.nullish(),
    path: realtimePath.optional(),
    client_amounts: z.boolean().optional(),
    /** Null allows any again. */
    return_origins: returnOrigins(env === 'development').nullish(),
    more_events: moreEvents.optional(),
    ...pageSettingsInput,
    /** The file's bytes; null removes the logo. */
    logo: z.instanceof(Buffer, { error: 'must be a file' }).nullish(),
  })

/** Changes an app's settings; null clears one. Throws `invalid_request`, also without any change. */
export const updateApp = command({
  name: 'app.update',
  input: updateAppInput,
  async run(tx, changes, { app: { id } }: { readonly app: App }) {
    if (Object.keys(changes).length === 0) throw new AppError('invalid_request', 'nothing to change: name a setting')
    // The settings are one column: another command may have changed some of them since the caller read the app.
    const app = await lockApp(tx, id)
    if (changes.path && !app.realtimeDatabaseUrl)
      throw invalidField('path', 'needs a realtime database: use app set-realtime')
    refuseForServers(app, changes)
    const { name, webhook_url, mail_from, path, client_amounts, return_origins, more_events, logo, ...rest } = changes
    const { settings, others } = takeSettings(rest)
    noFieldsLeft(others)
    await updateAppRow(
      tx,
      app.id,
      given<App>({
        name,
        webhookUrl: webhook_url,
        mailFrom: mail_from,
        realtimePath: path,
        allowsClientAmounts: client_amounts,
        returnOrigins: return_origins,
        moreEvents: more_events,
        pageSettings: changeSettings(app.pageSettings, { ...settings, ...(await storeLogo(tx, app, logo)) }),
      }),
    )
    const updated = await getApp(tx, app.id)
    const [before, after] = [presentApp(app), presentApp(updated)]
    await tx.audit({ appId: app.id, subject: `app ${app.id}`, before, after })
    return updated
  },
})

/** Stores or removes the logo, and returns the change of the settings. */
async function storeLogo(tx: Tx, app: App, file: Buffer | null | undefined): Promise<{ logo?: string | null }> {
  if (file === undefined) return {}
  const logo = file && readLogo(file)
  if (logo && 'error' in logo) throw new InvalidInput('logo', logo.error)
  const placed = logo && { ...logo, digest: sha256Hex(logo.content) }
  await replaceLogo(tx, app.id, placed)
  return { logo: placed?.digest ?? null }
}

/** These settings limit clients. On an app whose server signs its requests they would do nothing, and seem to protect. */
function refuseForServers(app: App, changes: object): void {
  const field = ['client_amounts', 'return_origins'].find((name) => name in changes)
  if (field !== undefined && app.auth !== 'identity')
    throw invalidField(field, 'only identity-token apps have clients to limit: this one signs its requests')
}

/** Disables or enables an app. Payments that were opened before still complete (R68). */
export const setAppDisabled = command({
  name: 'app.disable',
  input: nothing,
  async run(tx, _input, { app: { id }, isDisabled }: { readonly app: App; readonly isDisabled: boolean }) {
    const app = await lockApp(tx, id)
    await updateAppRow(tx, app.id, { disabledAt: isDisabled ? tx.now : null })
    await tx.audit({
      action: isDisabled ? 'app.disable' : 'app.enable',
      appId: app.id,
      subject: `app ${app.id}`,
      before: { disabled: app.disabledAt !== null },
      after: { disabled: isDisabled },
    })
    return getApp(tx, app.id)
  },
})
