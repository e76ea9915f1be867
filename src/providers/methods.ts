import { insertPaymentMethod, listPaymentMethods, updatePaymentMethod, type App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction, type Tx } from '#commands/transaction.ts'
import type { Queries } from '#db/queries.ts'
import { AppError, invalidField, notFound } from '#shared/errors.ts'
import { validate } from '#shared/validate.ts'
import { providerOf, type Method } from './providers.ts'
import {
  credentialsPlace,
  forgetProviderAccount,
  insertProviderAccount,
  listVersions,
  retireProviderAccount,
} from './store.ts'

/**
 * Enables a way to pay. Credentials are sealed; others than the present ones are a further version, and what was opened under the
 * earlier ones goes on with them (contract 7). A method that moves no money is for sandbox apps alone.
 */
export async function enableMethod(
  ctx: Context,
  actor: string,
  app: App,
  method: Method,
  credentials?: unknown,
): Promise<void> {
  const provider = providerOf(method)
  if (provider.isSandboxOnly && !app.isSandbox)
    throw new AppError('invalid_request', `the ${method} method exists on sandbox apps only`)
  const checked =
    provider.credentials && credentials !== undefined ? validate(provider.credentials.schema, credentials) : null
  await inTransaction(ctx, async (tx) => {
    // The row is locked from here on, so that of two operators one adds the next version.
    if (!(await updatePaymentMethod(tx, app.id, method, { isEnabled: true }))) {
      await insertPaymentMethod(tx, { appId: app.id, method, isEnabled: true, createdAt: tx.now, updatedAt: tx.now })
    }
    const version = provider.credentials ? await keepCredentials(tx, app, method, checked) : null
    await recordAudit(tx, {
      actor,
      action: 'method.enable',
      appId: app.id,
      subject: `app ${app.id}`,
      after: { method, ...(version === null ? {} : { version }) },
    })
  })
}

/** The version that opens what is new: a further one where the credentials are others. Throws where there are none. */
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
  if (current && opens(tx, current.credentials, place) === text) return current.version
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

/** What was sealed; null where its key is lost. */
function opens({ ctx }: Tx, sealed: string | null, place: string): string | null {
  try {
    return sealed === null ? null : ctx.keyring.open(sealed, place)
  } catch {
    return null
  }
}

/** No new payment is opened by this method; those that are open complete. */
export async function disableMethod(ctx: Context, actor: string, app: App, method: Method): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    if (!(await updatePaymentMethod(tx, app.id, method, { isEnabled: false }))) {
      throw new AppError('not_found', `${method} is not enabled on this app`)
    }
    await recordAudit(tx, {
      actor,
      action: 'method.disable',
      appId: app.id,
      subject: `app ${app.id}`,
      before: { method },
    })
  })
}

/** The ways to pay that the app has enabled now. */
export async function enabledMethods(db: Queries, appId: number): Promise<Set<string>> {
  const rows = await listPaymentMethods(db, appId)
  return new Set(rows.filter((row) => row.isEnabled).map((row) => row.method))
}

/** What became of what was open under credentials that were forgotten. */
export interface ForgottenVersion {
  readonly method: string
  readonly version: number
  readonly closedSessions: number
}

/**
 * Erases a version of an app's credentials: nothing that was opened under it is looked up any more, its notifications are not believed,
 * and its payments are not refunded by us. Throws `not_found`, and `invalid_request` for the version that is in use.
 */
export async function forgetVersion(
  ctx: Context,
  actor: string,
  app: App,
  method: Method,
  version: number,
): Promise<ForgottenVersion> {
  return inTransaction(ctx, async (tx) => {
    const account = (await listVersions(tx, app.id, method)).find((each) => each.version === version)
    if (!account || account.credentials === null) throw notFound(`version ${version} of the ${method} credentials`)
    const isEnabled = (await enabledMethods(tx, app.id)).has(method)
    if (account.retiredAt === null && isEnabled)
      throw new AppError(
        'invalid_request',
        `version ${version} is in use: enable ${method} with others, or disable it, first`,
      )
    await retireProviderAccount(tx, account.id)
    const closedSessions = await forgetProviderAccount(tx, account.id)
    await recordAudit(tx, {
      actor,
      action: 'method.forget',
      appId: app.id,
      subject: `app ${app.id}`,
      before: { method, version },
      after: { method, closed_sessions: closedSessions },
    })
    return { method, version, closedSessions }
  })
}
