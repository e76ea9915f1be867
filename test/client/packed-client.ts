import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { scratchFolder } from '../support/scratch.ts'

const ROOT = join(import.meta.dirname, '../..')
const CACHE = join(ROOT, 'node_modules/.cache/paygate-client')
const run = promisify(execFile)

/** Packs the client in the current folder as `$1`, unless it is there. */
const PACK = 'test -f "$1" || { npm pack --silent ./client && mv ./*.tgz "$1.draft" && mv "$1.draft" "$1"; }'

/** A project in a folder of its own, where the packed client is installed as npm would. */
export async function packedClient(): Promise<string> {
  const archive = await pack()
  const project = scratchFolder('client')
  const installed = join(project, 'node_modules/paygate-client')
  mkdirSync(installed, { recursive: true })
  await run('tar', ['-xzf', archive, '-C', installed, '--strip-components=1'])
  writeFileSync(join(project, 'package.json'), '{"type":"module"}')
  return project
}

/**
 * Builds and packs a copy of the client, and returns the archive. It is kept for what it was built of: several processes of a run need it
 * at the same time, and the first one to take the lock builds it for all.
 */
async function pack(): Promise<string> {
  const folder = scratchFolder('packed')
  cpSync(join(ROOT, 'client'), join(folder, 'client'), { recursive: true, filter: (path) => !path.endsWith('/dist') })
  cpSync(join(ROOT, 'tsconfig.json'), join(folder, 'tsconfig.json'))
  cpSync(join(ROOT, 'package-lock.json'), join(folder, 'package-lock.json'))
  const archive = join(CACHE, `${hashOf(folder)}.tgz`)
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  mkdirSync(CACHE, { recursive: true })
  await run('flock', [join(CACHE, 'lock'), 'sh', '-c', PACK, 'sh', archive], { cwd: folder })
  return archive
}

function hashOf(folder: string): string {
  const hash = createHash('sha256')
  const files = globSync('**/*.*', { cwd: folder }).sort()
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(folder, file)))
  return hash.digest('hex').slice(0, 16)
}
