import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { request } from 'undici'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { startServiceManager, type ServiceManager } from '../support/service-manager.ts'
import { until } from '../support/until.ts'

describe('a daemon that stops', () => {
  let systemd: ServiceManager
  let daemon: DaemonProcess

  before(async () => {
    systemd = await startServiceManager()
    daemon = await startDaemonProcess({
      ...{ BILLING_DRAIN_SECONDS: '5', BILLING_TRUST_PROXY: '1', BILLING_REFUND_LIMITS: 'VND:1' },
      ...{ NOTIFY_SOCKET: systemd.socket, WATCHDOG_USEC: '600000' },
    })
  })

  after(async () => {
    await daemon.kill()
    await systemd.stop()
  })

  it('says first that it is not ready, takes calls for as long as it drains, and stops as after one signal if the same signal reaches it twice at once', async () => {
    const call = async (path: string) => {
      const { statusCode, body } = await request(`${daemon.url}${path}`, { reset: true })
      return { status: statusCode, body: await body.json() }
    }
    const hasLogged = (part: string) => daemon.logged.some((line) => line.includes(part))
    expect(hasLogged('nobody can read /metrics'), 'behind a proxy without a token').to.equal(true)
    expect(hasLogged('"BILLING_REFUND_LIMITS"'), 'not a setting').to.equal(true)
    await systemd.until('READY=1')
    await systemd.until('WATCHDOG=1')
    expect(systemd.received.find((line) => line.startsWith('STATUS='))).to.equal(
      `STATUS=listening on ${new URL(daemon.url).host}`,
    )
    // On a busy machine the database may answer too late: the daemon then says for a second that it is not ready.
    await until(async () => (await call('/readyz')).status === 200)

    const stopped = daemon.stop()
    await until(() => hasLogged('"stopping"'))
    const stoppedAgain = daemon.stop()
    expect(await call('/readyz')).to.deep.include({ status: 503, body: { status: 'not_ready', reason: 'stopping' } })
    expect((await call('/api/v1/plans')).status).to.equal(401)
    expect(await Promise.all([stopped, stoppedAgain])).to.deep.equal([0, 0])
    expect(hasLogged('"stopped"')).to.equal(true)
    await systemd.until('STOPPING=1')
  })
})
