import { expect } from 'chai'
import { describe, it } from 'mocha'
import { httpAbuse } from './http-abuse.ts'

describe('trial: HTTP attacks', () => {
  it('200 slow senders, pipelining, request smuggling, wrong hosts and tokens that are paths: deadlines are enforced, honest callers do not wait, links use the base address, nothing answers 5xx', async () => {
    const { repelled, slowestCutMs } = await httpAbuse({ slowSockets: 200, slowBodies: 0 })
    expect(repelled).to.be.above(200)
    expect(slowestCutMs).to.be.within(9000, 15_000)
  })
})
