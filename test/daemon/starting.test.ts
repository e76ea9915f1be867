import { spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { warnOfUnreadableMetrics } from '#daemon/health.ts'
import { answerWhileStarting } from '#daemon/starting.ts'
import { testContext } from '../support/context.ts'
import { listen, stopServer } from '../support/http-server.ts'

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

  it('is none where the program is asked for help, or given an argument that it does not know', () => {
    const run = (...options: string[]) =>
      spawnSync(join(import.meta.dirname, '../../bin/billing-daemon'), options, { encoding: 'utf8' })
    const help = run('--help')
    expect([help.status, help.stderr]).to.deep.equal([0, ''])
    expect(help.stdout).to.include('--check')
    const wrong = run('--chekc')
    expect([wrong.status, wrong.stdout]).to.deep.equal([2, ''])
    expect(wrong.stderr).to.match(/^billing-daemon: unknown argument --chekc\nusage: billing-daemon/)
  })

  it('logs that nobody can read /metrics if it is behind a proxy without a token, but not with one', () => {
    const warnings = (settings: Readonly<Record<string, string>>) => {
      const ctx = testContext({ BILLING_TRUST_PROXY: '1', ...settings })
      warnOfUnreadableMetrics(ctx)
      return ctx.logged.filter((line) => line.includes('nobody can read /metrics'))
    }
    expect(warnings({})).to.have.length(1)
    expect(warnings({ BILLING_METRICS_TOKEN: 'token-of-at-least-16' })).to.deep.equal([])
  })
})
