import { bigint, exact, id, json, realTime, words } from '#db/columns.ts'
import { following, where, type Position } from '#db/conditions.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { shape, table, type Row } from '#db/table.ts'
import { formatTimestamp, type AppTime, type RealTime } from '#shared/time.ts'

/** One change, and who made it. Rows are only ever added. */
export const auditLog = table('audit_log', {
  id: id(),
  at: realTime('at'),
  /** An operator's login name, or another caller with its kind: `server app 3`, `job reminders`. */
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

/** Proof that a transaction was committed, for when the answer to its COMMIT is lost. Needed for seconds, kept for a day. */
export const commitTokens = table('commit_tokens', {
  id: id(),
  token: exact('token', 32),
  createdAt: realTime('created_at'),
})

/** Whether the token is new; false if an earlier attempt of its unit of work was committed. */
export async function insertCommitToken(db: Queries, token: string, now: RealTime): Promise<boolean> {
  return insertedNew('commit_tokens_token', db.insert(commitTokens, { token, createdAt: now }))
}

/** Removes up to `limit` tokens older than `before`; returns how many. */
export async function deleteOldCommitTokens(db: Queries, before: RealTime, limit: number): Promise<number> {
  return db.run('DELETE FROM commit_tokens WHERE created_at < ? ORDER BY created_at LIMIT ?', [before, limit])
}

export async function insertAuditEntry(db: Queries, row: Omit<AuditEntry, 'id'>): Promise<void> {
  await db.insert(auditLog, row)
}

/** Newest first. */
export async function listAuditEntries(
  db: Queries,
  filter: {
    readonly appId?: number
    readonly subject?: string
    readonly after?: Position | null
    readonly limit: number
  },
): Promise<AuditEntry[]> {
  const { appId, subject, limit } = filter
  const listed = where(
    appId === undefined ? null : ['app_id = ?', appId],
    subject === undefined ? null : ['subject = ?', subject],
    following(filter.after ?? null, ['at', 'id'], 'desc'),
  )
  return db.all(auditLog, `${listed.sql} ORDER BY at DESC, id DESC LIMIT ?`, [...listed.params, limit])
}

/**
 * The offset in milliseconds that a sandbox app's clock had at an instant of its own time; null if it has not moved since. Moves
 * recorded without an offset are ignored.
 */
export async function findClockOffsetAt(db: Queries, appId: number, instant: AppTime): Promise<number | null> {
  const move = await db.one(
    shape({ offsetMs: bigint().nullable() }),
    `SELECT JSON_EXTRACT(before_state, '$.clock_offset_ms') AS offsetMs FROM audit_log
     WHERE subject = ? AND action = 'app.clock' AND JSON_UNQUOTE(JSON_EXTRACT(after_state, '$.now')) > ?
     ORDER BY id LIMIT 1`,
    [`app ${appId}`, formatTimestamp(instant)],
  )
  return move?.offsetMs ?? null
}
