import type { Config } from '#config/config.ts'
import type { Context } from '#context.ts'
import { hasDueMails } from '#mails/has-due-mails.ts'
import { hasDueLookups } from '#providers/engine/reconcile-payments.ts'
import { hasRunOut } from '#renewals/expire-due.ts'
import { MINUTE_MS, SECOND_MS } from '#shared/time.ts'
import { hasAbandonedWrites } from '#subscriptions/finish-pending-writes.ts'

/** A job: the thread of `jobs/<name>.ts`. It runs as long as the daemon does; a job that sweeps runs while there is work. */
export interface ScheduledJob {
  readonly name: string
  /** Maximum heap of its thread. */
  readonly memoryMb: number
  /** Maximum size of V8's young generation. The thread keeps this memory even when idle. */
  readonly youngMb: number
  /** Bree ends a thread whose sweep takes longer; null for a job that runs as long as the daemon. */
  readonly longestSweepMs: number | null
  /** For a job that sweeps: when to start a thread. */
  readonly sweep?: SweepSchedule
}

export interface SweepSchedule {
  /** Pause before the next check for work, after a sweep or a check that found none. */
  readonly everyMs: number
  /** Checks with a few cheap reads whether there is work. */
  readonly hasWork: (ctx: Context) => Promise<boolean>
  /** Whether a sweep is due once an hour even without work. */
  readonly isHourly: boolean
}

const BUSY_YOUNG_MB = 16

/** All jobs, and when they run. */
export function schedule({ sweepSeconds }: Pick<Config, 'sweepSeconds'>): readonly ScheduledJob[] {
  const everyMs = sweepSeconds * SECOND_MS
  return [
    // Woken after every commit that wrote an event; polls every second as well.
    { name: 'deliver-webhooks', memoryMb: 256, youngMb: BUSY_YOUNG_MB, longestSweepMs: null },
    {
      name: 'send-reminders',
      memoryMb: 512,
      youngMb: BUSY_YOUNG_MB,
      longestSweepMs: 30 * MINUTE_MS,
      sweep: { everyMs, hasWork: hasDueMails, isHourly: false },
    },
    // Evaluates alerts every BILLING_ALERT_SECONDS.
    { name: 'alerts', memoryMb: 128, youngMb: 4, longestSweepMs: null },
    // Removes old rows every hour.
    {
      name: 'expire',
      memoryMb: 128,
      youngMb: BUSY_YOUNG_MB,
      longestSweepMs: 10 * MINUTE_MS,
      sweep: { everyMs, hasWork: hasRunOut, isHourly: true },
    },
    // Lists the providers' refunds every hour.
    {
      name: 'reconcile',
      memoryMb: 256,
      youngMb: BUSY_YOUNG_MB,
      longestSweepMs: 30 * MINUTE_MS,
      sweep: {
        everyMs,
        hasWork: async (ctx) => (await hasDueLookups(ctx)) || (await hasAbandonedWrites(ctx)),
        isHourly: true,
      },
    },
  ]
}
