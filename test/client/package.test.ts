import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { signWebhook } from '../../client/src/testing.ts'
import { VERSION } from '../../client/src/version.ts'
import { packedClient } from './packed-client.ts'
import { readmeExamples } from './readme-examples.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)
const SECRET = 'whsec_dGVzdC1zZWNyZXQ='
const EVENT = {
  event_type: 'transaction.completed' as const,
  app_id: 1,
  created_at: '2026-12-01T09:31:12+00:00',
  data: {
    transaction_id: 3,
    external_ref: 'user-42',
    paygate_customer_id: null,
    plan_ref: 'stickers',
    amount: 20000,
    currency: 'VND',
    status: 'completed' as const,
    metadata: {},
  },
}
const LISTEN = (name: string): string => `import { app as ${name} } from './${name}.ts'
const ${name}Server = ${name}.listen(0, '127.0.0.1', () => report('${name}', ${name}Server.address().port))`
const FETCH = (name: string, exported: string): string => `import { ${exported} as ${name} } from './${name}.ts'
serve({ fetch: ${name}.fetch ?? ${name}, port: 0, hostname: '127.0.0.1' }, ({ port }) => report('${name}', port))`
/** The lines of a program that serve each handler of the README. */
const SERVED: Readonly<Record<string, string>> = {
  express: LISTEN('express'),
  koa: LISTEN('koa'),
  hono: FETCH('hono', 'app'),
  next: FETCH('next', 'POST'),
}
/** Prints the port of each handler once all listen. */
const PROGRAM = `import { serve } from '@hono/node-server'
const ports = {}
function report(name, port) {
  ports[name] = port
  if (Object.keys(ports).length === ${Object.keys(SERVED).length}) console.log(JSON.stringify(ports))
}
${Object.values(SERVED).join('\n')}`

describe('the package of the client', () => {
  let project: string

  before(async () => {
    project = await packedClient()
    for (const name of ['express', 'koa', 'hono', '@hono'])
      symlinkSync(join(ROOT, 'node_modules', name), join(project, 'node_modules', name))
  })

  it('holds what it is built of, with types, a README and a changelog, and nothing else', () => {
    const files = globSync('**/*.*', { cwd: join(project, 'node_modules/paygate-client') })
    const modules = ['index', 'testing'].flatMap((name) => [`${name}.js`, `${name}.d.ts`])
    expect(files).to.include.members([
      'README.md',
      'CHANGELOG.md',
      'package.json',
      'dist/cjs/package.json',
      ...modules.flatMap((file) => [`dist/esm/${file}`, `dist/cjs/${file}`]),
    ])
    const known = /^(dist\/(esm|cjs)\/(cli\/)?[\w-]+\.(js|d\.ts)|README\.md|CHANGELOG\.md|(dist\/cjs\/)?package\.json)$/
    expect(files.filter((file) => !known.test(file))).to.deep.equal([])
  })

  it('says what it is and on which Node.js it runs, and calls itself by its version', () => {
    const { version, engines, description, keywords } = JSON.parse(
      readFileSync(join(ROOT, 'client/package.json'), 'utf8'),
    ) as { version: string; engines: { node: string }; description: string; keywords: string[] }
    expect(engines.node).to.equal('>=20.19')
    expect(version.startsWith(`${VERSION}.`)).to.equal(true)
    expect(readFileSync(join(ROOT, 'client/CHANGELOG.md'), 'utf8')).to.include(`## [${version}]`)
    expect([description, ...keywords].every((text) => text !== '')).to.equal(true)
  })

  it('brings the program paygate, which npx runs', async () => {
    const folder = join(project, 'node_modules/paygate-client')
    const { bin } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { bin: { paygate: string } }
    const program = join(folder, bin.paygate)
    expect(readFileSync(program, 'utf8')).to.match(/^#!\/usr\/bin\/env node\n/)
    expect((await run(process.execPath, [program, '--help'])).stdout).to.include('paygate listen')
  })

  it('needs no package and no module of Node, but for that program', () => {
    const sources = globSync('client/src/*.ts', { cwd: ROOT }).map((file) => readFileSync(join(ROOT, file), 'utf8'))
    expect(sources.length).to.be.greaterThan(5)
    const imported = sources.flatMap((text) =>
      [...text.matchAll(/from '([^']+)'/g)].map(([, specifier = '']) => specifier),
    )
    expect(imported.filter((specifier) => !specifier.startsWith('./'))).to.deep.equal([])
    expect(sources.filter((text) => /\b(process|Buffer|require)\b/.test(text))).to.deep.equal([])
  })

  it('has a handler for each framework that it names', () => {
    expect(readmeExamples().flatMap(({ name }) => name ?? [])).to.have.members(Object.keys(SERVED))
  })

  describe('has a handler', () => {
    let program: ChildProcess
    let ports: Readonly<Record<string, number>>

    before(async () => {
      for (const { name, code } of readmeExamples()) if (name !== null) writeFileSync(join(project, `${name}.ts`), code)
      writeFileSync(join(project, 'main.ts'), PROGRAM)
      const env = { ...process.env, PAYGATE_WEBHOOK_SECRET: SECRET }
      program = spawn(process.execPath, ['main.ts'], { cwd: project, env, stdio: ['ignore', 'pipe', 'inherit'] })
      const [line] = (await once(createInterface(program.stdout!), 'line')) as [string]
      ports = JSON.parse(line) as typeof ports
    })

    after(() => program.kill())

    for (const name of Object.keys(SERVED))
      it(`for ${name} that takes what is genuine with 204, and refuses what is not with 400`, async () => {
        const post = async (secret: string): Promise<number> => {
          const { body, headers } = await signWebhook(EVENT, secret)
          return (await fetch(`http://127.0.0.1:${ports[name]}/hooks`, { method: 'POST', headers, body })).status
        }
        expect(await post(SECRET)).to.equal(204)
        expect(await post('whsec_b3RoZXI=')).to.equal(400)
      })
  })
})
