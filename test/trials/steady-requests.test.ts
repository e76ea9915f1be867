import { expect } from 'chai'
import { describe, it } from 'mocha'
import { steadyRequests } from './steady-requests.ts'

describe('trial: memory over many requests', () => {
  it('reads, checkouts, made-up keys and pages that are not there: what a request leaves behind is collected', async () => {
    const figures = await steadyRequests({ requests: 2000, turnSeconds: 0.3, mostGrowthKb: 8000 })
    expect(figures.requests).to.be.at.least(2000)
  })
})
