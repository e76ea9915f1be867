import type { MetricName } from '#context.ts'
import type { PoolUse } from '#db/session.ts'

/** What the scheduler tells a job's thread when it starts it. */
export interface JobSettings {
  readonly job: string
  /** Host name and process id of the daemon, for the record of runs. */
  readonly daemon: string
  readonly heartbeatMs: number
  /** Whether its sweep also does what is to be done once an hour. */
  readonly isHourly: boolean
}

export interface Counted {
  readonly metric: MetricName
  readonly labels: Readonly<Record<string, string>>
  readonly by: number
}

/** The thread lives. */
export interface Heartbeat {
  readonly type: 'heartbeat'
  /** How long its present sweep has been running; null between sweeps. */
  readonly sweepMs: number | null
  /** Null until it has connections. */
  readonly pool: PoolUse | null
}

/** From a job's thread to the daemon. `done` and `cancelled` are Bree's words. */
export type JobMessage =
  | 'done'
  | 'cancelled'
  | Heartbeat
  | { readonly type: 'counted'; readonly counts: readonly Counted[] }
  /** There is something for the webhook sender. */
  | { readonly type: 'wake' }

/** From the daemon to a job's thread. `cancel` is Bree's word. */
export type JobOrder = 'cancel' | { readonly type: 'wake' }
