import { execFile } from 'node:child_process'
import { globSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { scratchFolder } from '../support/scratch.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)

let archive: Promise<string> | null = null

/** A project in a folder of its own, where the packed client is installed as npm would. */
export async function packedClient(): Promise<string> {
  archive ??= pack()
  const project = scratchFolder('client')
  const installed = join(project, 'node_modules/paygate-client')
  mkdirSync(installed, { recursive: true })
  await run('tar', ['-xzf', await archive, '-C', installed, '--strip-components=1'])
  writeFileSync(join(project, 'package.json'), '{"type":"module"}')
  return project
}

/** Builds and packs the client, once for all tests. */
async function pack(): Promise<string> {
  const folder = scratchFolder('packed')
  await run('npm', ['pack', '--silent', '--pack-destination', folder, './client'], { cwd: ROOT })
  const [name = ''] = globSync('*.tgz', { cwd: folder })
  return join(folder, name)
}
