import { expect } from 'chai'
import { describe, it } from 'mocha'
import { steadyMemory } from './steady-memory.ts'

describe('trial: memory over many mails', () => {
  it('300 mails in six sweeps of one process: what a mail leaves behind is collected', async () => {
    const figures = await steadyMemory({ sweeps: 6, mailsPerSweep: 50, mostGrowthKb: 4000 })
    expect(figures.mails).to.equal(300)
  })
})
