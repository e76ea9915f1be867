import { expect } from 'chai'
import { describe, it } from 'mocha'
import { killedMailers } from './killed-mailers.ts'

describe('trial: mails while the sweep is killed (T06)', () => {
  it('30 mails due while three sweeps are killed around SMTP DATA: none is sent twice, each is recorded or shown to operators', async () => {
    const figures = await killedMailers({ mails: 30, kills: 3, seed: 6 })
    expect(figures).to.include({ kills: 3 })
    expect(figures.recorded + figures.unconfirmed).to.equal(30)
  })
})
