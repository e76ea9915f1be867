import { expect } from 'chai'
import { describe, it } from 'mocha'
import { serviceManager } from '#config/environment.ts'
import { findHang, startWatchdog } from '#daemon/watchdog.ts'
import { addMs, MINUTE_MS, systemClock } from '#shared/time.ts'
import { testContext } from '../support/context.ts'
import { startServiceManager } from '../support/service-manager.ts'

describe('the watchdog', () => {
  it('skips its pings while a job is unresponsive, and logs why', async () => {
    const systemd = await startServiceManager()
    const ctx = testContext()
    const before = process.env['NOTIFY_SOCKET']
    process.env['NOTIFY_SOCKET'] = systemd.socket
    const heartbeats = new Map([['expire', addMs(ctx.clock.now(), -4 * MINUTE_MS)]])
    const watchdog = startWatchdog(ctx, { manager: { watchdogMs: 60 }, jobs: ['expire'], heartbeats })
    try {
      await systemd.until('READY=1')
      while (!ctx.logged.some((line) => line.includes('the job expire is unresponsive'))) {
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(systemd.received).to.not.include('WATCHDOG=1')
      heartbeats.set('expire', ctx.clock.now())
      await systemd.until('WATCHDOG=1')
    } finally {
      watchdog.stop()
      await systemd.until('STOPPING=1')
      if (before === undefined) delete process.env['NOTIFY_SOCKET']
      else process.env['NOTIFY_SOCKET'] = before
      await systemd.stop()
    }
  })

  it('checks the event loop and the jobs’ threads, and allows for those that have just started', () => {
    const now = systemClock.now()
    const ago = (minutes: number) => addMs(now, -minutes * MINUTE_MS)
    const healthy = { loopLagMs: 20, heartbeats: [['expire', ago(1)] as const] }
    expect(findHang(healthy, ago(60), now)).to.equal(null)
    expect(findHang({ ...healthy, loopLagMs: 1500 }, ago(60), now)).to.equal('the event loop is 1500 ms late')
    expect(findHang({ ...healthy, heartbeats: [['expire', ago(4)]] }, ago(60), now)).to.equal(
      'the job expire is unresponsive',
    )
    expect(findHang({ ...healthy, heartbeats: [['expire', null]] }, ago(1), now)).to.equal(null)
    expect(findHang({ ...healthy, heartbeats: [['expire', null]] }, ago(4), now)).to.equal(
      'the job expire is unresponsive',
    )
  })

  it('is off without systemd, and if systemd watches another process', () => {
    expect(serviceManager({})).to.equal(null)
    const socket = { NOTIFY_SOCKET: '/run/systemd/notify' }
    expect(serviceManager(socket)).to.deep.equal({ watchdogMs: null })
    expect(serviceManager({ ...socket, WATCHDOG_USEC: '60000000' })).to.deep.equal({ watchdogMs: 60_000 })
    const watched = { ...socket, WATCHDOG_USEC: '60000000', WATCHDOG_PID: '7' }
    expect(serviceManager(watched, 7)).to.deep.equal({ watchdogMs: 60_000 })
    expect(serviceManager(watched, 8)).to.deep.equal({ watchdogMs: null })
  })
})
