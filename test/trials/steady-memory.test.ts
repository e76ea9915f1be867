import { expect } from 'chai'
import { describe, it } from 'mocha'
import { steadyMemory } from './steady-memory.ts'

describe('trial: memory over many mails', () => {
  it('300 mails in six sweeps of one process: the heap does not grow', async () => {
    const figures = await steadyMemory({ sweeps: 6, mailsPerSweep: 50, mostGrowthKb: 4000 })
    expect(figures.mails).to.equal(300)
  })
})
