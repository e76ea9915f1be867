import { open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { addMs, asRealTime, DAY_MS, MINUTE_MS, type RealTime } from '#shared/time.ts'
import { HEADER_BYTES, labelIn, type Label } from './label.ts'
import { DRAFT } from './sinks.ts'

/** A backup in the folder. */
export interface StoredBackup extends Label {
  /** The path. */
  readonly file: string
  readonly bytes: number
  readonly verifiedAt: RealTime | null
}

/** The record beside a verified backup. */
interface Verification {
  readonly taken_at: string
  readonly bytes: number
  readonly verified_at: string
}

/** By how much the clock of the machine that made a backup may be ahead. */
const MAX_AHEAD_MS = 5 * MINUTE_MS

/** `paygate-20261123-084500-123.sql.gz.age` */
export function backupName({ takenAt }: Label): string {
  const digits = takenAt.toISOString().replace(/\D/g, '')
  return `paygate-${digits.slice(0, 8)}-${digits.slice(8, 14)}-${digits.slice(14)}.sql.gz.age`
}

/** The backups in a folder, newest first. Skips files that are not backups of ours. */
export async function listBackups(folder: string): Promise<StoredBackup[]> {
  const names = await namesIn(folder)
  // What cannot be read may be anybody's.
  const found = await Promise.all(names.map((name) => readBackup(join(folder, name)).catch(() => null)))
  return found.filter((backup) => backup !== null).sort((a, b) => b.takenAt.getTime() - a.takenAt.getTime())
}

/** The newest backup in a folder; null if there is none. */
export async function newestBackup(folder: string, now: RealTime): Promise<StoredBackup | null> {
  const backups = await listBackups(folder)
  return backups.find(({ takenAt }) => !isOfFuture(takenAt, now)) ?? null
}

/** Whether a wrong clock dated it: it would count as the newest one until that day. */
function isOfFuture(takenAt: Date, now: RealTime): boolean {
  return takenAt > addMs(now, MAX_AHEAD_MS)
}

/** A backup by its path; null for any other file. Throws if the file cannot be read. */
export async function readBackup(path: string): Promise<StoredBackup | null> {
  if (basename(path).startsWith(DRAFT)) return null
  const label = labelIn(await firstBytes(path))
  if (!label) return null
  const { size: bytes } = await stat(path)
  const verified = await verificationOf(path)
  const isOfThis = verified?.bytes === bytes && verified.taken_at === label.takenAt.toISOString()
  return { file: path, bytes, ...label, verifiedAt: isOfThis ? asRealTime(new Date(verified.verified_at)) : null }
}

/**
 * When the newest verified backup was taken; null if there is none. Reads only the records beside the backups, because the daemon's user
 * may read those, too.
 */
export async function newestVerified(folder: string, now: RealTime): Promise<RealTime | null> {
  const names = await namesIn(folder)
  const records = await Promise.all(
    names.map(async (name) => ({ name, record: await verificationOf(join(folder, name)) })),
  )
  const taken = await Promise.all(
    records.map(async ({ name, record }) => {
      // Another program may have removed the backup meanwhile.
      const isOfThis = record !== null && (await stat(join(folder, name)).catch(() => null))?.size === record.bytes
      return isOfThis && !isOfFuture(new Date(record.taken_at), now) ? new Date(record.taken_at).getTime() : -Infinity
    }),
  )
  const newest = Math.max(-Infinity, ...taken)
  return newest === -Infinity ? null : asRealTime(new Date(newest))
}

/** Records beside the backup that it was verified. */
export async function recordVerified({ file, bytes, takenAt }: StoredBackup, at: RealTime): Promise<void> {
  const record: Verification = { taken_at: takenAt.toISOString(), bytes, verified_at: at.toISOString() }
  await writeFile(recordOf(file), `${JSON.stringify(record)}\n`, { mode: 0o644 })
}

/** Removes the record that the backup was verified, if there is one. */
export async function removeVerification({ file }: Pick<StoredBackup, 'file'>): Promise<void> {
  await rm(recordOf(file), { force: true })
}

/**
 * Removes the backups that are older than `keepMs`, except the newest and the newest verified one; returns their paths. Another machine
 * may tidy the same folder at the same time.
 */
export async function removeOld(folder: string, now: RealTime, keepMs: number): Promise<string[]> {
  const backups = (await listBackups(folder)).filter(({ takenAt }) => !isOfFuture(takenAt, now))
  const kept = [backups[0], backups.find(({ verifiedAt }) => verifiedAt !== null)]
  const before = addMs(now, -keepMs)
  const old = backups.filter((backup) => backup.takenAt < before && !kept.includes(backup))
  for (const backup of old) {
    await rm(backup.file, { force: true })
    await removeVerification(backup)
  }
  return old.map(({ file }) => file)
}

/** Removes unfinished files that killed programs left more than a day ago. */
export async function removeDrafts(folder: string, now: RealTime): Promise<void> {
  for (const name of (await namesIn(folder)).filter((each) => each.startsWith(DRAFT))) {
    const path = join(folder, name)
    // One that is being written gets its own name as soon as it is complete.
    const isOld = await stat(path).then(
      ({ mtimeMs }) => mtimeMs < now.getTime() - DAY_MS,
      () => false,
    )
    if (isOld) await rm(path, { force: true })
  }
}

function recordOf(file: string): string {
  return `${file}.verified.json`
}

async function verificationOf(file: string): Promise<Verification | null> {
  try {
    return JSON.parse(await readFile(recordOf(file), 'utf8')) as Verification
  } catch {
    return null
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

async function firstBytes(path: string): Promise<Buffer> {
  const handle = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}
