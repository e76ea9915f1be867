import { insertAuditEntry } from './store.ts'
import type { Tx } from './transaction.ts'

/** A change for the audit log. States hold no secrets: say that one was set, never what it is. */
export interface AuditRecord {
  readonly actor: string
  readonly action: string
  readonly appId?: number | null
  readonly subject: string
  readonly before?: Readonly<Record<string, unknown>> | null
  readonly after?: Readonly<Record<string, unknown>> | null
  readonly reason?: string | null
}

/** Writes the change to the audit log, in the transaction that makes it. */
export async function recordAudit(tx: Tx, record: AuditRecord): Promise<void> {
  const { action, subject, before = null, after = null } = record
  tx.drafts.changes.push({ action, subject, before, after })
  await insertAuditEntry(tx, {
    at: tx.now,
    actor: record.actor.slice(0, 191),
    action: record.action,
    appId: record.appId ?? null,
    subject: record.subject,
    beforeState: record.before ?? null,
    afterState: record.after ?? null,
    reason: record.reason ?? null,
  })
}
