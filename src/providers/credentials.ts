import type { z } from 'zod'
import { credentialsPlace, findPaymentMethod, listAppsWithMethod } from '#apps/store.ts'
import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'

/** The credentials of a method, enabled or not: what was opened with them completes. Null where there are none. */
export async function openCredentials<Fields>(
  ctx: Context,
  method: string,
  schema: z.ZodType<Fields>,
  appId: number,
  db: Queries = ctx.db,
): Promise<Fields | null> {
  const row = await findPaymentMethod(db, appId, method)
  if (!row?.credentials) return null
  return unseal(ctx, method, schema, appId, row.credentials)
}

/** One app's credentials of a method. */
export interface AppCredentials<Fields> {
  readonly appId: number
  readonly credentials: Fields
}

/**
 * The credentials of all apps, enabled or not, in one read. Those that do not open are left out: they must not stop the other apps'
 * payments.
 */
export async function openAllCredentials<Fields>(
  ctx: Context,
  method: string,
  schema: z.ZodType<Fields>,
  db: Queries = ctx.db,
): Promise<AppCredentials<Fields>[]> {
  const opened: AppCredentials<Fields>[] = []
  for (const { appId, credentials } of await listAppsWithMethod(db, method)) {
    if (credentials === null) continue
    try {
      opened.push({ appId, credentials: unseal(ctx, method, schema, appId, credentials) })
    } catch (error) {
      ctx.log.error({ error, appId, method }, "an app's credentials do not open")
    }
  }
  return opened
}

function unseal<Fields>(
  ctx: Context,
  method: string,
  schema: z.ZodType<Fields>,
  appId: number,
  sealed: string,
): Fields {
  return schema.parse(JSON.parse(ctx.keyring.open(sealed, credentialsPlace(appId, method))))
}
