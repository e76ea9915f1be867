import { expect } from 'chai'
import { describe, it } from 'mocha'
import { httpAbuse } from './http-abuse.ts'

describe('trial: HTTP as attackers speak it', () => {
  it('200 slow senders, pipelining, requests that may be read as two, wrong hosts and tokens that are paths: deadlines hold, honest callers do not wait, links come from the base address, nothing answers 5xx', async () => {
    const { refused, slowestCutMs } = await httpAbuse({ slowSockets: 200, slowBodies: 0 })
    expect(refused).to.be.above(200)
    expect(slowestCutMs).to.be.within(9000, 15_000)
  })
})
