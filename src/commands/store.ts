import { bigint, exact, id, json, realTime, words } from '#db/columns.ts'
import { where } from '#db/conditions.ts'
import type { Queries } from '#db/queries.ts'
import { table, type Row } from '#db/table.ts'

/** One change that an operator made. Rows are only ever added. */
export const auditLog = table('audit_log', {
  id: id(),
  at: realTime('at'),
  /** The operator's login name. */
  actor: words('actor', 191),
  /** `app.rotate-secret` */
  action: exact('action', 64),
  appId: bigint('app_id').nullable(),
  /** `app 3`, `transaction 17` */
  subject: exact('subject', 255),
  beforeState: json<object>('before_state').nullable(),
  afterState: json<object>('after_state').nullable(),
  reason: words('reason', 500).nullable(),
})
export type AuditEntry = Row<typeof auditLog>

export async function insertAuditEntry(db: Queries, row: Omit<AuditEntry, 'id'>): Promise<void> {
  await db.insert(auditLog, row)
}

/** The newest entries first. */
export async function listAuditEntries(
  db: Queries,
  filter: { appId?: number; subject?: string; limit: number },
): Promise<AuditEntry[]> {
  const { appId, subject, limit } = filter
  const listed = where(
    appId === undefined ? null : ['app_id = ?', appId],
    subject === undefined ? null : ['subject = ?', subject],
  )
  return db.all(auditLog, `${listed.sql} ORDER BY at DESC, id DESC LIMIT ?`, [...listed.params, limit])
}
