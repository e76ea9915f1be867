import { expect } from 'chai'
import { describe, it } from 'mocha'
import { stopOnHungReceiver, stopUnderLoad } from './stop-under-load.ts'

describe('trial: a daemon is stopped while it works', () => {
  it('SIGTERM under payments over 8 kept connections: it exits 0, answers every request, releases its leases and loses nothing', async () => {
    const figures = await stopUnderLoad({ stops: 1, connections: 8, seed: 5 })
    expect(figures.cutOff).to.equal(0)
    expect(figures.answered).to.be.at.least(8)
  })

  it('SIGTERM while a webhook receiver hangs: it exits 0 with the lease released, and the next daemon delivers; at a second signal it exits at once', async () => {
    const { stopMs } = await stopOnHungReceiver({ timeoutMs: 5000 })
    expect(stopMs).to.be.below(15_000)
  })
})
