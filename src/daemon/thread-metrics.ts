import type { Context } from '#context.ts'
import { JOBS } from '#doctor/check-work.ts'
import { expectedWaitMs, poolUse, type PoolUse } from '#http/entry-queue.ts'
import { SECOND_MS, secondsSince } from '#shared/time.ts'
import type { Metrics, Sample } from './metrics.ts'
import type { Scheduler } from './scheduler.ts'

/** Adds gauges about the threads of this daemon and their connections to `/metrics`. They do not read the database. */
export function addThreadMetrics(
  ctx: Context,
  metrics: Metrics,
  { heartbeats, pools }: Pick<Scheduler, 'heartbeats' | 'pools'>,
): void {
  // A job that never sent a heartbeat counts as unresponsive since the daemon started.
  const startedAt = ctx.clock.now()
  metrics.gauge(
    'job_heartbeat_seconds',
    { help: "Seconds since the last heartbeat of a job's thread in this daemon", labelNames: ['job'] },
    () =>
      JOBS.map((job) => ({ value: secondsSince(heartbeats.get(job) ?? startedAt, ctx.clock.now()), labels: { job } })),
  )
  metrics.gauge(
    'expected_wait_seconds',
    { help: 'How long a call of the API would wait for the database; from 0.3 on reads are answered 429' },
    () => [{ value: expectedWaitMs(ctx.db.pool) / SECOND_MS }],
  )
  metrics.gauge(
    'database_connections',
    { help: 'Connections of each thread, by state; waiting: callers without one', labelNames: ['thread', 'state'] },
    () => [['daemon', poolUse(ctx.db.pool)] as const, ...pools].flatMap(([thread, pool]) => samplesOf(thread, pool)),
  )
}

function samplesOf(thread: string, pool: PoolUse): Sample[] {
  return Object.entries(pool).map(([state, value]) => ({ value, labels: { thread, state } }))
}
