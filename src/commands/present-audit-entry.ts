import { formatTimestamp } from '#shared/time.ts'
import type { AuditEntry } from './store.ts'

/** An entry of the audit log as operators see it. */
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
