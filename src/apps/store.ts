import { EntitySchema } from 'typeorm'
import { bigint, exact, flag, id, instant, json, longtext, nullable, words } from '#db/columns.ts'
import { rowReader } from '#db/row-reader.ts'
import { insertedId } from '#db/transaction.ts'
import type { ReadOnly, Tx } from '#db/transaction.ts'
import { notFound } from '#shared/errors.ts'

export type AppAuth = 'hmac' | 'identity'

/** Who issues the identity tokens of an identity-token app (contract 2). */
export type IdentityProvider =
  | { readonly provider: 'firebase'; readonly projectId: string }
  | { readonly provider: 'oidc'; readonly issuer: string; readonly audience: string; readonly jwksUrl: string }

/** A seller's application. Secrets are sealed; `secretPlace` names what each is sealed to. */
export interface App {
  id: number
  name: string
  apiKey: string
  auth: AppAuth
  isSandbox: boolean
  disabledAt: Date | null
  apiSecret: string | null
  webhookUrl: string | null
  webhookSecret: string | null
  mailFrom: string | null
  identity: IdentityProvider | null
  /** Whether clients of an identity-token app may open checkouts of mode `payment`, whose amount they choose. */
  allowsClientAmounts: boolean
  /** Origins that such clients may have payers return to; null allows any. */
  returnOrigins: string[] | null
  realtimeDatabaseUrl: string | null
  realtimeServiceAccount: string | null
  realtimePath: string | null
  bankAccountId: number | null
  clockOffsetMs: number
  createdAt: Date
  updatedAt: Date
}

export const apps = new EntitySchema<App>({
  name: 'apps',
  columns: {
    id,
    name: words('name', 191),
    apiKey: exact('api_key', 64),
    auth: exact('auth', 16),
    isSandbox: flag('is_sandbox'),
    disabledAt: nullable(instant('disabled_at')),
    apiSecret: nullable(longtext('api_secret')),
    webhookUrl: nullable(exact('webhook_url', 2048)),
    webhookSecret: nullable(longtext('webhook_secret')),
    mailFrom: nullable(words('mail_from', 320)),
    identity: nullable(json('identity')),
    allowsClientAmounts: flag('client_amounts'),
    returnOrigins: nullable(json('return_origins')),
    realtimeDatabaseUrl: nullable(exact('realtime_database_url', 2048)),
    realtimeServiceAccount: nullable(longtext('realtime_service_account')),
    realtimePath: nullable(exact('realtime_path', 768)),
    bankAccountId: nullable(bigint('bank_account_id')),
    clockOffsetMs: bigint('clock_offset_ms'),
    createdAt: instant('created_at'),
    updatedAt: instant('updated_at'),
  },
})

/** A way to pay that an app has enabled or once had. `credentials` is sealed JSON. */
export interface PaymentMethod {
  id: number
  appId: number
  method: string
  isEnabled: boolean
  credentials: string | null
  createdAt: Date
  updatedAt: Date
}

export const paymentMethods = new EntitySchema<PaymentMethod>({
  name: 'payment_methods',
  columns: {
    id,
    appId: bigint('app_id'),
    method: exact('method', 32),
    isEnabled: flag('is_enabled'),
    credentials: nullable(longtext('credentials')),
    createdAt: instant('created_at'),
    updatedAt: instant('updated_at'),
  },
})

type SecretColumn = 'api_secret' | 'webhook_secret' | 'realtime_service_account'

/** What a secret of an app is sealed to: a ciphertext moved to another app or column does not open. */
export function secretPlace(column: SecretColumn, apiKey: string): string {
  return `apps.${column}:${apiKey}`
}

/** What the credentials of an app's payment method are sealed to. */
export function credentialsPlace(appId: number, method: string): string {
  return `payment_methods.credentials:${appId}:${method}`
}

export async function insertApp(tx: Tx, row: Omit<App, 'id'>): Promise<number> {
  const result = await tx.manager.insert(apps, row)
  return insertedId(result)
}

export async function findApp(db: ReadOnly, appId: number): Promise<App | null> {
  return db.manager.findOneBy(apps, { id: appId })
}

export async function getApp(db: ReadOnly, appId: number): Promise<App> {
  const app = await findApp(db, appId)
  if (!app) throw notFound('app')
  return app
}

const appReader = rowReader(apps)

/** Read for every call of the API. */
export async function findAppByKey(db: ReadOnly, apiKey: string): Promise<App | null> {
  const rows = await db.manager.query<Record<string, unknown>[]>(
    `SELECT ${appReader.columns} FROM apps WHERE api_key = ?`,
    [apiKey],
  )
  return rows[0] ? appReader.read(rows[0]) : null
}

export async function listApps(db: ReadOnly): Promise<App[]> {
  return db.manager.find(apps, { order: { id: 'ASC' } })
}

/** Changes columns of one app; throws `not_found` where there is none. */
export async function updateAppRow(tx: Tx, appId: number, changes: Partial<Omit<App, 'id'>>): Promise<void> {
  const result = await tx.manager.update(apps, { id: appId }, { ...changes, updatedAt: tx.now })
  if (result.affected !== 1) throw notFound('app')
}

/** Moves an app's own clock forward from `fromMs`; false where somebody else moved it meanwhile. */
export async function moveAppClock(tx: Tx, appId: number, fromMs: number, toMs: number): Promise<boolean> {
  const result = await tx.manager.update(apps, { id: appId, clockOffsetMs: fromMs }, { clockOffsetMs: toMs })
  return result.affected === 1
}

export async function listPaymentMethods(db: ReadOnly, appId: number): Promise<PaymentMethod[]> {
  return db.manager.find(paymentMethods, { where: { appId }, order: { method: 'ASC' } })
}

export async function listAppsWithMethod(db: ReadOnly, method: string): Promise<PaymentMethod[]> {
  return db.manager.find(paymentMethods, { where: { method }, order: { appId: 'ASC' } })
}

export async function findPaymentMethod(db: ReadOnly, appId: number, method: string): Promise<PaymentMethod | null> {
  return db.manager.findOneBy(paymentMethods, { appId, method })
}

export async function insertPaymentMethod(tx: Tx, row: Omit<PaymentMethod, 'id'>): Promise<void> {
  await tx.manager.insert(paymentMethods, row)
}

export async function updatePaymentMethod(
  tx: Tx,
  appId: number,
  method: string,
  changes: Partial<Pick<PaymentMethod, 'isEnabled' | 'credentials'>>,
): Promise<boolean> {
  const result = await tx.manager.update(paymentMethods, { appId, method }, { ...changes, updatedAt: tx.now })
  return result.affected === 1
}
