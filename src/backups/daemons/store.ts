import { bigint, exact, flag, id, json, realTime, words } from '#db/columns.ts'
import { insertedNew } from '#db/database-error.ts'
import type { Queries } from '#db/queries.ts'
import { shape, table, type Row } from '#db/table.ts'
import { readTables } from '#backups/store.ts'

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

/** How long a daemon that did not record its stop is remembered. */
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

/** Records that the daemon stops, so that no migration waits for it. */
export async function recordDaemonStop(db: Queries, name: string): Promise<void> {
  await db.run('UPDATE daemons SET stopped_at = UTC_TIMESTAMP(3) WHERE name = ?', [name])
}

/** A daemon that ran in the last minute. */
export interface SeenDaemon {
  readonly name: string
  /** Null for a version that does not record itself: only the runs of its jobs are known. */
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

/** The daemons that ran in the last minute and did not stop, as far as the existing tables show them. */
export async function listSeenDaemons(db: Queries): Promise<SeenDaemon[]> {
  const tables = await readTables(db)
  const recorded = tables.has('daemons') ? await listRecorded(db) : []
  const names = new Set(recorded.map(({ name }) => name))
  const working = tables.has('job_runs') ? await listWorking(db) : []
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
