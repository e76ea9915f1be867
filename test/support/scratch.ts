import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let root: string | null = null

/** A new folder for a test. All of them are deleted when the run ends. */
export function scratchFolder(name: string): string {
  root ??= makeRoot()
  return mkdtempSync(join(root, `${name}-`))
}

function makeRoot(): string {
  const folder = mkdtempSync(join(tmpdir(), 'paygate-tests-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
