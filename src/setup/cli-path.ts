import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { CLI_FILE, isOfPackage, PACKAGE_CLI_FILE } from './systemd-unit.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** The `billing-cli` of an installed service, which knows its settings; otherwise the one of this folder. */
export function cliPath(): string {
  if (isOfPackage(ROOT)) return PACKAGE_CLI_FILE
  return existsSync(CLI_FILE) ? CLI_FILE : join(ROOT, 'bin', 'billing-cli')
}
