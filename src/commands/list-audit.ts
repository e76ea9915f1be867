import type { Context } from '#context.ts'
import type { Position } from '#db/conditions.ts'
import { formatTimestamp } from '#shared/time.ts'
import { listAuditEntries, type AuditEntry } from './store.ts'

/** Entries of the audit log below a position, newest first, of one app or all. */
export async function listAudit(
  ctx: Context,
  filter: { readonly appId?: number; readonly below: Position | null; readonly limit: number },
): Promise<AuditEntry[]> {
  return listAuditEntries(ctx.db, filter)
}

/** An entry as operators see it. */
export function presentAuditEntry(entry: AuditEntry) {
  return {
    id: entry.id,
    at: formatTimestamp(entry.at),
    actor: entry.actor,
    action: entry.action,
    app_id: entry.appId,
    subject: entry.subject,
    before: entry.beforeState,
    after: entry.afterState,
    reason: entry.reason,
  }
}
