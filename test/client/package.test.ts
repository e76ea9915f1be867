import { execFile, spawn } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { signWebhook } from '../../client/src/testing.ts'
import { VERSION } from '../../client/src/version.ts'
import { packedClient } from './packed-client.ts'

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
const LISTEN = `import { app } from './handler.ts'
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port))`
const FETCH = (name: string): string => `import { serve } from '@hono/node-server'
import { ${name} as served } from './handler.ts'
serve({ fetch: served.fetch ?? served, port: 0, hostname: '127.0.0.1' }, ({ port }) => console.log(port))`
/** The program that serves each handler of the README. */
const PROGRAMS: Readonly<Record<string, string>> = {
  express: LISTEN,
  koa: LISTEN,
  hono: FETCH('app'),
  next: FETCH('POST'),
}

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

  const blocks = [...readFileSync(join(ROOT, 'client/README.md'), 'utf8').matchAll(/^```ts(?: (\w+))?\n(.*?)^```/gms)]

  it('has examples whose types are right', async () => {
    const folder = join(project, 'examples')
    mkdirSync(folder)
    blocks.forEach(([, name = 'example', code = ''], index) => writeFileSync(join(folder, `${name}${index}.ts`), code))
    for (const name of ['@types', 'undici-types'])
      symlinkSync(join(ROOT, 'node_modules', name), join(project, 'node_modules', name))
    const options = [
      '--noEmit',
      '--strict',
      '--skipLibCheck',
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--lib',
      'es2023,dom',
    ]
    const files = globSync('*.ts', { cwd: folder }).filter((file) => !file.startsWith('express'))
    expect(files.length).to.equal(blocks.length - 1)
    const checked = await run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, ...files], {
      cwd: folder,
    })
      .then(({ stdout }) => stdout)
      .catch((error: unknown) => (error as { stdout: string }).stdout)
    expect(checked).to.equal('')
  })

  it('has a handler for each framework that it names', () => {
    expect(blocks.flatMap(([, name]) => name ?? [])).to.have.members(Object.keys(PROGRAMS))
  })

  for (const [, name, code = ''] of blocks) {
    if (name === undefined) continue
    it(`has a handler for ${name} that takes what is genuine with 204, and refuses what is not with 400`, async () => {
      const folder = join(project, name)
      mkdirSync(folder)
      writeFileSync(join(folder, 'handler.ts'), code)
      writeFileSync(join(folder, 'main.ts'), PROGRAMS[name] ?? '')
      const env = { ...process.env, PAYGATE_WEBHOOK_SECRET: SECRET }
      const program = spawn(process.execPath, ['main.ts'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
      try {
        const { value: port } = await createInterface(program.stdout)[Symbol.asyncIterator]().next()
        const post = async (secret: string): Promise<number> => {
          const { body, headers } = await signWebhook(EVENT, secret)
          return (await fetch(`http://127.0.0.1:${String(port)}/hooks`, { method: 'POST', headers, body })).status
        }
        expect(await post(SECRET)).to.equal(204)
        expect(await post('whsec_b3RoZXI=')).to.equal(400)
      } finally {
        program.kill()
      }
    })
  }
})
