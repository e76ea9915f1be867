import type { RealTime } from '#shared/time.ts'
import { exact, id, json, realTime, words } from '#db/columns.ts'
import type { Queries } from '#db/queries.ts'
import { table, type Row } from '#db/table.ts'

/** The outcome of a job's run. */
export type JobOutcome = 'done' | 'failed' | 'hung' | 'overdue' | 'out_of_memory' | 'ended'

/** A run of a job, or its failure. `doctor` shows the last one of each job. */
export const jobRuns = table('job_runs', {
  id: id(),
  job: exact('job', 64),
  /** Host name and process id: several daemons may share a database. */
  daemon: words('daemon', 191),
  startedAt: realTime('started_at'),
  finishedAt: realTime('finished_at').nullable(),
  outcome: exact('outcome', 16).as<JobOutcome>().nullable(),
  /** Counts of the work done, or the reason for the failure. */
  summary: json<object>('summary').nullable(),
})
export type JobRun = Row<typeof jobRuns>

/** The last sign of life in the record of a run. */
export function lastSignOf({ startedAt, finishedAt }: JobRun): RealTime {
  return finishedAt ?? startedAt
}

export async function insertJobRun(db: Queries, row: Omit<JobRun, 'id'>): Promise<void> {
  await db.insert(jobRuns, row)
}

/** The last run of each job, in any daemon. */
export async function listLastJobRuns(db: Queries): Promise<JobRun[]> {
  return db.all(jobRuns, 'WHERE id IN (SELECT MAX(id) FROM job_runs GROUP BY job)')
}

/** Removes runs that began before `before`, among the `limit` oldest; returns how many. */
export async function deleteOldJobRuns(db: Queries, before: RealTime, limit: number): Promise<number> {
  const oldest = await db.all(jobRuns, 'ORDER BY id LIMIT ?', [limit])
  const ids = oldest.filter(({ startedAt }) => startedAt < before).map((run) => run.id)
  if (ids.length > 0) await db.run('DELETE FROM job_runs WHERE id IN (?)', [ids])
  return ids.length
}
