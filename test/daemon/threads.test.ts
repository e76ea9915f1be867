import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { request } from 'undici'
import { JOBS } from '#doctor/check-work.ts'
import { testEnvironment } from '../support/context.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { openEmptyDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const PROGRAM = join(import.meta.dirname, '../../bin/billing-daemon')

describe('a running daemon', () => {
  let daemon: DaemonProcess

  before(async () => {
    daemon = await startDaemonProcess({ BILLING_SWEEP_SECONDS: '1' })
  })

  after(() => daemon.stop())

  it('shows the connections of each running thread, and the time since each job’s last heartbeat', async () => {
    let text = ''
    await until(async () => {
      text = await (await request(`${daemon.url}/metrics`)).body.text()
      return ['daemon', 'deliver-webhooks'].every((thread) => text.includes(`{thread="${thread}",state="free"}`))
    })
    for (const job of JOBS)
      expect(text).to.match(new RegExp(`^paygate_job_heartbeat_seconds\\{job="${job}"\\} \\d`, 'm'))
  })

  it('is ready without a warning about the database’s clock', async () => {
    const { statusCode, body } = await request(`${daemon.url}/readyz`)
    expect({ statusCode, body: await body.json() }).to.deep.equal({ statusCode: 200, body: { status: 'ready' } })
  })

  it('does not stop --check from saying whether another would start, which serves nothing itself', async () => {
    const check = (overrides: Readonly<Record<string, string>> = {}) => {
      const env = { PATH: process.env['PATH'], ...testEnvironment(overrides) }
      return spawnSync(PROGRAM, ['--check'], { env, encoding: 'utf8' })
    }
    const taken = check({ BILLING_PORT: new URL(daemon.url).port })
    expect([taken.status, taken.stdout, taken.stderr]).to.deep.equal([0, '', ''])
    const empty = await openEmptyDatabase('empty')
    try {
      const behind = check({ BILLING_DATABASE_URL: empty.url })
      expect(behind.status).to.equal(1)
      expect(behind.stdout).to.match(/the daemon cannot start: .*run billing-cli migrate/)
    } finally {
      await empty.drop()
    }
  })
})
