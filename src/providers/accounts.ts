import type { z } from 'zod'
import type { Context } from '#context.ts'
import type { Queries } from '#db/queries.ts'
import { AppError } from '#shared/errors.ts'
import { addMs, DAY_MS } from '#shared/time.ts'
import {
  credentialsPlace,
  findProviderAccount,
  listAccountsInUse,
  listVersions,
  type ProviderAccountRow,
} from './accounts/store.ts'

/** Notifications are verified against this many versions of an app's credentials at most (R215). */
const MAX_VERSIONS = 5
/** A refund that was made can fail up to 30 days later (R131); the rest is for a provider that reports it late. */
export const REFUND_MAY_FAIL_MS = 35 * DAY_MS

/** An app's account at a provider: one version of its credentials, decrypted. */
export interface ProviderAccount<Fields> {
  readonly id: number
  readonly appId: number
  readonly version: number
  readonly credentials: Fields
}

/** The accounts of all apps at the provider of one method, by the schema of its credentials. */
export class MethodAccounts<Fields> {
  readonly #method: string
  readonly #schema: z.ZodType<Fields>

  constructor(method: string, schema: z.ZodType<Fields>) {
    this.#method = method
    this.#schema = schema
  }

  /** The account that opens the app's new sessions, whether or not its method is enabled; null if the app has none. */
  async current(ctx: Context, appId: number): Promise<ProviderAccount<Fields> | null> {
    const versions = await listVersions(ctx.db, appId, this.#method)
    const current = versions.find(({ retiredAt }) => retiredAt === null)
    return current ? this.#opened(ctx, current) : null
  }

  /** As `current`; throws `payment_method_unavailable` if there is none. */
  async requireCurrent(ctx: Context, appId: number): Promise<ProviderAccount<Fields>> {
    const account = await this.current(ctx, appId)
    if (!account) throw new AppError('payment_method_unavailable', `${this.#method} is not set up for this app`)
    return account
  }

  /** The account that a session was opened under, or that was paid; null if its credentials were forgotten. */
  async find(ctx: Context, accountId: number, db: Queries = ctx.db): Promise<ProviderAccount<Fields> | null> {
    const row = await findProviderAccount(db, accountId)
    return row && this.#opened(ctx, row)
  }

  /** As `find`; throws `provider_error` if its credentials were forgotten. */
  async get(ctx: Context, accountId: number): Promise<ProviderAccount<Fields>> {
    const account = await this.find(ctx, accountId)
    if (!account) throw new AppError('provider_error', 'the credentials of this payment were erased by method forget')
    return account
  }

  /**
   * The accounts whose notifications count: for each app, the five newest in use. Leaves out credentials that cannot be decrypted, so that
   * they do not stop other apps' payments. `appId` null for all apps; otherwise throws if none of the app's credentials can be decrypted.
   */
  async inUse(ctx: Context, appId: number | null, db: Queries = ctx.db): Promise<ProviderAccount<Fields>[]> {
    const accounts: ProviderAccount<Fields>[] = []
    const counts = new Map<number, number>()
    const failures: unknown[] = []
    const mayFailFrom = addMs(ctx.clock.now(), -REFUND_MAY_FAIL_MS)
    for (const row of await listAccountsInUse(db, this.#method, { appId, mayFailFrom })) {
      const count = (counts.get(row.appId) ?? 0) + 1
      counts.set(row.appId, count)
      if (count > MAX_VERSIONS) continue
      try {
        const account = this.#opened(ctx, row)
        if (account) accounts.push(account)
      } catch (error) {
        ctx.log.error({ error, appId: row.appId, method: this.#method }, "an app's credentials cannot be decrypted")
        failures.push(error)
      }
    }
    if (appId !== null && accounts.length === 0 && failures.length > 0)
      throw new AggregateError(failures, `no ${this.#method} credentials of app ${appId} can be decrypted`)
    return accounts
  }

  /** Null if the credentials were forgotten; throws if their key is missing. */
  #opened(
    ctx: Context,
    { id, appId, method, version, credentials }: ProviderAccountRow,
  ): ProviderAccount<Fields> | null {
    if (credentials === null) return null
    const text = ctx.keyring.open(credentials, credentialsPlace(appId, method))
    return { id, appId, version, credentials: this.#schema.parse(JSON.parse(text)) }
  }
}
