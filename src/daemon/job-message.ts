import type { MetricName } from '#context.ts'
import type { PoolUse } from '#http/entry-queue.ts'

/** What the scheduler passes to a job's thread at its start. */
export interface JobSettings {
  readonly job: string
  /** Host name and process id of the daemon, for the record of runs. */
  readonly daemon: string
  readonly heartbeatMs: number
  /** Whether its sweep also does the hourly work. */
  readonly isHourly: boolean
}

export interface Counted {
  readonly metric: MetricName
  readonly labels: Readonly<Record<string, string>>
  readonly by: number
}

/** The thread is alive. */
export interface Heartbeat {
  readonly type: 'heartbeat'
  /** Null until it has connections. */
  readonly pool: PoolUse | null
}

/** From a job's thread to the daemon. Bree defines `done` and `cancelled`. */
export type JobMessage =
  | 'done'
  | 'cancelled'
  | Heartbeat
  | { readonly type: 'counted'; readonly counts: readonly Counted[] }
  /** The webhook sender has something to send. */
  | { readonly type: 'wake' }

/** From the daemon to a job's thread. Bree defines `cancel`. */
export type JobCommand = 'cancel' | { readonly type: 'wake' }
