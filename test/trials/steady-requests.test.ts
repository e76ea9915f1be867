import { expect } from 'chai'
import { describe, it } from 'mocha'
import { steadyRequests } from './steady-requests.ts'

describe('trial: memory over many requests', () => {
  it('reads, checkouts, invented keys and missing pages: the heap does not grow', async () => {
    const figures = await steadyRequests({ requests: 2000, loadSeconds: 0.3, mostGrowthKb: 8000 })
    expect(figures.requests).to.be.at.least(2000)
  })
})
