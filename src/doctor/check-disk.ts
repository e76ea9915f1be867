import { stat, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Context } from '#context.ts'
import { addressesOf } from '#shared/database-url.ts'
import { isLoopbackHost } from '#shared/loopback.ts'
import { passed, warning, type CheckResult } from '#shared/check-result.ts'
import { readDataFolders } from './store.ts'

/** In bytes. */
export interface DiskSpace {
  readonly free: number
  readonly size: number
}

const GIGABYTE = 1e9
export const MIN_FREE = 2 * GIGABYTE
export const MIN_SHARE = 0.1
/** Where systemd and syslog keep what the daemon logs. */
const LOGS = '/var/log'

/** A file system, named by the first folder that was found on it. */
export interface FileSystem {
  readonly folder: string
  readonly space: DiskSpace
}

/** Whether the file systems of database, logs and home have free space, as far as this machine sees them. */
export async function checkDisk(ctx: Context): Promise<CheckResult[]> {
  return (await listFileSystems(ctx)).map(({ folder, space }) => diskResult(folder, space))
}

/** The file systems of database, logs and home, as far as this machine sees them. */
export async function listFileSystems(ctx: Context): Promise<FileSystem[]> {
  const folders = [ctx.config.home, LOGS, ...(isDatabaseHere(ctx) ? await readDataFolders(ctx.db) : [])]
  const found = new Map<number, FileSystem>()
  for (const folder of folders) {
    const seen = await spaceOf(resolve(folder))
    if (seen && !found.has(seen.device)) found.set(seen.device, { folder, space: seen.space })
  }
  return [...found.values()]
}

/** A warning for less than a tenth or less than 2 GB. */
export function diskResult(folder: string, { free, size }: DiskSpace): CheckResult {
  const detail = `${(free / GIGABYTE).toFixed(1)} GB free, ${Math.floor((free / size) * 100)} %, where ${folder} lies`
  if (free >= MIN_FREE && free >= size * MIN_SHARE) return passed('disk', detail)
  return warning('disk', detail, 'make room or enlarge the disk: a database without room takes no payment')
}

function isDatabaseHere({ config: { databaseUrl } }: Context): boolean {
  if (databaseUrl === null) return true
  return addressesOf(databaseUrl).some((address) => {
    const url = URL.parse(address)
    return url !== null && (isLoopbackHost(url.hostname) || url.searchParams.has('socketPath'))
  })
}

/** The space where a folder is. If this user cannot see the folder, that of its nearest visible parent; null if there is none. */
async function spaceOf(folder: string): Promise<{ readonly device: number; readonly space: DiskSpace } | null> {
  try {
    const [{ dev: device }, { bavail, blocks, bsize }] = await Promise.all([stat(folder), statfs(folder)])
    return blocks === 0 ? null : { device, space: { free: bavail * bsize, size: blocks * bsize } }
  } catch {
    return folder === dirname(folder) ? null : spaceOf(dirname(folder))
  }
}
