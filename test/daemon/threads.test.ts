import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { request } from 'undici'
import { JOBS } from '#doctor/check-work.ts'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { until } from '../support/until.ts'

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
})
