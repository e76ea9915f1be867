import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { Agent, request } from 'undici'
import { anAuthority, type Authority } from './support/certificates.ts'
import { openDocPage } from './support/doc-page.ts'
import { freePort } from './support/free-ports.ts'
import { listen, stopServer } from './support/http-server.ts'
import { scratchFolder } from './support/scratch.ts'
import { until } from './support/until.ts'

const TOKEN = 'c0ffee'.repeat(10)
const LINKS = [
  `/checkout/${TOKEN}`,
  `/checkout/${TOKEN}/status?seen=1`,
  `/renew/${TOKEN}?lang=vi`,
  `/renew/${TOKEN}/opt-out`,
]

/** A proxy with its sample of the documentation, its logs and its ports in a folder of the test. */
interface Proxy {
  readonly url: string
  readonly process: ChildProcess
  readonly folder: string
}

describe('the samples of reverse proxies in docs/operating.md', function () {
  const page = openDocPage('docs/operating.md')
  let authority: Authority
  let upstream: Server
  let upstreamPort: number
  let proxy: Proxy | undefined
  let agent: Agent

  before(() => {
    authority = anAuthority()
    agent = new Agent({ connect: { ca: readFileSync(authority.caPath) } })
  })

  after(() => agent.close())

  afterEach(async () => {
    if (proxy && proxy.process.exitCode === null) {
      const ended = once(proxy.process, 'exit')
      proxy.process.kill()
      await ended
    }
    proxy = undefined
    await stopServer(upstream)
  })

  const startUpstream = async (): Promise<void> => {
    upstream = createServer((incoming, answer) => {
      if (incoming.method === 'POST') answer.writeHead(303, { Location: `/checkout/${TOKEN}/bank` })
      answer.end('page')
    })
    upstreamPort = await listen(upstream)
  }

  const call = async (path: string, method: 'GET' | 'POST' = 'GET'): Promise<number> => {
    const { statusCode, body } = await request(`${proxy!.url}${path}`, { method, dispatcher: agent })
    await body.dump()
    return statusCode
  }

  /** Calls every page whose address is secret, with a daemon behind the proxy and with none. */
  const callAll = async (): Promise<void> => {
    await until(async () => {
      try {
        return (await call('/healthz')) === 200
      } catch {
        return false
      }
    })
    for (const link of LINKS) {
      expect(await call(link)).to.equal(200)
      expect(await call(link, 'POST')).to.equal(303)
    }
    await stopServer(upstream)
    expect(await call('/healthz')).to.equal(502)
    for (const link of LINKS) expect(await call(link)).to.equal(502)
  }

  it('let nginx write the addresses of other pages, never those of checkout and renewal pages', async () => {
    await startUpstream()
    const folder = scratchFolder('nginx')
    const { key, cert } = authority.issue('127.0.0.1')
    writeFileSync(join(folder, 'key.pem'), key)
    writeFileSync(join(folder, 'cert.pem'), cert)
    const port = await freePort()
    const site = page
      .block('Reverse proxy', 'nginx')
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${upstreamPort}`)
      .replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`)
      .replace(/\S+fullchain\.pem/, join(folder, 'cert.pem'))
      .replace(/\S+privkey\.pem/, join(folder, 'key.pem'))
    writeFileSync(join(folder, 'paygate.conf'), site)
    writeFileSync(
      join(folder, 'nginx.conf'),
      `pid ${folder}/pid; daemon off; master_process off; error_log ${folder}/error.log info; events {}
       http { access_log ${folder}/access.log; include ${folder}/paygate.conf; client_body_temp_path ${folder}/body;
         proxy_temp_path ${folder}/proxy; fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi; }`,
    )
    proxy = {
      url: `https://127.0.0.1:${port}`,
      folder,
      process: start('nginx', ['-p', folder, '-c', `${folder}/nginx.conf`]),
    }
    await callAll()
    const access = readFileSync(join(folder, 'access.log'), 'utf8')
    expect(access).to.contain('GET /healthz').and.not.to.contain(TOKEN)
    expect(readFileSync(join(folder, 'error.log'), 'utf8'))
      .to.contain('GET /healthz')
      .and.not.to.contain(TOKEN)
    expectNowhere(folder)
  })

  it('let Caddy write the addresses of other pages, never those of checkout and renewal pages', async () => {
    await startUpstream()
    const folder = scratchFolder('caddy')
    const port = await freePort()
    const sample = page.block('Reverse proxy', 'caddy')
    const site = sample
      .replace(/^\{$/m, '{\n  admin off')
      // An operator who wants an access log adds this.
      .replace(
        /^pay\.example\.com \{$/m,
        `http://127.0.0.1:${port} {\n  log {\n    output file ${folder}/access.log\n  }`,
      )
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${upstreamPort}`)
    expect(site).to.contain('admin off').and.to.contain('output file')
    writeFileSync(join(folder, 'Caddyfile'), site)
    const environment = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
    const child = start('caddy', ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'], environment)
    let errors = ''
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
    proxy = { url: `http://127.0.0.1:${port}`, folder, process: child }
    await callAll()
    await until(() => errors.split('"status":502').length > LINKS.length + 1)
    expect(readFileSync(join(folder, 'access.log'), 'utf8')).to.contain('"uri":"/healthz"')
    expect(errors).to.contain('"uri":"/healthz"').and.to.contain('"uri":"/renew/-/opt-out"').and.not.to.contain(TOKEN)
    expectNowhere(folder)
  })
})

function start(program: string, words: string[], env: NodeJS.ProcessEnv = process.env): ChildProcess {
  const path = `${process.env['PATH']}:/usr/sbin:/usr/local/sbin`
  return spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...env, PATH: path } })
}

/** Throws if any file of the folder holds the token. */
function expectNowhere(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile())
      expect(readFileSync(join(entry.parentPath, entry.name), 'latin1'), entry.name).not.to.contain(TOKEN)
}
