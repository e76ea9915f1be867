import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let root: string | null = null

/** A folder of a test's own; all of them go when the run ends. */
export function scratchFolder(name: string): string {
  root ??= makeRoot()
  return mkdtempSync(join(root, `${name}-`))
}

function makeRoot(): string {
  const folder = mkdtempSync(join(tmpdir(), 'paygate-tests-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
