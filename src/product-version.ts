import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The version of the program in a folder, such as `0.1.0`; by default of this installation. */
export function productVersion(root = join(import.meta.dirname, '..')): string {
  return (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version
}
