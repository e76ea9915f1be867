import { expect } from 'chai'
import { describe, it } from 'mocha'
import { killStorm } from './kill-storm.ts'

describe('trial: statements and connections are killed at random', () => {
  it('every kind of command for 6 end users, with session commands refused and their answers lost: each unit is done whole, or not at all', async () => {
    const { killedQueries, sessionFaults, seed } = await killStorm({ endUsers: 6, seed: 31, sessionFaults: 0.15 })
    expect(killedQueries, `seed ${seed}`).to.be.at.least(20)
    expect(sessionFaults, `seed ${seed}`).to.be.at.least(10)
  })
})
