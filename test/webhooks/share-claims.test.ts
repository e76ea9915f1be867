import { expect } from 'chai'
import { describe, it } from 'mocha'
import { CLAIM_SIZE, MAX_READY, shareClaims } from '#webhooks/share-claims.ts'

describe('which due webhooks are claimed next', () => {
  const apps = (count: number, held: number, depth: number) =>
    Array.from({ length: count }, (_, appId) => ({ appId, held, depth }))
  const sum = (shares: ReadonlyMap<number, number>) => [...shares.values()].reduce((total, share) => total + share, 0)

  it('of one app alone, as many as its receiver will take soon', () => {
    expect(shareClaims(apps(1, 0, 8), 0)).to.deep.equal(new Map([[0, 8]]))
    expect(shareClaims(apps(1, 0, 1000), 0)).to.deep.equal(new Map([[0, CLAIM_SIZE]]))
  })

  it('of many apps, the same of each', () => {
    const shares = shareClaims(apps(20, 0, 128), 0)
    expect(sum(shares)).to.equal(CLAIM_SIZE)
    expect(Math.max(...shares.values()) - Math.min(...shares.values())).to.be.at.most(1)
  })

  it('one of an app of which none waits, however many of others do', () => {
    const busy = apps(20, 10, 128)
    expect(shareClaims([...busy, { appId: 20, held: 0, depth: 8 }], 200)).to.deep.equal(new Map([[20, 1]]))
  })

  it('of more apps than one claim holds, those that were claimed for longest ago', () => {
    expect([...shareClaims(apps(2 * CLAIM_SIZE, 0, 8), 0).keys()]).to.deep.equal(
      apps(CLAIM_SIZE, 0, 8).map(({ appId }) => appId),
    )
  })

  it('never so many that they wait for longer than a lease lasts', () => {
    expect(sum(shareClaims(apps(1000, 0, 8), MAX_READY - 3))).to.equal(3)
    expect(shareClaims(apps(1000, 0, 8), MAX_READY)).to.deep.equal(new Map())
    let ready = 0
    for (let claims = 0; claims < 10; claims += 1) ready += sum(shareClaims(apps(3, 1, 10_000), ready))
    expect(ready).to.be.at.most(MAX_READY / 2)
  })

  it('none of an app that may not begin any, nor of one whose waiting ones are not half used up', () => {
    expect(shareClaims(apps(3, 0, 0), 0)).to.deep.equal(new Map())
    expect(shareClaims(apps(3, 5, 8), 15)).to.deep.equal(new Map())
    expect(shareClaims(apps(1, 4, 8), 4)).to.deep.equal(new Map([[0, 4]]))
  })
})
