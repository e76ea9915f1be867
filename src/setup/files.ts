import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { AppError } from '#shared/errors.ts'
import { CREDENTIALS_FOLDER } from './systemd-unit.ts'

/** A file of the installation, without the prefix. */
export interface InstalledFile {
  readonly path: string
  readonly content: string
  readonly mode: number
}

/** Writes the file as a whole or not at all. Only root can enter the folder of a secret. */
export function writeInstalled(prefix: string, { path, content, mode }: InstalledFile): void {
  const target = join(prefix, path)
  const isSecret = dirname(path) === CREDENTIALS_FOLDER
  try {
    mkdirSync(dirname(target), { recursive: true, mode: isSecret ? 0o700 : 0o755 })
    writeFileSync(`${target}.new`, content, { mode })
    // The umask restricts the mode of a new file.
    chmodSync(`${target}.new`, mode)
    renameSync(`${target}.new`, target)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EPERM')
      throw new AppError('invalid_request', `${target} cannot be written: run this as root`, { cause: error })
    throw error
  }
}

/** The text of an installed file; null if there is none. */
export function readInstalled(prefix: string, path: string): string | null {
  const target = join(prefix, path)
  return existsSync(target) ? readFileSync(target, 'utf8') : null
}

/** Whether the file exists with this content and mode. */
export function isInstalled(prefix: string, { path, content, mode }: InstalledFile): boolean {
  return readInstalled(prefix, path) === content && (statSync(join(prefix, path)).mode & 0o777) === mode
}
