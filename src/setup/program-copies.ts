import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { productVersion } from '#product-version.ts'
import { AppError } from '#shared/errors.ts'
import { runProgram } from './run-program.ts'
import { PACKAGE_ROOT, SERVED_ROOT, VERSIONS_FOLDER } from './systemd-unit.ts'

/** Where the package's program is. */
export interface ProgramFolders {
  /** As dpkg installed it last. */
  readonly installed: string
  /** Copies of it, and the link to the one that serves. */
  readonly versions: string
}

export const PACKAGE_FOLDERS: ProgramFolders = { installed: PACKAGE_ROOT, versions: VERSIONS_FOLDER }
const SERVED = basename(SERVED_ROOT)
const PREVIOUS = 'previous'

/**
 * Copies the installed program by hard links: dpkg replaces files with new ones, so the copy stays as it is, and takes no space until then.
 */
export async function copyInstalled({ installed, versions }: ProgramFolders): Promise<string> {
  mkdirSync(versions, { recursive: true, mode: 0o755 })
  const copy = mkdtempSync(join(versions, `${productVersion(installed)}-`))
  await runProgram('cp', ['--archive', '--link', `${installed}/.`, copy])
  chmodSync(copy, 0o755)
  return copy
}

/** Makes the service run this copy from its next start on. A power cut leaves either the old link or the new one. */
export function serveCopy(folders: ProgramFolders, copy: string): void {
  writeLink(folders, SERVED, copy)
}

/** The copy that the service runs at its next start; null before the first. */
export function servedCopy(folders: ProgramFolders): string | null {
  return readLink(folders, SERVED)
}

/** Remembers the copy to go back to until `removeOthers`, also if the upgrade is interrupted. */
export function rememberPrevious(folders: ProgramFolders, copy: string): void {
  writeLink(folders, PREVIOUS, copy)
}

/** The copy that served before an upgrade that was interrupted; null if none was. */
export function previousCopy(folders: ProgramFolders): string | null {
  return readLink(folders, PREVIOUS)
}

function writeLink({ versions }: ProgramFolders, name: string, copy: string): void {
  const link = join(versions, `${name}.new`)
  rmSync(link, { force: true })
  symlinkSync(basename(realpathSync(copy)), link)
  renameSync(link, join(versions, name))
}

function readLink({ versions }: ProgramFolders, name: string): string | null {
  const link = join(versions, name)
  return existsSync(link) ? realpathSync(link) : null
}

/** The copy that shares its files with `root`; null if there is none. */
export function copyOf({ versions }: ProgramFolders, root: string): string | null {
  const folders = readdirSync(versions, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  return folders.map(({ name }) => join(versions, name)).find((copy) => hasSameFiles(copy, root)) ?? null
}

/** Whether two folders share their files, by one that every build has. */
export function hasSameFiles(one: string, other: string): boolean {
  const [first, second] = [one, other].map((root) => statSync(join(root, 'package.json'), { throwIfNoEntry: false }))
  return first !== undefined && second !== undefined && first.dev === second.dev && first.ino === second.ino
}

/** Throws `invalid_request` in a copy beside which another version is installed: that one has the migrations. */
export function refuseToMigrateIn(root: string, { installed, versions } = PACKAGE_FOLDERS): void {
  if (dirname(root) !== versions || hasSameFiles(root, installed)) return
  throw new AppError(
    'invalid_request',
    `version ${productVersion(installed)} is installed, and this is ${productVersion(root)}: run billing-cli migrate as root on the machine itself`,
  )
}

/** Removes the copies that do not serve. */
export function removeOthers(folders: ProgramFolders): void {
  const served = servedCopy(folders)
  rmSync(join(folders.versions, PREVIOUS), { force: true })
  for (const entry of readdirSync(folders.versions, { withFileTypes: true })) {
    const path = join(folders.versions, entry.name)
    if (entry.isDirectory() && path !== served) rmSync(path, { recursive: true, force: true })
  }
}
