import type { z } from 'zod'
import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import { AppError } from '#shared/errors.ts'
import {
  credentialsPlace,
  findProviderAccount,
  listAccountsInUse,
  listVersions,
  type ProviderAccountRow,
} from './store.ts'

/** Notifications are verified against this many versions of an app's credentials (R215). */
const MAX_VERSIONS = 5

/** An app's account at a provider: one version of its credentials, decrypted. */
export interface ProviderAccount<Fields> {
  readonly id: number
  readonly appId: number
  readonly version: number
  readonly credentials: Fields
}

/** The account that opens new sessions, whether or not its method is enabled; null if the app has none. */
export async function currentAccount<Fields>(
  ctx: Context,
  method: string,
  schema: z.ZodType<Fields>,
  appId: number,
): Promise<ProviderAccount<Fields> | null> {
  const current = (await listVersions(ctx.db, appId, method)).find(({ retiredAt }) => retiredAt === null)
  return current ? opened(ctx, schema, current) : null
}

/** As `currentAccount`; throws `payment_method_unavailable` if there is none. */
export async function requireCurrentAccount<Fields>(
  ctx: Context,
  method: string,
  schema: z.ZodType<Fields>,
  appId: number,
): Promise<ProviderAccount<Fields>> {
  const account = await currentAccount(ctx, method, schema, appId)
  if (!account) throw new AppError('payment_method_unavailable', `${method} is not set up for this app`)
  return account
}

/** The account that a session was opened under, or that was paid. Throws `provider_error` if its credentials were forgotten. */
export async function accountOf<Fields>(
  ctx: Context,
  schema: z.ZodType<Fields>,
  accountId: number,
): Promise<ProviderAccount<Fields>> {
  const account = await findAccount(ctx, schema, accountId)
  if (!account) throw new AppError('provider_error', 'the credentials of this payment were erased by method forget')
  return account
}

/** As `accountOf`; null if its credentials were forgotten. */
export async function findAccount<Fields>(
  ctx: Context,
  schema: z.ZodType<Fields>,
  accountId: number,
  db: Queries = ctx.db,
): Promise<ProviderAccount<Fields> | null> {
  const row = await findProviderAccount(db, accountId)
  return row && opened(ctx, schema, row)
}

/**
 * The accounts whose notifications count: for each app, the five newest in use. Leaves out credentials that cannot be decrypted, so that
 * they do not stop other apps' payments. `appId` null for all apps; otherwise throws if none of the app's credentials can be decrypted.
 */
export async function accountsInUse<Fields>(
  ctx: Context,
  method: string,
  schema: z.ZodType<Fields>,
  appId: number | null,
  db: Queries = ctx.db,
): Promise<ProviderAccount<Fields>[]> {
  const accounts: ProviderAccount<Fields>[] = []
  const counts = new Map<number, number>()
  const failures: unknown[] = []
  for (const row of await listAccountsInUse(db, method, appId)) {
    const count = (counts.get(row.appId) ?? 0) + 1
    counts.set(row.appId, count)
    if (count > MAX_VERSIONS) continue
    try {
      const account = opened(ctx, schema, row)
      if (account) accounts.push(account)
    } catch (error) {
      ctx.log.error({ error, appId: row.appId, method }, "an app's credentials cannot be decrypted")
      failures.push(error)
    }
  }
  if (appId !== null && accounts.length === 0 && failures.length > 0)
    throw new AggregateError(failures, `no ${method} credentials of app ${appId} can be decrypted`)
  return accounts
}

/** Null if the credentials were forgotten; throws if their key is missing. */
function opened<Fields>(
  ctx: Context,
  schema: z.ZodType<Fields>,
  { id, appId, method, version, credentials }: ProviderAccountRow,
): ProviderAccount<Fields> | null {
  if (credentials === null) return null
  const text = ctx.keyring.open(credentials, credentialsPlace(appId, method))
  return { id, appId, version, credentials: schema.parse(JSON.parse(text)) }
}
