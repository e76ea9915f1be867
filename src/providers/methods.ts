import { z } from 'zod'
import { insertPaymentMethod, enabledByApp, lockPaymentMethod, updatePaymentMethod, type App } from '#apps/store.ts'
import { command, nothing } from '#commands/command.ts'
import type { Tx } from '#commands/transaction.ts'
import type { Queries } from '#db/queries.ts'
import { AppError, invalidField, notFound } from '#shared/errors.ts'
import { integer, validate } from '#shared/validate.ts'
import { providerOf, type Method } from './providers.ts'
import {
  credentialsPlace,
  eraseCredentials,
  insertProviderAccount,
  listVersions,
  retireProviderAccount,
} from './accounts/store.ts'
import { endPause } from './pauses/store.ts'
import { closeSessionsUnder } from './store.ts'

/**
 * Enables a payment method. Credentials are encrypted; different ones become a new version, and sessions opened under an earlier version
 * continue with it (R215). A method that moves no money is for sandbox apps only.
 */
export const enableMethod = command({
  name: 'method.enable',
  /** The credentials, which the provider's own schema checks. */
  input: z.unknown(),
  async run(tx, credentials, { app, method }: MethodScope) {
    const provider = providerOf(method)
    if (provider.isSandboxOnly && !app.isSandbox)
      throw new AppError('invalid_request', `the ${method} method exists on sandbox apps only`)
    // Locks the row, so that only one of two operators adds the next version.
    if (!(await updatePaymentMethod(tx, app.id, method, { isEnabled: true }))) {
      await insertPaymentMethod(tx, { appId: app.id, method, isEnabled: true, createdAt: tx.now, updatedAt: tx.now })
    }
    const schema = provider.credentials?.schema
    const given = schema && credentials !== undefined ? validate(schema, credentials) : null
    const version = schema ? { version: await keepCredentials(tx, app, method, given) } : {}
    await tx.audit({ appId: app.id, subject: `app ${app.id}`, after: { method, ...version } })
  },
})

interface MethodScope {
  readonly app: App
  readonly method: Method
}

/** Adds a version if the credentials are new; returns the version that opens new payments. Throws if there is none. */
async function keepCredentials(
  tx: Tx,
  app: App,
  method: Method,
  given: Readonly<Record<string, string>> | null,
): Promise<number> {
  const versions = await listVersions(tx, app.id, method)
  const current = versions.find(({ retiredAt, credentials }) => retiredAt === null && credentials !== null)
  if (given === null) {
    if (!current) throw invalidField('credentials', `are needed to enable ${method}`)
    return current.version
  }
  const place = credentialsPlace(app.id, method)
  const text = JSON.stringify(given)
  if (current && decrypted(tx, current.credentials, place) === text) return current.version
  for (const { id } of versions) await retireProviderAccount(tx, id)
  const version = (versions[0]?.version ?? 0) + 1
  await insertProviderAccount(tx, {
    appId: app.id,
    method,
    version,
    credentials: tx.ctx.keyring.seal(text, place),
    createdAt: tx.now,
    retiredAt: null,
  })
  return version
}

/** The decrypted text; null if its key is lost. */
function decrypted({ ctx }: Tx, sealed: string | null, place: string): string | null {
  try {
    return sealed === null ? null : ctx.keyring.open(sealed, place)
  } catch {
    return null
  }
}

/** Disables a payment method: it opens no new payments, and open ones complete. */
export const disableMethod = command({
  name: 'method.disable',
  input: nothing,
  async run(tx, _input, { app, method }: MethodScope) {
    if (!(await updatePaymentMethod(tx, app.id, method, { isEnabled: false }))) {
      throw new AppError('not_found', `${method} is not enabled on this app`)
    }
    await tx.audit({ appId: app.id, subject: `app ${app.id}`, before: { method } })
  },
})

/** The payment methods that the app has enabled now. */
export async function enabledMethods(db: Queries, appId: number): Promise<ReadonlySet<string>> {
  return (await enabledByApp.find(db, appId)) ?? new Set()
}

/** The result of `forgetVersion`. */
export interface ForgottenVersion {
  readonly method: string
  readonly version: number
  readonly closedSessions: number
}

/**
 * Erases a version of an app's credentials and closes its open sessions. Its sessions are no longer looked up, its notifications are no
 * longer accepted, and its payments are no longer refunded by us. Throws `not_found`, and `invalid_request` for the version that is in use.
 */
export const forgetVersion = command({
  name: 'method.forget',
  input: z.strictObject({ version: integer(1) }),
  async run(tx, { version }, { app, method }: MethodScope): Promise<ForgottenVersion> {
    // Another operator may enable the method, or forget the version, at once.
    const row = await lockPaymentMethod(tx, app.id, method)
    const account = (await listVersions(tx, app.id, method)).find((each) => each.version === version)
    if (!account || account.credentials === null) throw notFound(`version ${version} of the ${method} credentials`)
    if (account.retiredAt === null && row?.isEnabled)
      throw new AppError(
        'invalid_request',
        `version ${version} is in use: enable ${method} with other credentials, or disable it, first`,
      )
    await retireProviderAccount(tx, account.id)
    await eraseCredentials(tx, account.id)
    await endPause(tx, account.id)
    const closedSessions = await closeSessionsUnder(tx, account.id)
    await tx.audit({
      appId: app.id,
      subject: `app ${app.id}`,
      before: { method, version },
      after: { method, version: null, closed_sessions: closedSessions },
    })
    return { method, version, closedSessions }
  },
})
