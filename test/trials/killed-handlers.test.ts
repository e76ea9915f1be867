import { expect } from 'chai'
import { describe, it } from 'mocha'
import { killedHandlers } from './killed-handlers.ts'

describe('trial: the process of a notification is killed', () => {
  it('killed with -9 between statements, then notified again: nothing is half done, everything is done once', async () => {
    const { statements, kills } = await killedHandlers({ every: 3 })
    expect(statements.card).to.be.greaterThan(14)
    expect(statements.payos).to.be.greaterThan(14)
    expect(kills).to.be.at.least(4)
  })
})
