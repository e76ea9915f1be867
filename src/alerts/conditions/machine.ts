import type { AlertCondition } from '#alerts/kinds.ts'
import { newestVerified } from '#backups/backup-folder.ts'
import type { Context } from '#context.ts'
import { lastSignOf, listLastJobRuns } from '#upkeep/job-runs/store.ts'
import { MAX_BACKUP_AGE_MS } from '#doctor/check-backups.ts'
import { MAX_SKEW_MS, clockSkewSeconds } from '#doctor/check-database.ts'
import { MIN_FREE, MIN_SHARE, listFileSystems, type FileSystem } from '#doctor/check-disk.ts'
import { JOBS, silentAfterMs } from '#doctor/check-work.ts'
import { SECOND_MS, addMs, formatUtc, type RealTime } from '#shared/time.ts'
import { isOpen, type Evaluation } from './evaluation.ts'

/** An open alert closes only at this multiple of the limits, so that it does not open and close with each file. */
const SPACE_AGAIN = 1.1
const SKEW_AGAIN = 0.5

/** Jobs without a recorded run for so long that their threads must be dead or hung. */
export async function jobSilent(ctx: Context, { now, memory }: Evaluation): Promise<AlertCondition[]> {
  const runs = new Map((await listLastJobRuns(ctx.db)).map((run) => [run.job, lastSignOf(run)]))
  const limit = addMs(now, -silentAfterMs(ctx))
  return JOBS.flatMap((job) => {
    const last = runs.get(job) ?? null
    const heard = last && last > memory.watchingSince ? last : memory.watchingSince
    if (heard > limit) return []
    const text = `the job ${job} has not run since ${formatUtc(last ?? heard)}: look for "${job}" in the daemon's log (journalctl -u billing-daemon)`
    return [{ kind: 'job_silent', subject: job, text, since: last ?? heard }]
  })
}

/** File systems of database, logs or home that are nearly full. */
export async function diskLow(ctx: Context, evaluation: Evaluation): Promise<AlertCondition[]> {
  return nearlyFull(await listFileSystems(ctx), evaluation)
}

/** The file systems that are nearly full. */
export function nearlyFull(systems: readonly FileSystem[], evaluation: Evaluation): AlertCondition[] {
  return systems
    .filter(({ folder, space: { free, size } }) => {
      const factor = isOpen(evaluation, 'disk_low', folder) ? SPACE_AGAIN : 1
      return free < MIN_FREE * factor || free < size * MIN_SHARE * factor
    })
    .map(({ folder, space: { free } }) => ({
      kind: 'disk_low',
      subject: folder,
      text: `${(free / 1e9).toFixed(1)} GB free on the disk of ${folder}: free space or enlarge the disk; a database without space takes no payments`,
      since: evaluation.now,
    }))
}

/** A wrong clock of this machine or of the database. */
export async function clockSkew(ctx: Context, evaluation: Evaluation): Promise<AlertCondition[]> {
  return skewed(await clockSkewSeconds(ctx), evaluation)
}

/** `seconds`: how far the database is ahead. */
export function skewed(seconds: number, evaluation: Evaluation): AlertCondition[] {
  const factor = isOpen(evaluation, 'clock_skew', 'database') ? SKEW_AGAIN : 1
  if (Math.abs(seconds) * SECOND_MS <= MAX_SKEW_MS * factor) return []
  const text = `the clocks of this machine and the database differ by ${Math.abs(seconds).toFixed(1)} s: set both by NTP (timedatectl set-ntp true)`
  return [{ kind: 'clock_skew', subject: 'database', text, since: evaluation.now }]
}

/** In production, no verified backup that is younger than a day and two hours. */
export async function backupOld({ config }: Context, { now }: Pick<Evaluation, 'now'>): Promise<AlertCondition[]> {
  if (config.env !== 'production') return []
  return oldBackup(await newestVerified(config.backup.folder, now), now)
}

/** `takenAt`: when the newest verified backup was taken; null if there is none. */
export function oldBackup(takenAt: RealTime | null, now: RealTime): AlertCondition[] {
  if (takenAt && takenAt > addMs(now, -MAX_BACKUP_AGE_MS)) return []
  const what = takenAt ? `the last verified backup is from ${formatUtc(takenAt)}` : 'there is no verified backup'
  const text = `${what}: billing-cli backup create, then backup verify`
  return [{ kind: 'backup_old', subject: 'backup', text, since: takenAt ? addMs(takenAt, MAX_BACKUP_AGE_MS) : now }]
}
