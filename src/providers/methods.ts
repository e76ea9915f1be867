import {
  credentialsPlace,
  insertPaymentMethod,
  listPaymentMethods,
  updatePaymentMethod,
  type App,
} from '#apps/store.ts'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { Queries } from '#db/queries.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { validate } from '#shared/validate.ts'
import type { Provider } from './provider.ts'
import { providerOf, type Method } from './providers.ts'

/** Enables a way to pay; its credentials are sealed. A method that moves no money is for sandbox apps alone. */
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
  const sealed = sealCredentials(ctx, app, provider, credentials)
  await inTransaction(ctx, async (tx) => {
    const changes = { isEnabled: true, ...(sealed === null ? {} : { credentials: sealed }) }
    if (!(await updatePaymentMethod(tx, app.id, method, changes))) {
      if (provider.credentials && sealed === null) throw invalidField('credentials', `are needed to enable ${method}`)
      await insertPaymentMethod(tx, {
        appId: app.id,
        method,
        isEnabled: true,
        credentials: sealed,
        createdAt: tx.now,
        updatedAt: tx.now,
      })
    }
    await recordAudit(tx, {
      actor,
      action: 'method.enable',
      appId: app.id,
      subject: `app ${app.id}`,
      after: { method },
    })
  })
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

function sealCredentials(
  ctx: Context,
  app: App,
  { method, credentials: spec }: Provider,
  given: unknown,
): string | null {
  if (!spec || given === undefined) return null
  return ctx.keyring.seal(JSON.stringify(validate(spec.schema, given)), credentialsPlace(app.id, method))
}
