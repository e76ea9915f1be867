import { z } from 'zod'
import { command } from '#commands/command.ts'
import type { Config } from '#config/config.ts'
import { AppError, InvalidInput } from '#shared/errors.ts'
import { noFieldsLeft } from '#shared/no-fields-left.ts'
import { validate, webAddress } from '#shared/validate.ts'
import { isHttpsOrOwn } from '#shared/loopback.ts'
import { presentApp } from './present.ts'
import { realtimePath } from './realtime-path.ts'
import { ServiceAccountFile } from './service-account.ts'
import { getApp, lockApp, secretPlace, updateAppRow, type App } from './store.ts'

const setRealtimeInput = ({ env }: Config) => {
  const isDevelopment = env === 'development'
  return z.strictObject({
    databaseUrl: webAddress.refine(
      (value) => isDatabaseUrl(value, isDevelopment),
      isDevelopment
        ? 'must be the https address of a realtime database (http on loopback), without a path'
        : 'must be the https address of a realtime database, without a path',
    ),
    /** The text of the service account's JSON file. */
    serviceAccount: z.string().max(50_000, 'is too long'),
    /** Absent: the path stays, or is `users/{uid}/subscription` where there was none. */
    path: realtimePath.optional(),
  })
}

const USUAL_PATH = 'users/{uid}/subscription'

/**
 * Sets the realtime database that the clients of an identity-token app read; the service account is stored encrypted. Nodes of existing
 * subscriptions are written by their next change or by a re-sync. Throws `invalid_request`.
 */
export const setRealtime = command({
  name: 'app.set-realtime',
  input: setRealtimeInput,
  async run(tx, { databaseUrl, serviceAccount, path, ...others }, { app: { id } }: { readonly app: App }) {
    noFieldsLeft(others)
    const app = await lockApp(tx, id)
    if (app.auth !== 'identity') {
      throw new AppError(
        'invalid_request',
        'only identity-token apps have a realtime database: this one signs its requests',
      )
    }
    const account = readAccount(serviceAccount)
    const place = secretPlace('realtime_service_account', app.apiKey)
    await updateAppRow(tx, app.id, {
      realtimeDatabaseUrl: databaseUrl,
      realtimeServiceAccount: tx.ctx.keyring.seal(JSON.stringify(account), place),
      realtimePath: path ?? app.realtimePath ?? USUAL_PATH,
    })
    const updated = await getApp(tx, app.id)
    await tx.audit({
      appId: app.id,
      subject: `app ${app.id}`,
      before: { realtime: presentApp(app)['realtime'] },
      after: { realtime: presentApp(updated)['realtime'], service_account: account.client_email },
    })
    return updated
  },
})

/** Without a path. The host names the database, or `ns` does where a host serves several. */
function isDatabaseUrl(value: string, isDevelopment: boolean): boolean {
  if (!URL.canParse(value)) return false
  const url = new URL(value)
  const isBare = url.pathname === '/' && url.hash === '' && [...url.searchParams.keys()].every((name) => name === 'ns')
  return isBare && isHttpsOrOwn(url, isDevelopment)
}

function readAccount(text: string): z.infer<typeof ServiceAccountFile> {
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch {
    throw new InvalidInput('serviceAccount', 'must be the JSON file of a service account')
  }
  return validate(z.object({ serviceAccount: ServiceAccountFile }), { serviceAccount: file }).serviceAccount
}
