import { auditName, type Caller } from './caller.ts'
import { insertAuditEntry } from './store.ts'
import type { Tx } from './transaction.ts'

/** A change for the audit log. States hold no secrets: record that one was set, never its value. */
export interface AuditChange {
  readonly action: string
  readonly appId?: number | null
  readonly subject: string
  readonly before?: Readonly<Record<string, unknown>> | null
  readonly after?: Readonly<Record<string, unknown>> | null
  readonly reason?: string | null
}

/** Writes the change and its caller to the audit log, in the transaction that makes the change. */
export async function recordAudit(tx: Tx, caller: Caller, change: AuditChange): Promise<void> {
  const { action, subject, appId = null, before = null, after = null, reason = null } = change
  tx.drafts.changes.push({ action, app_id: appId, subject, before, after })
  await insertAuditEntry(tx, {
    at: tx.now,
    actor: auditName(caller),
    action,
    appId,
    subject,
    beforeState: before,
    afterState: after,
    reason,
  })
}
