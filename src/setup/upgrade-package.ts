import { setTimeout as delay } from 'node:timers/promises'
import { migrateSafely, safelyPending } from '#backups/migrate-safely.ts'
import type { Context } from '#context.ts'
import { productVersion } from '#product-version.ts'
import { counted } from '#shared/counted.ts'
import { AppError, messageOf } from '#shared/errors.ts'
import {
  copyInstalled,
  copyOf,
  hasSameFiles,
  previousCopy,
  rememberPrevious,
  removeOthers,
  serveCopy,
  servedCopy,
  type ProgramFolders,
} from './program-copies.ts'

export interface Upgraded {
  readonly status: 'upgraded' | 'unchanged'
  /** The version that served before; null if none did. */
  readonly from: string | null
  readonly to: string
  /** The migrations that were applied. */
  readonly applied: readonly string[]
  /** From the restart until the version was ready. */
  readonly seconds: number
}

/** What runs the daemon. */
export interface Service {
  /** The folder of the running program, as this process sees it; null if none runs. */
  programFolder(): Promise<string | null>
  /** Throws if the installed program would not start; the version that serves continues. */
  check(): Promise<unknown>
  /** Ends once the daemon has started; throws if it does not. */
  restart(): Promise<void>
  /** Whether it is ready to take calls (`/readyz`). */
  isReady(): Promise<boolean>
}

export interface UpgradeOptions {
  readonly folders: ProgramFolders
  readonly isWithoutBackup: boolean
  readonly onStep: (text: string) => void
  /** How long a daemon that has started may take until it is ready. */
  readonly readyMs?: number
}

const READY_MS = 10_000
const POLL_MS = 100

/**
 * Migrates while the current version serves, then restarts the service with the installed one. If that one does not become ready, the
 * previous version serves again, because it works with the expanded schema, and this throws `service_unavailable` (R481). Throws what
 * `migrateSafely` throws, before anything is restarted.
 */
export async function upgradePackage(
  source: Pick<Context, 'db' | 'config' | 'clock'>,
  service: Service,
  options: UpgradeOptions,
): Promise<Upgraded> {
  const { folders, isWithoutBackup, onStep } = options
  const before = await copyThatServes(folders, service)
  const applied = await migrateSafely(source, { isContracting: false, isWithoutBackup })
  const versions = { ...versionsOf(folders, before), applied }
  if (before !== null && (await isServed(folders, before, service))) {
    // Ends an upgrade that was interrupted.
    serveCopy(folders, before)
    removeOthers(folders)
    return { status: 'unchanged', ...versions, seconds: 0 }
  }
  await service.check().catch((error: unknown) => {
    throw new AppError(
      'service_unavailable',
      `version ${versions.to} cannot start (${messageOf(error)}): nothing was restarted`,
    )
  })
  const served = servedCopy(folders)
  const next = served !== null && hasSameFiles(served, folders.installed) ? served : await copyInstalled(folders)
  if (before !== null) rememberPrevious(folders, before)
  const startedMs = performance.now()
  onStep(`starting version ${versions.to}`)
  try {
    await start(next, service, options)
  } catch (error) {
    onStep('going back to the previous version')
    return await goBack(before, error, service, options)
  }
  removeOthers(folders)
  return { status: 'upgraded', ...versions, seconds: Math.round((performance.now() - startedMs) / 100) / 10 }
}

/** What `upgradePackage` would do now, in sentences. Changes nothing, and throws what `migrateSafely` would throw. */
export async function previewUpgrade(
  source: Pick<Context, 'db' | 'config' | 'clock'>,
  service: Service,
  { folders, isWithoutBackup }: Pick<UpgradeOptions, 'folders' | 'isWithoutBackup'>,
): Promise<{ readonly answer: Pick<Upgraded, 'from' | 'to'>; readonly effects: readonly string[] }> {
  const before = await copyThatServes(folders, service)
  const answer = versionsOf(folders, before)
  const { from, to } = answer
  const pending = await safelyPending(source, { isContracting: false, isWithoutBackup })
  const migrations =
    pending.length === 0
      ? 'no migration is pending'
      : `applies ${counted(pending.length, 'migration')}: ${pending.join(', ')}`
  const restart = (await isServed(folders, before, service))
    ? `version ${to} serves already: it is not restarted`
    : `starts version ${to}${from === null || from === to ? '' : ` instead of ${from}`}`
  return { answer, effects: [migrations, restart] }
}

function versionsOf({ installed }: ProgramFolders, before: string | null): Pick<Upgraded, 'from' | 'to'> {
  return { from: before && productVersion(before), to: productVersion(installed) }
}

/** Whether the version that serves is the installed one, and is ready. */
async function isServed({ installed }: ProgramFolders, before: string | null, service: Service): Promise<boolean> {
  return before !== null && hasSameFiles(before, installed) && service.isReady()
}

/**
 * The copy that the daemon runs; if that is not ready, the one that served before an interrupted upgrade; if no daemon runs, the copy that
 * it would start with.
 */
async function copyThatServes(folders: ProgramFolders, service: Service): Promise<string | null> {
  const running = await service.programFolder()
  const copy = running === null ? servedCopy(folders) : copyOf(folders, running)
  return (await service.isReady()) ? copy : (previousCopy(folders) ?? copy)
}

async function start(copy: string, service: Service, { folders, readyMs = READY_MS }: UpgradeOptions): Promise<void> {
  serveCopy(folders, copy)
  await service.restart()
  const deadline = performance.now() + readyMs
  while (!(await service.isReady())) {
    if (performance.now() > deadline) throw new Error(`it is not ready after ${readyMs / 1000} s`)
    await delay(POLL_MS)
  }
}

async function goBack(
  before: string | null,
  error: unknown,
  service: Service,
  options: UpgradeOptions,
): Promise<never> {
  const { folders } = options
  const failed = `version ${productVersion(folders.installed)} does not serve (${messageOf(error)}); journalctl -u billing-daemon says why`
  if (before === null || hasSameFiles(before, folders.installed))
    throw new AppError('service_unavailable', `${failed}. There is no previous version to go back to`)
  const old = productVersion(before)
  await start(before, service, options).catch((second: unknown) => {
    throw new AppError('service_unavailable', `${failed}. Version ${old} does not serve either: ${messageOf(second)}`)
  })
  removeOthers(folders)
  throw new AppError('service_unavailable', `${failed}. Version ${old} serves again; nothing was lost`)
}
