import { execFile } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { EdgeVM } from '@edge-runtime/vm'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { listen, stopServer } from '../support/http-server.ts'
import { installedNode } from './installed-node.ts'
import { packedClient } from './packed-client.ts'

const ROOT = join(import.meta.dirname, '../..')
const PROGRAMS = join(ROOT, 'node_modules/.bin')
const run = promisify(execFile)
const SECRET = 'sk_test_secret'

/** Reads a list, verifies a webhook, follows events to their end, and meets a service that is not there. */
const WORK = `async function work({ Paygate, verifyWebhook, hasAccess }, { signWebhook }, baseUrl) {
  const paygate = new Paygate({ baseUrl, apiKey: 'pk_test_1', apiSecret: '${SECRET}' })
  const codes = []
  for await (const { code } of paygate.plans.list()) codes.push(code)
  const isPromise = paygate.customers.list() instanceof Promise
  const events = []
  for await (const { event, cursor } of paygate.events.catchUp()) events.push([event.id, cursor])
  const webhook = { event_type: 'webhook.test', app_id: 1, created_at: '2026-12-01T09:31:12+00:00', data: { message: 'hi' } }
  const { body, headers } = await signWebhook(webhook, 'whsec_dGVzdC1zZWNyZXQ=')
  const { id } = await verifyWebhook(body, new Headers(headers), 'whsec_dGVzdC1zZWNyZXQ=')
  const refused = await verifyWebhook(body, headers, 'whsec_b3RoZXI=').catch(({ name }) => name)
  const nowhere = new Paygate({ baseUrl: 'http://127.0.0.1:1', apiKey: 'k', apiSecret: 's', maxRetries: 0 })
  const unreachable = await nowhere.plans.list().catch(({ name }) => name)
  const moved = await paygate.plans.get('moved').catch(({ code }) => code)
  const access = hasAccess({ status: 'active', current_period_end: '2026-12-22 19:03:53' }, new Date('2026-12-22T19:03:52Z'))
  return JSON.stringify({ codes, isPromise, events, id, refused, unreachable, moved, access })
}
`
const DONE = {
  codes: ['premium'],
  isPromise: true,
  events: [['evt_1', '2026-12-01 09:26:12']],
  id: 'evt_1',
  refused: 'WebhookError',
  unreachable: 'ConnectionError',
  moved: 'unexpected_response',
  access: true,
}

/** Answers what is rightly signed. */
function answer(request: IncomingMessage, response: ServerResponse): void {
  const { method = '', url = '', headers } = request
  const signed = `${String(headers['x-timestamp'])}.${method}.${url}.`
  const isGenuine = createHmac('sha256', SECRET).update(signed).digest('hex') === headers['x-signature']
  const path = new URL(url, 'http://service').pathname
  if (!isGenuine) response.writeHead(401).end()
  else if (path === '/api/v1/plans/moved') response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()
  else if (path === '/api/v1/plans') ok(response, { plans: [{ code: 'premium' }] })
  else ok(response, path === '/api/v1/events' ? [{ id: 'evt_1', created_at: '2026-12-01 09:31:12' }] : [])
}

function ok(response: ServerResponse, data: unknown): void {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  response.end(JSON.stringify({ success: true, data, next_cursor: null }))
}

describe('the client runs', () => {
  let project: string
  let server: Server
  let url: string

  before(async () => {
    project = await packedClient()
    server = createServer(answer)
    url = `http://127.0.0.1:${await listen(server)}`
    const work = (load: string, done: string) => `${load}\n${done} = work(client, testing, '${url}')\n${WORK}`
    const imports = `import * as client from 'paygate-client'\nimport * as testing from 'paygate-client/testing'`
    const requires = `const client = require('paygate-client')\nconst testing = require('paygate-client/testing')`
    writeFileSync(join(project, 'smoke.mjs'), work(imports, 'export const done'))
    writeFileSync(join(project, 'smoke.cjs'), work(requires, 'exports.done'))
    writeFileSync(
      join(project, 'main.mjs'),
      `import { done as esm } from './smoke.mjs'\nimport commonJs from './smoke.cjs'
const version = process.version
console.log(JSON.stringify({ version, done: [await esm, await commonJs.done] }))`,
    )
  })

  after(() => stopServer(server))

  /** Runs the work by both modules of the package in one process. Returns the version of Node.js that it says. */
  async function runsBoth(program: string, words: readonly string[] = []): Promise<string> {
    const { stdout } = await run(program, [...words, 'main.mjs'], { cwd: project })
    const { version, done } = JSON.parse(stdout) as { version: string; done: string[] }
    expect(done.map((each) => JSON.parse(each) as unknown)).to.deep.equal([DONE, DONE])
    return version
  }

  async function runsOnNode(node: string, version: string): Promise<void> {
    expect(await runsBoth(node)).to.equal(version)
    const program = join(project, 'node_modules/paygate-client/dist/esm/cli/main.js')
    const read = { PAYGATE_URL: url, PAYGATE_API_KEY: 'pk_test_1', PAYGATE_API_SECRET: SECRET }
    const { stdout: plans } = await run(node, [program, 'request', 'GET', '/plans'], { env: read })
    expect(JSON.parse(plans)).to.deep.equal({
      success: true,
      data: { plans: [{ code: 'premium' }] },
      next_cursor: null,
    })
  }

  for (const version of ['20.20.2', '22.23.3']) {
    it(`as ESM, as CommonJS and by its program on Node.js ${version}`, async () => {
      const node = await installedNode(version)
      await runsOnNode(node, `v${version}`)
    })
  }

  it('as ESM, as CommonJS and by its program on the pinned Node.js', () =>
    runsOnNode(process.execPath, process.version))

  it('as ESM and as CommonJS on Bun', async () => {
    await runsBoth(join(PROGRAMS, 'bun'))
  })

  it('as ESM and as CommonJS on Deno', async () => {
    await runsBoth(join(PROGRAMS, 'deno'), ['run', '--no-prompt', '--allow-net', '--allow-read'])
  })

  it('in an edge runtime, which has nothing of Node.js', async () => {
    const folder = join(project, 'node_modules/paygate-client/dist/cjs')
    const sources = globSync('*.js', { cwd: folder }).map(
      (file) =>
        `${JSON.stringify(`./${basename(file)}`)}: (exports, require) => {${readFileSync(join(folder, file), 'utf8')}}`,
    )
    const vm = new EdgeVM()
    const done = await vm.evaluate<Promise<string>>(`
      const sources = {${sources.join(',\n')}}
      const loaded = {}
      const load = (name) => {
        if (!loaded[name]) sources[name]((loaded[name] = {}), load)
        return loaded[name]
      }
      ${WORK}
      work(load('./index.js'), load('./testing.js'), '${url}')`)
    expect(JSON.parse(done)).to.deep.equal(DONE)
    expect(vm.evaluate('typeof process + typeof require')).to.equal('undefinedundefined')
  })
})
