import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { describe, it } from 'mocha'

const ROOT = join(import.meta.dirname, '..', '..')
/** Packages that only some requests, jobs and commands need. */
const LATER = ['typeorm', 'undici', 'nodemailer', 'eta', 'koa-body', 'jose', 'qrcode', 'stripe']
const FETCH = 'NativeModule internal/deps/undici/undici'

/** The packages and the modules of Node that a program loads with these modules. */
async function loadedBy(...modules: string[]): Promise<{ packages: string[]; native: string[] }> {
  const script = `
    import { registerHooks } from 'node:module'
    const packages = new Set()
    registerHooks({
      resolve(specifier, context, next) {
        const found = next(specifier, context)
        const name = /.*node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(found.url)?.[1]
        if (name !== undefined) packages.add(name)
        return found
      },
    })
    for (const name of ${JSON.stringify(modules)}) await import(name)
    process.stdout.write(JSON.stringify({ packages: [...packages], native: process.moduleLoadList }))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { cwd: ROOT })
  return JSON.parse(stdout) as { packages: string[]; native: string[] }
}

describe('the modules loaded at start', () => {
  it('by the daemon are those that every request needs, without Node’s own fetch', async () => {
    const { packages, native } = await loadedBy('#daemon/without-fetch.ts', '#daemon/serve.ts')
    expect(packages).to.include.members(['koa', 'mysql2', 'zod'])
    expect(packages.filter((name) => LATER.includes(name))).to.deep.equal([])
    expect(native).to.include('NativeModule http').and.not.include(FETCH)
  })

  it('by the thread of alerts, which stays, are without the clients that send, until there is something to send', async () => {
    const { packages } = await loadedBy('#open-context.ts', '#alerts/run-alerts.ts')
    expect(packages).to.include('mysql2')
    expect(packages.filter((name) => LATER.includes(name))).to.deep.equal([])
  })

  it('by a command on the database are fewer still', async () => {
    const { packages, native } = await loadedBy('#cli/app-commands.ts', '#open-context.ts', '#apps/find-app.ts')
    expect(packages).to.include.members(['mysql2', 'commander'])
    expect(
      packages.filter((name) => [...LATER, 'koa', '@koa/router', 'prom-client', 'bree'].includes(name)),
    ).to.deep.equal([])
    expect(native).not.to.include(FETCH)
  })
})
