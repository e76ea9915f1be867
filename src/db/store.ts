import { EntitySchema, In } from 'typeorm'
import { bigint, exact, id, instant, json, nullable, words } from './columns.ts'
import type { ReadOnly, Tx } from './transaction.ts'

/** One change that an operator made. Rows are only ever added. */
export interface AuditEntry {
  id: number
  at: Date
  /** The operator's login name. */
  actor: string
  /** `app.rotate-secret` */
  action: string
  appId: number | null
  /** `app 3`, `transaction 17` */
  subject: string
  beforeState: object | null
  afterState: object | null
  reason: string | null
}

export const auditLog = new EntitySchema<AuditEntry>({
  name: 'audit_log',
  columns: {
    id,
    at: instant('at'),
    actor: words('actor', 191),
    action: exact('action', 64),
    appId: nullable(bigint('app_id')),
    subject: exact('subject', 255),
    beforeState: nullable(json('before_state')),
    afterState: nullable(json('after_state')),
    reason: nullable(words('reason', 500)),
  },
})

export async function insertAuditEntry(tx: Tx, row: Omit<AuditEntry, 'id'>): Promise<void> {
  await tx.manager.insert(auditLog, row)
}

/** The newest entries first. */
export async function listAuditEntries(
  db: ReadOnly,
  filter: { appId?: number; subject?: string; limit: number },
): Promise<AuditEntry[]> {
  const { limit, ...where } = filter
  return db.manager.find(auditLog, { where, order: { at: 'DESC', id: 'DESC' }, take: limit })
}

/** What became of a stretch of a job's work. */
export type JobOutcome = 'done' | 'failed' | 'hung' | 'overdue' | 'out_of_memory' | 'ended'

/** A stretch of work of a job, or its failure; `doctor` shows the last of each. */
export interface JobRun {
  id: number
  job: string
  /** Host name and process id: several daemons may share a database. */
  daemon: string
  startedAt: Date
  finishedAt: Date | null
  outcome: JobOutcome | null
  /** Counts of what was done, or why it failed. */
  summary: object | null
}

export const jobRuns = new EntitySchema<JobRun>({
  name: 'job_runs',
  columns: {
    id,
    job: exact('job', 64),
    daemon: words('daemon', 191),
    startedAt: instant('started_at'),
    finishedAt: nullable(instant('finished_at')),
    outcome: nullable(exact('outcome', 16)),
    summary: nullable(json('summary')),
  },
})

export async function insertJobRun(db: ReadOnly, row: Omit<JobRun, 'id'>): Promise<void> {
  await db.manager.insert(jobRuns, row)
}

/** The last run of each job, whatever daemon it was in. */
export async function listLastJobRuns(db: ReadOnly): Promise<JobRun[]> {
  const rows: { id: number }[] = await db.manager.query('SELECT MAX(id) AS id FROM job_runs GROUP BY job')
  return rows.length === 0 ? [] : db.manager.find(jobRuns, { where: { id: In(rows.map((row) => row.id)) } })
}

/** Removes those of the `limit` oldest runs that began before `before`; returns how many. */
export async function deleteOldJobRuns(tx: Tx, before: Date, limit: number): Promise<number> {
  const oldest = await tx.manager.find(jobRuns, { order: { id: 'ASC' }, take: limit })
  const ids = oldest.filter(({ startedAt }) => startedAt < before).map((run) => run.id)
  if (ids.length > 0) await tx.manager.delete(jobRuns, { id: In(ids) })
  return ids.length
}
