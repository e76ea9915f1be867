import { z } from 'zod'
import type { Context } from '#context.ts'
import { recordAudit } from '#commands/audit.ts'
import { inTransaction } from '#commands/transaction.ts'
import type { Queries } from '#db/queries.ts'
import { AppError, invalidField } from '#shared/errors.ts'
import { validate } from '#shared/validate.ts'
import {
  credentialsPlace,
  findPaymentMethod,
  insertPaymentMethod,
  listAppsWithMethod,
  listPaymentMethods,
  updatePaymentMethod,
  type App,
} from './store.ts'

const secret = z.string().trim().min(1, 'must not be empty').max(500, 'is too long')

/** What each method needs to be told; the others need nothing. */
export const CREDENTIALS = {
  card: z.strictObject({ secretKey: secret, webhookSecret: secret }),
  payos: z.strictObject({ clientId: secret, apiKey: secret, checksumKey: secret }),
} as const
export type Credentials = { [Method in keyof typeof CREDENTIALS]: z.infer<(typeof CREDENTIALS)[Method]> }

/** Enables a way to pay; its credentials are sealed. `test` is for sandbox apps alone. */
export async function enableMethod(
  ctx: Context,
  actor: string,
  app: App,
  method: string,
  credentials?: unknown,
): Promise<void> {
  if (method === 'test' && !app.isSandbox)
    throw new AppError('invalid_request', 'the test method exists on sandbox apps only')
  const sealed = sealCredentials(ctx, app, method, credentials)
  await inTransaction(ctx, async (tx) => {
    const changes = { isEnabled: true, ...(sealed === null ? {} : { credentials: sealed }) }
    if (!(await updatePaymentMethod(tx, app.id, method, changes))) {
      if (isCredentialed(method) && sealed === null) throw invalidField('credentials', `are needed to enable ${method}`)
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
export async function disableMethod(ctx: Context, actor: string, app: App, method: string): Promise<void> {
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

/** The credentials of a method, enabled or not: what was opened with them completes. Null where there are none. */
export async function openCredentials<Method extends keyof Credentials>(
  ctx: Context,
  appId: number,
  method: Method,
  db: Queries = ctx.db,
): Promise<Credentials[Method] | null> {
  const row = await findPaymentMethod(db, appId, method)
  if (!row?.credentials) return null
  return unseal(ctx, appId, method, row.credentials)
}

/** One app's credentials of a method. */
export interface AppCredentials<Method extends keyof Credentials> {
  readonly appId: number
  readonly credentials: Credentials[Method]
}

/**
 * The credentials of all apps, enabled or not, in one read. Those that do not open are left out: they must not stop the other apps'
 * payments.
 */
export async function openAllCredentials<Method extends keyof Credentials>(
  ctx: Context,
  method: Method,
  db: Queries = ctx.db,
): Promise<AppCredentials<Method>[]> {
  const opened: AppCredentials<Method>[] = []
  for (const { appId, credentials } of await listAppsWithMethod(db, method)) {
    if (credentials === null) continue
    try {
      opened.push({ appId, credentials: unseal(ctx, appId, method, credentials) })
    } catch (error) {
      ctx.log.error({ error, appId, method }, "an app's credentials do not open")
    }
  }
  return opened
}

function unseal<Method extends keyof Credentials>(
  ctx: Context,
  appId: number,
  method: Method,
  sealed: string,
): Credentials[Method] {
  return JSON.parse(ctx.keyring.open(sealed, credentialsPlace(appId, method))) as Credentials[Method]
}

function sealCredentials(ctx: Context, app: App, method: string, credentials: unknown): string | null {
  if (!isCredentialed(method) || credentials === undefined) return null
  const checked = validate(CREDENTIALS[method], credentials)
  return ctx.keyring.seal(JSON.stringify(checked), credentialsPlace(app.id, method))
}

function isCredentialed(method: string): method is keyof Credentials {
  return method in CREDENTIALS
}
