import type { App } from '#apps/store.ts'
import type { Context } from '#context.ts'
import { formatTimestamp, formatTimestampOrNull } from '#shared/time.ts'
import { enabledMethods } from './methods.ts'
import { listProviders, type Method } from './providers.ts'
import { countAccountUse, listVersions, type ProviderAccountRow } from './accounts/store.ts'

/** A version of an app's credentials, for operators. */
export interface ListedVersion {
  readonly version: number
  readonly created_at: string
  /** Null for the version that opens new payments. */
  readonly retired_at: string | null
  readonly forgotten: boolean
  readonly open_sessions: number
  readonly refundable_payments: number
}

export interface ListedMethod {
  readonly method: Method
  readonly enabled: boolean
  readonly has_credentials: boolean
  /** The newest first. */
  readonly versions: readonly ListedVersion[]
}

/** Every payment method: whether the app has enabled it, and what depends on each version of its credentials. */
export async function listMethods(ctx: Context, app: App): Promise<ListedMethod[]> {
  const enabled = await enabledMethods(ctx.db, app.id)
  const methods: ListedMethod[] = []
  for (const { method, credentials } of listProviders()) {
    const rows = credentials ? await listVersions(ctx.db, app.id, method) : []
    const versions: ListedVersion[] = []
    for (const row of rows) versions.push(await listedVersion(ctx, row))
    const isSet = versions.some(({ retired_at: retiredAt, forgotten }) => retiredAt === null && !forgotten)
    methods.push({ method, enabled: enabled.has(method), has_credentials: isSet, versions })
  }
  return methods
}

async function listedVersion(
  ctx: Context,
  { id, version, createdAt, retiredAt, credentials }: ProviderAccountRow,
): Promise<ListedVersion> {
  const { openSessions, refundablePayments } = await countAccountUse(ctx.db, id)
  return {
    version,
    created_at: formatTimestamp(createdAt),
    retired_at: formatTimestampOrNull(retiredAt),
    forgotten: credentials === null,
    open_sessions: openSessions,
    refundable_payments: refundablePayments,
  }
}
