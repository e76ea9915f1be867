import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CACHE = join(import.meta.dirname, '../../node_modules/.cache')
const run = promisify(execFile)

/**
 * A Node.js besides the pinned one, from its npm package, which is fetched once and kept with the installed packages. It is no
 * dependency in `package.json`: its program would take the place of the pinned one there.
 *
 * @param version - exact, for instance `22.23.3`
 * @returns its program
 * @throws Error with what npm said if it cannot be had
 */
export async function installedNode(version: string): Promise<string> {
  const name = `node-${process.platform}-${process.arch}`
  const folder = join(CACHE, `node-${version}`)
  if (!existsSync(folder)) {
    await mkdir(CACHE, { recursive: true })
    const fetched = await mkdtemp(`${folder}-`)
    await run('npm', ['install', '--prefix', fetched, '--no-save', '--no-audit', '--no-fund', `${name}@${version}`])
    // One step, so that a test that runs beside this one never finds half of it.
    await rename(fetched, folder).catch(() => rm(fetched, { recursive: true }))
  }
  return join(folder, 'node_modules', name, 'bin/node')
}
