import { formatTimestamp } from '#shared/time.ts'
import type { App } from './store.ts'

/** The app as operators see it: never a secret, only whether there is one. */
export function presentApp(app: App): Record<string, unknown> {
  return {
    app_id: app.id,
    api_key: app.apiKey,
    name: app.name,
    auth: app.auth,
    sandbox: app.isSandbox,
    disabled: app.disabledAt !== null,
    webhook_url: app.webhookUrl,
    has_webhook_secret: app.webhookSecret !== null,
    mail_from: app.mailFrom,
    identity: app.identity && presentIdentity(app.identity),
    client_amounts: app.allowsClientAmounts,
    return_origins: app.returnOrigins,
    more_events: app.moreEvents ?? [],
    realtime: app.realtimeDatabaseUrl ? { database_url: app.realtimeDatabaseUrl, path: app.realtimePath } : null,
    time_zone: app.pageSettings?.time_zone ?? null,
    bank_app_links: app.pageSettings?.bank_app_links ?? true,
    accent: app.pageSettings?.accent ?? null,
    support: app.pageSettings?.support ?? null,
    terms_url: app.pageSettings?.terms_url ?? null,
    privacy_url: app.pageSettings?.privacy_url ?? null,
    statement_name: app.pageSettings?.statement_name ?? null,
    logo: app.pageSettings?.logo ?? null,
    receipts: app.pageSettings?.receipts ?? false,
    bank_account_id: app.bankAccountId,
    clock_offset_seconds: Math.round(app.clockOffsetMs / 1000),
    created_at: formatTimestamp(app.createdAt),
    updated_at: formatTimestamp(app.updatedAt),
  }
}

function presentIdentity(identity: NonNullable<App['identity']>): Record<string, string> {
  const { provider } = identity
  if (provider === 'firebase') return { provider, project_id: identity.projectId }
  return { provider, issuer: identity.issuer, audience: identity.audience, jwks_url: identity.jwksUrl }
}
