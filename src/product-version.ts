import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The version of this installation, such as `0.1.0`. */
export function productVersion(): string {
  const path = join(import.meta.dirname, '..', 'package.json')
  return (JSON.parse(readFileSync(path, 'utf8')) as { version: string }).version
}
