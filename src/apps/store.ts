import { byId } from '#db/by-id.ts'
import { bigint, bytes, exact, flag, id, json, realTime, text, words } from '#db/columns.ts'
import { shape, table, type Row } from '#db/table.ts'
import type { Queries } from '#db/queries.ts'
import { anyOf, rowsBy, SharedRead } from '#db/shared-read.ts'
import type { Tx } from '#commands/transaction.ts'
import { found, notFound } from '#shared/errors.ts'
import type { MoreEvent } from './more-events.ts'
import type { PageSettings } from './page-settings.ts'

export type AppAuth = 'hmac' | 'identity'

/** Who issues the identity tokens of an identity-token app (R8). */
export type IdentityProvider =
  | { readonly provider: 'firebase'; readonly projectId: string }
  | { readonly provider: 'oidc'; readonly issuer: string; readonly audience: string; readonly jwksUrl: string }

/** A seller's application. Its secrets are encrypted; `secretPlace` says what each is bound to. */
export const apps = table('apps', {
  id: id(),
  name: words('name', 191),
  apiKey: exact('api_key', 64),
  auth: exact('auth', 16).as<AppAuth>(),
  isSandbox: flag('is_sandbox'),
  disabledAt: realTime('disabled_at').nullable(),
  apiSecret: text('api_secret').nullable(),
  /** Those that a rotation left valid for a while (`earlier-secrets.ts`). */
  earlierApiSecrets: text('earlier_api_secrets').nullable(),
  webhookUrl: exact('webhook_url', 2048).nullable(),
  webhookSecret: text('webhook_secret').nullable(),
  /** The prepared one, which signs nothing yet. */
  nextWebhookSecret: text('next_webhook_secret').nullable(),
  mailFrom: words('mail_from', 320).nullable(),
  identity: json<IdentityProvider>('identity').nullable(),
  /** Whether clients of an identity-token app may open checkouts of mode `payment`, whose amount they choose. */
  allowsClientAmounts: flag('client_amounts'),
  /** Origins that such clients may have payers return to; null allows any. */
  returnOrigins: json<string[]>('return_origins').nullable(),
  realtimeDatabaseUrl: exact('realtime_database_url', 2048).nullable(),
  realtimeServiceAccount: text('realtime_service_account').nullable(),
  realtimePath: exact('realtime_path', 768).nullable(),
  bankAccountId: bigint('bank_account_id').nullable(),
  clockOffsetMs: bigint('clock_offset_ms'),
  pageSettings: json<PageSettings>('page_settings').nullable(),
  /** The events that it asked for beside the usual ones. */
  moreEvents: json<MoreEvent[]>('more_events').nullable(),
  createdAt: realTime('created_at'),
  updatedAt: realTime('updated_at'),
})
export type App = Row<typeof apps>

/** The columns of an app that a change of a payment or a subscription needs: for its own time, its webhook and its realtime database. */
export const notifiedApps = apps.only(
  'id',
  'apiKey',
  'webhookUrl',
  'webhookSecret',
  'realtimeDatabaseUrl',
  'realtimeServiceAccount',
  'realtimePath',
  'clockOffsetMs',
  'pageSettings',
  'moreEvents',
)
export type NotifiedApp = Row<typeof notifiedApps>

/** What payment pages and providers need of an app. */
export const payableApps = apps.only('id', 'name', 'isSandbox', 'bankAccountId', 'clockOffsetMs', 'pageSettings')
export type PayableApp = Row<typeof payableApps>

/** A payment method that an app has enabled or once had. */
export const paymentMethods = table('payment_methods', {
  id: id(),
  appId: bigint('app_id'),
  method: exact('method', 32),
  isEnabled: flag('is_enabled'),
  createdAt: realTime('created_at'),
  updatedAt: realTime('updated_at'),
})
export type PaymentMethod = Row<typeof paymentMethods>

/** The logo of an app's pages. `digest` is its SHA-256, and its public name. */
export const appLogos = table('app_logos', {
  id: id(),
  appId: bigint('app_id'),
  digest: exact('digest', 64),
  type: exact('type', 32),
  content: bytes('content'),
})
export type AppLogo = Row<typeof appLogos>

/** The columns of `apps` that are encrypted. The name is part of what a secret is sealed to. */
export const APP_SECRET_COLUMNS = [
  'api_secret',
  'earlier_api_secrets',
  'webhook_secret',
  'next_webhook_secret',
  'realtime_service_account',
] as const
export type AppSecretColumn = (typeof APP_SECRET_COLUMNS)[number]

/** What a secret is bound to: a ciphertext that was moved to another app or column does not decrypt. */
export function secretPlace(column: AppSecretColumn, apiKey: string): string {
  return `apps.${column}:${apiKey}`
}

export async function insertApp(tx: Tx, row: Omit<App, 'id'>): Promise<number> {
  return tx.insert(apps, row)
}

export async function findApp(db: Queries, appId: number): Promise<App | null> {
  return db.one(apps, 'WHERE id = ?', [appId])
}

export async function getApp(db: Queries, appId: number): Promise<App> {
  return found(await findApp(db, appId), 'app')
}

/** The app as it is now, locked until the commit: for a change that depends on what it has. Throws `not_found`. */
export async function lockApp(tx: Tx, appId: number): Promise<App> {
  return found(await tx.one(apps, 'WHERE id = ? FOR UPDATE', [appId]), 'app')
}

/** Looked up by every call of the API. */
export const appsByKey = rowsBy(apps, 'apiKey')

export async function listApps(db: Queries): Promise<App[]> {
  return db.all(apps, 'ORDER BY id')
}

export async function listAppsByIds(db: Queries, appIds: readonly number[]): Promise<Map<number, App>> {
  return byId(db, apps, appIds)
}

/** Changes columns of one app; throws `not_found` if there is none. */
export async function updateAppRow(tx: Tx, appId: number, changes: Partial<Omit<App, 'id'>>): Promise<void> {
  if ((await tx.update(apps, { id: appId }, { ...changes, updatedAt: tx.now })) !== 1) throw notFound('app')
}

/** Moves an app's own clock from the offset `fromMs` to `toMs`; false if another call has moved it in the meantime. */
export async function moveAppClock(tx: Tx, appId: number, fromMs: number, toMs: number): Promise<boolean> {
  return (await tx.update(apps, { id: appId, clockOffsetMs: fromMs }, { clockOffsetMs: toMs })) === 1
}

/** The payment methods that apps have enabled, by app id; an app without any is absent. */
export const enabledByApp = new SharedRead<number, ReadonlySet<string>>(String, async (db, appIds) => {
  const { sql, params } = anyOf(
    'app_id = ? AND is_enabled = 1',
    appIds.map((appId) => [appId]),
  )
  const rows = await db.all(paymentMethods, sql, params)
  const byApp = Map.groupBy(rows, ({ appId }) => String(appId))
  return new Map([...byApp].map(([appId, enabled]) => [appId, new Set(enabled.map(({ method }) => method))]))
})

export async function listAppsWithMethod(db: Queries, method: string): Promise<PaymentMethod[]> {
  return db.all(paymentMethods, 'WHERE method = ? ORDER BY app_id', [method])
}

export async function insertPaymentMethod(tx: Tx, row: Omit<PaymentMethod, 'id'>): Promise<void> {
  await tx.insert(paymentMethods, row)
}

export async function lockPaymentMethod(tx: Tx, appId: number, method: string): Promise<PaymentMethod | null> {
  return tx.one(paymentMethods, 'WHERE app_id = ? AND method = ? FOR UPDATE', [appId, method])
}

export async function updatePaymentMethod(
  tx: Tx,
  appId: number,
  method: string,
  changes: Pick<PaymentMethod, 'isEnabled'>,
): Promise<boolean> {
  return (await tx.update(paymentMethods, { appId, method }, { ...changes, updatedAt: tx.now })) === 1
}

export async function findLogo(db: Queries, digest: string): Promise<AppLogo | null> {
  return db.one(appLogos, 'WHERE digest = ? LIMIT 1', [digest])
}

/** Replaces the app's logo; null removes it. */
export async function replaceLogo(tx: Tx, appId: number, logo: Omit<AppLogo, 'id' | 'appId'> | null): Promise<void> {
  await tx.run('DELETE FROM app_logos WHERE app_id = ?', [appId])
  if (logo) await tx.insert(appLogos, { ...logo, appId })
}

/** Apps whose test clock was moved. Each has a present of its own. */
export async function listMovedApps(db: Queries): Promise<{ id: number; clockOffsetMs: number }[]> {
  return db.all(
    shape({ id: id(), clockOffsetMs: bigint() }),
    'SELECT id, clock_offset_ms AS clockOffsetMs FROM apps WHERE clock_offset_ms <> 0 ORDER BY id',
  )
}
