import type { RealTime } from '#shared/time.ts'
import { bigint, exact, flag, id, json, realTime, words } from './columns.ts'
import type { Queries } from './queries.ts'
import { insertedNew } from './database-error.ts'
import { shape, table, type Row } from './table.ts'

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

/** A daemon, as it was last seen by the database's clock. */
export const daemons = table('daemons', {
  id: id(),
  /** Host name and process id. */
  name: words('name', 191),
  version: exact('version', 32),
  /** The names of the migrations that it knows. */
  migrations: json<readonly string[]>('migrations'),
  seenAt: realTime('seen_at'),
  stoppedAt: realTime('stopped_at').nullable(),
})

/** How long a daemon is remembered that did not say that it stops. */
const FORGOTTEN_AFTER = 'INTERVAL 1 DAY'

/** Records that the daemon runs. */
export async function recordDaemon(
  db: Queries,
  daemon: Pick<Row<typeof daemons>, 'name' | 'version' | 'migrations'>,
): Promise<void> {
  const { name, version, migrations } = daemon
  const values = [version, JSON.stringify(migrations)]
  const found = await db.run(
    'UPDATE daemons SET version = ?, migrations = ?, seen_at = UTC_TIMESTAMP(3), stopped_at = NULL WHERE name = ?',
    [...values, name],
  )
  if (found > 0) return
  await db.run(`DELETE FROM daemons WHERE seen_at < UTC_TIMESTAMP(3) - ${FORGOTTEN_AFTER}`)
  await insertedNew(
    'daemons_name',
    db.run('INSERT INTO daemons (version, migrations, name, seen_at) VALUES (?, ?, ?, UTC_TIMESTAMP(3))', [
      ...values,
      name,
    ]),
  )
}

/** Records that the daemon stops: nobody has to wait for it. */
export async function recordDaemonStop(db: Queries, name: string): Promise<void> {
  await db.run('UPDATE daemons SET stopped_at = UTC_TIMESTAMP(3) WHERE name = ?', [name])
}

/** A daemon that ran in the last minute. */
export interface SeenDaemon {
  readonly name: string
  /** Null for one of a version that does not record itself: only what its jobs did is known. */
  readonly migrations: readonly string[] | null
  readonly secondsAgo: number
}

const AGE = (instant: string): string => `TIMESTAMPDIFF(SECOND, ${instant}, UTC_TIMESTAMP(3))`
const MINUTE = 60
/** A job without work is recorded once a minute, and a little later. */
const JOB_RECORD = 70
const JOB_SEEN = 'GREATEST(started_at, COALESCE(finished_at, started_at))'
/** More runs than several daemons record in a minute. */
const LAST_RUNS = 2000

/** The daemons that ran in the last minute and did not stop, by the tables that are there. */
export async function listSeenDaemons(db: Queries): Promise<SeenDaemon[]> {
  const recorded = (await hasTable(db, 'daemons')) ? await listRecorded(db) : []
  const names = new Set(recorded.map(({ name }) => name))
  const working = (await hasTable(db, 'job_runs')) ? await listWorking(db) : []
  return [
    ...recorded.filter(({ isStopped, secondsAgo }) => !isStopped && secondsAgo <= MINUTE),
    ...working.filter(({ name }) => !names.has(name)).map((each) => ({ ...each, migrations: null })),
  ]
}

async function listRecorded(db: Queries): Promise<(SeenDaemon & { readonly isStopped: boolean })[]> {
  return db.all(
    shape({
      name: words('name', 191),
      migrations: json<readonly string[]>('migrations'),
      secondsAgo: bigint(),
      isStopped: flag(),
    }),
    `SELECT name, migrations, ${AGE('seen_at')} AS secondsAgo, stopped_at IS NOT NULL AS isStopped FROM daemons ORDER BY id`,
  )
}

async function listWorking(db: Queries): Promise<Omit<SeenDaemon, 'migrations'>[]> {
  return db.all(
    shape({ name: words('name', 191), secondsAgo: bigint() }),
    `SELECT daemon AS name, MIN(${AGE(JOB_SEEN)}) AS secondsAgo FROM job_runs
     WHERE id > (SELECT MAX(id) FROM job_runs) - ${LAST_RUNS} GROUP BY daemon HAVING secondsAgo <= ${JOB_RECORD}`,
  )
}

async function hasTable(db: Queries, name: string): Promise<boolean> {
  const found = await db.one(
    shape({ name: exact('name', 64) }),
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = ?',
    [name],
  )
  return found !== null
}
