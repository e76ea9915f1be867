import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { request } from 'undici'
import { startDaemonProcess, type DaemonProcess } from '../support/daemon-process.ts'
import { until } from '../support/until.ts'

describe('a daemon that stops', () => {
  let daemon: DaemonProcess

  afterEach(() => daemon.kill())

  it('says first that it is not ready, and takes calls for as long as it drains', async () => {
    daemon = await startDaemonProcess({ BILLING_DRAIN_SECONDS: '10' })
    const call = async (path: string) => {
      const { statusCode, body } = await request(`${daemon.url}${path}`, { reset: true })
      return { status: statusCode, body: await body.json() }
    }
    expect((await call('/readyz')).status).to.equal(200)
    const stopped = daemon.stop()
    await until(async () => (await call('/readyz')).status === 503)
    expect((await call('/readyz')).body).to.deep.include({ status: 'not_ready', reason: 'stopping' })
    expect((await call('/api/v1/plans')).status).to.equal(401)
    expect(await stopped).to.equal(0)
  })

  it('stops as after one signal if the same signal reaches it twice at once', async () => {
    daemon = await startDaemonProcess()
    const stopped = daemon.stop()
    await until(() => daemon.logged.some((line) => line.includes('"stopping"')))
    expect(await Promise.all([stopped, daemon.stop()])).to.deep.equal([0, 0])
    expect(daemon.logged.some((line) => line.includes('"stopped"'))).to.equal(true)
  })
})
