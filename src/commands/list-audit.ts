import type { Context } from '#context.ts'
import { formatTimestamp } from '#shared/time.ts'
import { listAuditEntries } from './store.ts'

/** The newest entries of the audit log, of all apps or of one, as operators see them. */
export async function listAudit(ctx: Context, filter: { readonly appId?: number; readonly limit: number }) {
  const entries = await listAuditEntries(ctx.db, filter)
  return entries.map((entry) => ({
    id: entry.id,
    at: formatTimestamp(entry.at),
    actor: entry.actor,
    action: entry.action,
    app_id: entry.appId,
    subject: entry.subject,
    before: entry.beforeState,
    after: entry.afterState,
    reason: entry.reason,
  }))
}
