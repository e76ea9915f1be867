import { spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { answerWhileStarting } from '#daemon/starting.ts'
import { testEnvironment } from '../support/context.ts'
import { startDaemonProcess } from '../support/daemon-process.ts'
import { testDatabase, urlOf } from '../support/database.ts'
import { listen, stopServer } from '../support/http-server.ts'

const PROGRAM = join(import.meta.dirname, '../../bin/billing-daemon')

describe('a daemon that is starting', () => {
  it('answers 503: not_ready for probes, the error envelope of the API for everything else', async () => {
    const server = createServer(answerWhileStarting)
    const port = await listen(server)
    try {
      for (const path of ['/healthz', '/readyz', '/api/v1/plans']) {
        const answer = await fetch(`http://127.0.0.1:${port}${path}`)
        expect(answer.status, path).to.equal(503)
        const requestId = answer.headers.get('x-request-id')
        expect(requestId, path).to.match(/^req_[0-9a-f]{32}$/)
        expect(answer.headers.get('retry-after'), path).to.equal('1')
        const message = 'the service is starting: try again in 1 s'
        const error = { code: 'service_unavailable', message, field: null, request_id: requestId }
        const isProbe = path !== '/api/v1/plans'
        expect(await answer.json(), path).to.deep.equal(
          isProbe ? { status: 'not_ready', reason: 'starting' } : { success: false, error },
        )
      }
    } finally {
      await stopServer(server)
    }
  })

  it('with --check says whether it would start, beside one that serves, and serves nothing itself', async () => {
    const { db, name, socketPath } = testDatabase()
    const check = (overrides: Readonly<Record<string, string>> = {}) => {
      const env = { PATH: process.env['PATH'], ...testEnvironment(overrides) }
      return spawnSync(PROGRAM, ['--check'], { env, encoding: 'utf8' })
    }
    const daemon = await startDaemonProcess()
    const taken = check({ BILLING_PORT: new URL(daemon.url).port })
    expect([taken.status, taken.stdout, taken.stderr]).to.deep.equal([0, '', ''])
    await daemon.stop()
    await db.query(`CREATE DATABASE ${name}_empty`)
    try {
      const behind = check({ BILLING_DATABASE_URL: urlOf(socketPath, `${name}_empty`) })
      expect(behind.status).to.equal(1)
      expect(behind.stdout).to.match(/the daemon cannot start: .*run billing-cli migrate/)
    } finally {
      await db.query(`DROP DATABASE ${name}_empty`)
    }
  })

  it('logs that nobody can read /metrics if it is behind a proxy without a token, but not with one', async () => {
    for (const [token, isLogged] of [
      [{}, true],
      [{ BILLING_METRICS_TOKEN: 'token-of-at-least-16' }, false],
    ] as const) {
      const daemon = await startDaemonProcess({ BILLING_TRUST_PROXY: '1', ...token })
      await daemon.stop()
      expect(daemon.logged.join('').includes('nobody can read /metrics')).to.equal(isLogged)
    }
  })
})
