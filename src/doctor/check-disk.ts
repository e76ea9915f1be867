import { stat, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Context } from '#context.ts'
import { addressesOf } from '#shared/database-url.ts'
import { isLoopbackHost } from '#shared/loopback.ts'
import { passed, warning, type CheckResult } from '#shared/check-result.ts'
import { readDataFolders } from './store.ts'

/** Free and whole size of a file system, in bytes. */
export interface Room {
  readonly free: number
  readonly size: number
}

const GIGABYTE = 1e9
export const MIN_FREE = 2 * GIGABYTE
export const MIN_SHARE = 0.1
/** Where systemd and syslog keep what the daemon logs. */
const LOGS = '/var/log'

/** A file system, by the first folder that was found on it. */
export interface FoundRoom {
  readonly folder: string
  readonly room: Room
}

/** Whether the file systems of database, logs and home have room, as far as this machine sees them. */
export async function checkDisk(ctx: Context): Promise<CheckResult[]> {
  return (await listRooms(ctx)).map(({ folder, room }) => diskResult(folder, room))
}

/** The file systems of database, logs and home, as far as this machine sees them. */
export async function listRooms(ctx: Context): Promise<FoundRoom[]> {
  const folders = [ctx.config.home, LOGS, ...(isDatabaseHere(ctx) ? await readDataFolders(ctx.db) : [])]
  const rooms = new Map<number, FoundRoom>()
  for (const folder of folders) {
    const seen = await roomOf(resolve(folder))
    if (seen && !rooms.has(seen.device)) rooms.set(seen.device, { folder, room: seen.room })
  }
  return [...rooms.values()]
}

/** A warning for less than a tenth or less than 2 GB. */
export function diskResult(folder: string, { free, size }: Room): CheckResult {
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

/** Of the file system of a folder or, where it is hidden from this user, of the nearest one above that is not; null if there is none. */
async function roomOf(folder: string): Promise<{ readonly device: number; readonly room: Room } | null> {
  try {
    const [{ dev: device }, { bavail, blocks, bsize }] = await Promise.all([stat(folder), statfs(folder)])
    return blocks === 0 ? null : { device, room: { free: bavail * bsize, size: blocks * bsize } }
  } catch {
    return folder === dirname(folder) ? null : roomOf(dirname(folder))
  }
}
