import { execFile } from 'node:child_process'
import { cpSync, globSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
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

/** Builds and packs a copy of the client, once for all tests of a process: other processes of the run build it at the same time. */
async function pack(): Promise<string> {
  const folder = scratchFolder('packed')
  cpSync(join(ROOT, 'client'), join(folder, 'client'), { recursive: true, filter: (path) => !path.endsWith('/dist') })
  cpSync(join(ROOT, 'tsconfig.json'), join(folder, 'tsconfig.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  await run('npm', ['pack', '--silent', './client'], { cwd: folder })
  const [name = ''] = globSync('*.tgz', { cwd: folder })
  return join(folder, name)
}
